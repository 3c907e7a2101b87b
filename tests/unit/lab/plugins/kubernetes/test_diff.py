"""Differences that the stand-in plans, and which of them replace an object."""

from __future__ import annotations

from typing import Any

import pytest

from berth.lab.plugins.kubernetes.diff import compare, path_text, same_quantity, without_ignored
from berth.lab.plugins.kubernetes.immutable import immutable_fields
from berth.lab.plugins.provider import Kind
from berth.lab.plugins.values import UNKNOWN


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": Kind.UPDATE}),
        ({"a": 1}, {"a": True}, {"a": Kind.UPDATE}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, {"a.c": Kind.ADD}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a.c": Kind.DELETE}),
        ({"a": [1, 2]}, {"a": [1, 3]}, {"a[1]": Kind.UPDATE}),
        ({"a": [{"b": 1, "c": 1}]}, {"a": [{"b": 2}]}, {"a[0].b": Kind.UPDATE, "a[0].c": Kind.DELETE}),
        ({"a": [1]}, {"a": [1, 2]}, {"a[1]": Kind.ADD}),
        ({"a": [1, 2]}, {"a": [1]}, {"a[1]": Kind.DELETE}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": Kind.UPDATE}),
        ({"a": {"b": 1}}, {"a": {"b": UNKNOWN}}, {"a.b": Kind.UPDATE}),
        ({}, {"a": UNKNOWN}, {"a": Kind.ADD}),
        ({"m": {"x.y/z": "1"}}, {"m": {"x.y/z": "2"}}, {'m["x.y/z"]': Kind.UPDATE}),
    ],
)
def test_differences(old: dict[str, Any], new: dict[str, Any], expected: dict[str, Kind]) -> None:
    assert compare(old, new) == expected


def test_paths_as_the_real_plugin_writes_them() -> None:
    assert (
        path_text(("spec", "spec", "devices", "requests", 0, "exactly", "count"))
        == "spec.spec.devices.requests[0].exactly.count"
    )
    assert path_text(("metadata", "annotations", 'a.b/"c"')) == 'metadata.annotations["a.b/\\"c\\""]'


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1000m", "1", True),
        ("1", 1, True),
        ("1Gi", "1024Mi", True),
        ("1G", "1Gi", False),
        ("0.5", "500m", True),
        ("x", "x", False),
        ("8", "80", False),
        (True, 1, False),
    ],
)
def test_quantities(one: Any, other: Any, same: bool) -> None:  # noqa: FBT001
    assert same_quantity(one, other) is same


def test_quantities_count_only_where_quantities_stand() -> None:
    resources = {"spec": {"resources": {"limits": {"cpu": "1"}}}}
    assert compare(resources, {"spec": {"resources": {"limits": {"cpu": "1000m"}}}}) == {}
    assert compare({"data": {"cpu": "1"}}, {"data": {"cpu": "1000m"}}) == {"data.cpu": Kind.UPDATE}


@pytest.mark.parametrize(
    ("item", "old", "new", "expected"),
    [
        (("v1", "ConfigMap"), {"data": {"k": "1"}}, {"data": {"k": "2"}}, {"data.k": Kind.UPDATE_REPLACE}),
        (("v1", "Secret"), {"data": {"k": "1"}}, {"data": {}}, {"data.k": Kind.DELETE_REPLACE}),
        (
            ("v1", "Secret"),
            {"metadata": {"labels": {}}},
            {"metadata": {"labels": {"a": "b"}}},
            {"metadata.labels.a": Kind.ADD},
        ),
        (
            ("v1", "Namespace"),
            {"metadata": {"name": "a"}},
            {"metadata": {"name": "b"}},
            {"metadata.name": Kind.UPDATE_REPLACE},
        ),
        (
            ("v1", "Service"),
            {"spec": {"clusterIP": "1"}},
            {"spec": {"clusterIP": "2"}},
            {"spec.clusterIP": Kind.UPDATE_REPLACE},
        ),
        (("v1", "Service"), {}, {"spec": {"clusterIP": "2"}}, {"spec": Kind.ADD_REPLACE}),
        (
            ("apps/v1", "Deployment"),
            {"spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}},
            {"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "c"}}}},
            {"spec.replicas": Kind.UPDATE, "spec.selector.matchLabels.a": Kind.UPDATE_REPLACE},
        ),
        (
            ("rbac.authorization.k8s.io/v1", "RoleBinding"),
            {"roleRef": {"name": "a"}},
            {"roleRef": {"name": "b"}},
            {"roleRef.name": Kind.UPDATE_REPLACE},
        ),
        (
            ("resource.k8s.io/v1", "ResourceClaimTemplate"),
            {"spec": {"spec": {"devices": 1}}},
            {"spec": {"spec": {"devices": 2}}},
            {"spec.spec.devices": Kind.UPDATE},
        ),
    ],
)
def test_replacements(
    item: tuple[str, str], old: dict[str, Any], new: dict[str, Any], expected: dict[str, Kind]
) -> None:
    patterns = immutable_fields({"apiVersion": item[0], "kind": item[1]})
    assert compare(old, new, patterns) == expected


def test_ignored_paths_cover_what_is_under_them() -> None:
    found = {"spec.replicas": Kind.UPDATE, 'metadata.annotations["a.b/c"]': Kind.ADD, "spec.list[1].x": Kind.UPDATE}
    assert without_ignored(found, ["spec.replicas"]).keys() == found.keys() - {"spec.replicas"}
    assert without_ignored(found, ["metadata.annotations"]).keys() == {"spec.replicas", "spec.list[1].x"}
    assert without_ignored(found, ["spec.list[*].x", "metadata", "spec.replicas"]) == {}
    assert without_ignored(found, ["spec.replica"]) == found
