"""Names, ids and states of objects, in the real plugin's shapes."""

from __future__ import annotations

from typing import Any

import pytest

from berth.lab.plugins.kubernetes import objects
from berth.lab.plugins.values import UNKNOWN


def test_kind_of_a_type() -> None:
    assert objects.kind_of("kubernetes:core/v1:Namespace", {}) == objects.ObjectKind("v1", "Namespace")
    assert objects.kind_of("kubernetes:ray.io/v1:RayCluster", {}) == objects.ObjectKind("ray.io/v1", "RayCluster")


@pytest.mark.parametrize(
    ("token", "desired", "missing"),
    [
        ("kubernetes:core/v1:NodePatch", {"kind": "Node"}, "the Patch resource NodePatch"),
        ("kubernetes:x.io/v1:DevicePatch", {"kind": "DevicePatch"}, ""),
        (
            "kubernetes:ray.io/v1:RayCluster",
            {"kind": "RayCluster", "metadata": {"annotations": {"pulumi.com/waitFor": "condition=Ready"}}},
            "the annotation pulumi.com/waitFor",
        ),
        ("kubernetes:core/v1:Node", {"metadata": {"annotations": {objects.FORCE: "true", "a": "b"}}}, ""),
    ],
)
def test_what_the_stand_in_lacks(token: str, desired: dict[str, Any], missing: str) -> None:
    assert objects.unsupported(token, desired) == missing


def test_the_same_seed_gives_the_same_name() -> None:
    assert objects.autoname("cm", b"seed") == objects.autoname("cm", b"seed")
    assert objects.autoname("cm", b"seed") != objects.autoname("cm", b"other")
    assert len(objects.autoname("cm", b"")) == len("cm-12345678")


def test_text_of_a_secret_becomes_its_data() -> None:
    secret = {"kind": "Secret", "stringData": {"t": "canary"}, "data": {"u": "eA=="}}
    assert objects.normalize(secret) == {"kind": "Secret", "data": {"u": "eA==", "t": "Y2FuYXJ5"}}


def test_a_text_that_is_not_known_yet_stays_a_text() -> None:
    secret = {"kind": "Secret", "stringData": {"t": UNKNOWN}}
    assert objects.normalize(secret) == secret


def test_only_what_inputs_speak_of_is_compared() -> None:
    live = {"a": 1, "b": {"c": 2, "d": 3}, "e": [{"f": 1, "g": 2}, {"f": 3}], "h": 5}
    assert objects.prune(live, {"a": 0, "b": {"c": 0}, "e": [{"f": 0}]}) == {"a": 1, "b": {"c": 2}, "e": [{"f": 1}]}


def test_a_named_manager_wins() -> None:
    inputs = {"metadata": {"annotations": {objects.FIELD_MANAGER: "berth"}}}
    assert objects.field_manager(inputs, {"__fieldManager": "pulumi-kubernetes-1"}) == "berth"
