"""Merge of settings, Helm values and patches of manifests."""

from copy import deepcopy
from typing import Any

import pytest

from berth.components.core.merge import merged

CASES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
    ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
    ({"a": 2}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    ({"a": {"b": 1}, "c": 1}, {"a": None}, {"a": None, "c": 1}),
]


@pytest.mark.parametrize(("below", "above", "result"), CASES)
def test_mappings_merge_and_other_values_replace(
    below: dict[str, Any], above: dict[str, Any], result: dict[str, Any]
) -> None:
    before = deepcopy((below, above))
    assert merged(below, above) == result
    assert (below, above) == before


def test_a_null_removes_where_that_is_asked_for() -> None:
    assert merged(
        {"a": {"b": 1, "c": 2}, "d": 3},
        {"a": {"b": None}, "d": None, "e": {"f": None}},
        removes=True,
    ) == {
        "a": {"c": 2},
        "e": {},
    }


def test_entries_of_a_named_list_merge_by_their_names() -> None:
    below = {
        "containers": [
            {"name": "ray", "image": "a", "env": [{"name": "A", "value": "1"}]},
            {"name": "x"},
        ]
    }
    above = {
        "containers": [
            {"name": "new"},
            {"name": "ray", "image": "b", "env": [{"name": "B", "value": "2"}]},
        ]
    }
    assert merged(below, above, by_name={"containers"}) == {
        "containers": [
            {"name": "ray", "image": "b", "env": [{"name": "B", "value": "2"}]},
            {"name": "x"},
            {"name": "new"},
        ]
    }
