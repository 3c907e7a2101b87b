"""Words about a berth's life in status."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.lifecycle import lifecycle_remarks
from berth.cli.reach.suspension import wake_up
from berth.components.core.errors import BerthError
from berth.components.lifecycle import life_of
from tests.unit.cases import table

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def cluster(annotations: dict[str, str], *, suspended_by: str = "") -> dict[str, Any]:
    """A RayCluster with annotations and labels; suspended by a field manager where one is named."""
    owner = {
        "manager": suspended_by,
        "time": "2026-11-20T19:02:00Z",
        "fieldsV1": {"f:spec": {"f:suspend": {}}},
    }
    metadata = {
        "creationTimestamp": "2026-11-02T09:00:00Z",
        "annotations": {
            f"berth/{name}": text for name, text in annotations.items() if "/" not in name
        },
        "labels": {name: text for name, text in annotations.items() if "/" in name},
        "managedFields": [owner] if suspended_by else [],
    }
    return {"metadata": metadata, "spec": {"suspend": True} if suspended_by else {}}


@pytest.mark.parametrize(("annotations", "suspended_by", "texts"), table(__file__, "lives.yaml"))
def test_why_and_until_when(
    annotations: dict[str, str], suspended_by: str, texts: list[str]
) -> None:
    assert (
        lifecycle_remarks("bob", life_of(cluster(annotations, suspended_by=suspended_by), NOW))
        == texts
    )


def test_what_kueue_holds_back_is_not_woken() -> None:
    berth = SimpleNamespace(name="bob", cluster=cluster({}, suspended_by="kueue"))
    with pytest.raises(BerthError, match="bob waits for room in its queue"):
        wake_up(cast("LiveBerth", berth), 0)


@pytest.mark.parametrize(
    ("day", "over"), [("2026-11-20", True), ("2026-11-21", False), ("18d", True), ("20d", False)]
)
def test_expiry(day: str, over: bool) -> None:
    assert life_of(cluster({"expires": day}), NOW).expired(NOW) == over
