"""Keys of KubeRay in settings: each is a setting, or its error says what berth has instead."""

import pytest
from pydantic import BaseModel

from berth.components.core.model_types import fields_of
from berth.components.core.unknown_keys import hint_for_key
from berth.components.ray import BerthShape
from berth.components.ray.job_settings import JobShape
from berth.components.ray.service_settings import ServiceShape
from berth.components.ray.settings import (
    AutoscalerShape,
    GcsFaultTolerance,
    HeadShape,
    WorkerGroupShape,
)
from tests.unit.cases import table

KEYS: dict[str, list[str]] = table(__file__, "kuberay_keys.yaml")
MODELS: dict[str, list[type[BaseModel]]] = {
    "RayCluster": [BerthShape, JobShape, ServiceShape],
    "RayCluster.headGroupSpec": [HeadShape],
    "RayCluster.workerGroupSpecs": [WorkerGroupShape],
    "RayCluster.autoscalerOptions": [AutoscalerShape],
    "RayCluster.gcsFaultToleranceOptions": [GcsFaultTolerance],
    "RayJob": [JobShape],
    "RayService": [ServiceShape],
}
"""Settings where a user writes the keys of a part."""


@pytest.mark.parametrize("part", KEYS)
def test_each_key_is_a_setting_or_has_a_hint(part: str) -> None:
    for model in MODELS[part]:
        unknown = [key for key in KEYS[part] if key not in fields_of(model)]
        without = [key for key in unknown if not model.hint(key, {})]  # type: ignore[attr-defined]
        assert without == [], model


@pytest.mark.parametrize("model", [model for models in MODELS.values() for model in models])
def test_no_hint_is_of_a_key_that_is_a_setting(model: type[BaseModel]) -> None:
    words = model.other_words  # type: ignore[attr-defined]
    assert words.keys() & fields_of(model).keys() == set()


@pytest.mark.parametrize("model", [model for models in MODELS.values() for model in models])
def test_hints_name_settings_that_exist(model: type[BaseModel]) -> None:
    """Begin of each name in backticks: `head.rayCpus` is one of a RayCluster, a head or a group."""
    known = {
        key
        for shape in (BerthShape, JobShape, ServiceShape, HeadShape, WorkerGroupShape, model)
        for key in fields_of(shape)
    } | {"isolation", "services", "idleTimeout", "storageNamespace", "spec", "metadata"}
    for words in model.other_words.values():  # type: ignore[attr-defined]
        for name in words.split("`")[1::2]:
            assert name.split(":")[0].split(".")[0] in known, words


def test_a_pasted_cluster_gets_a_line_for_each_key() -> None:
    hint = hint_for_key("headGroupSpec", {}, BerthShape, ())
    assert hint == "; write `head`"
    assert "RAY_START_HOOK" in hint_for_key("rayStartParams", {}, BerthShape, ("head",))
