"""Helm values of the settings over berth's own."""

from typing import Any

import pytest

from berth.components.operators import (
    GpuOperator,
    GpuOperatorSettings,
    KubeRay,
    KubeRaySettings,
    Site,
)
from berth.components.operators.installation import has_null
from berth.components.operators.parts import Chart
from berth.components.operators.rules.every_operator import deciding_place
from berth.components.operators.rules.helm_values import overridden_values
from berth.components.operators.settings import OPERATORS
from berth.components.sharing import offered_pools
from tests.unit.loaded import environment_of, environment_values

GPUS = {"gpu": {"machineType": "g2-standard-8", "nodes": 1}}


def chart_of(**settings: Any) -> Chart:
    (chart,) = (
        part
        for part in KubeRay(KubeRaySettings(**settings)).parts("kuberay")
        if isinstance(part, Chart)
    )
    return chart


def test_values_that_change_berths_are_found() -> None:
    ours = {"image": {"tag": "1", "repository": "r"}, "tolerations": [1], "env": {"a": "b"}}
    theirs = {"image": {"tag": "2"}, "tolerations": [2], "env": None, "replicas": 2}
    assert [path for path, _, _ in overridden_values(ours, theirs)] == [
        ("image", "tag"),
        ("tolerations",),
        ("env",),
    ]
    assert (has_null(theirs), has_null(ours)) == (True, False)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, None),
        ({"a": {}}, None),
        ({"a": {"b": 0}}, ("a", "b")),
        ({"a": None}, ("a",)),
        ({"b": {}}, None),
    ],
)
def test_values_reach_a_path(values: dict[str, Any], found: tuple[str, ...] | None) -> None:
    assert deciding_place(values, ("a", "b")) == found


def test_values_of_the_settings_are_the_charts() -> None:
    assert chart_of().values == chart_of().ours == {"image": {"tag": "v1.6.2"}}
    assert chart_of(values={"replicas": 2}).values == {"image": {"tag": "v1.6.2"}, "replicas": 2}


def test_engineers_stacks_read_no_values_of_charts() -> None:
    values = environment_values(**GPUS) | {"operators": {"kuberay": {"values": {"replicas": 2}}}}
    loaded = environment_of("test", values)
    assert "replicas" not in loaded.contract().model_dump_json(exclude_none=True)


def test_what_berth_sets_is_known_of_each_chart() -> None:
    """Every value that berth sets, or has a setting for, is one that the chart reads."""
    site = Site(offered_pools(load_pools(), {}))
    for operator in OPERATORS:
        known = operator.known_chart().values
        assert {path.partition(".")[0] for path in operator.settings_by_value} <= set(known)
    gpu = GpuOperator(GpuOperatorSettings(), site).values()
    assert gpu.keys() <= set(GpuOperator.known_chart().values)
    assert chart_of().values.keys() <= set(KubeRay.known_chart().values)


def load_pools() -> Any:
    loaded = environment_of("test", environment_values(**GPUS))
    return loaded.settings.pools
