"""Settings that Pulumi passes, beside those of the file that checks judge."""

import datetime as dt
from typing import Any

import pytest

from berth.stacks.program.main import differences

SAME: list[tuple[Any, Any]] = [
    ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
    ({"a": 1000.0}, {"a": 1000}),
    ({"a": dt.date(2026, 12, 31)}, {"a": "2026-12-31 00:00:00 +0000 UTC"}),
    (
        {"a": dt.datetime(2026, 12, 31, 10, tzinfo=dt.timezone(dt.timedelta(hours=2)))},
        {"a": "2026-12-31 08:00:00 +0000 UTC"},
    ),
    ({"a": dt.datetime(2026, 12, 31, tzinfo=dt.UTC)}, {"a": "2026-12-31 00:00:00+00:00"}),
]
DIFFERENT: list[tuple[Any, Any, list[tuple[Any, ...]]]] = [
    ({"values": {"isolation": {"quotas": False}}}, {"values": {}}, [("values", "isolation")]),
    ({}, {"isolation": {"quotas": False}}, [("isolation",)]),
    ({"a": [1, 2]}, {"a": [1, 3]}, [("a", 1)]),
    ({"a": [1]}, {"a": [1, 2]}, [("a",)]),
    ({"a": True}, {"a": 1}, [("a",)]),
    ({"a": "1"}, {"a": 1}, [("a",)]),
    ({"a": {"secure": "v1:x"}}, {"a": "plain"}, [("a",)]),
    ({"a": dt.date(2026, 12, 31)}, {"a": "2026-12-30 00:00:00 +0000 UTC"}, [("a",)]),
    ({"a": dt.date(2026, 12, 31)}, {"a": "never"}, [("a",)]),
]


@pytest.mark.parametrize(("judged", "given"), SAME)
def test_the_same_settings(judged: Any, given: Any) -> None:
    assert list(differences(judged, given)) == []


@pytest.mark.parametrize(("judged", "given", "paths"), DIFFERENT)
def test_settings_that_pulumi_reads_in_another_way(
    judged: Any, given: Any, paths: list[tuple[Any, ...]]
) -> None:
    assert list(differences(judged, given)) == paths
