"""Words about a berth's life in status."""

from datetime import UTC, datetime
from typing import Any

import pytest

from berth.cli.reach.lifecycle import sentences
from berth.components.lifecycle import life_of
from tests.unit.cases import table

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def cluster(annotations: dict[str, str], *, suspended_by: str = "") -> dict[str, Any]:
    """A RayCluster; suspended by a field manager where one is named."""
    owner = {"manager": suspended_by, "time": "2026-11-20T19:02:00Z", "fieldsV1": {"f:spec": {"f:suspend": {}}}}
    metadata = {
        "creationTimestamp": "2026-11-02T09:00:00Z",
        "annotations": {f"berth/{name}": text for name, text in annotations.items()},
        "managedFields": [owner] if suspended_by else [],
    }
    return {"metadata": metadata, "spec": {"suspend": True} if suspended_by else {}}


@pytest.mark.parametrize(("annotations", "suspended_by", "texts"), table(__file__, "lives.yaml"))
def test_why_and_until_when(annotations: dict[str, str], suspended_by: str, texts: list[str]) -> None:
    assert sentences("bob", life_of(cluster(annotations, suspended_by=suspended_by), NOW)) == texts


@pytest.mark.parametrize(("day", "over"), [("2026-11-20", True), ("2026-11-21", False), ("18d", True), ("20d", False)])
def test_expiry(day: str, over: bool) -> None:  # noqa: FBT001
    assert life_of(cluster({"expires": day}), NOW).expired(NOW) == over
