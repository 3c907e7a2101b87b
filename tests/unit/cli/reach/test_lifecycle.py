"""Words about a berth's life in status."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from berth.cli.reach.lifecycle import sentences
from berth.components.lifecycle import life_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOURS = {"berth/working-hours": "mon-fri 08:00-20:00", "berth/zone": "Europe/Berlin"}


def cluster(annotations: dict[str, str], *, suspended_by: str = "") -> dict[str, Any]:
    """A RayCluster; suspended by a field manager where one is named."""
    owner = {"manager": suspended_by, "time": "2026-11-20T19:02:00Z", "fieldsV1": {"f:spec": {"f:suspend": {}}}}
    metadata = {
        "creationTimestamp": "2026-11-02T09:00:00Z",
        "annotations": annotations,
        "managedFields": [owner] if suspended_by else [],
    }
    return {"metadata": metadata, "spec": {"suspend": True} if suspended_by else {}}


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        (cluster({}), []),
        (cluster(HOURS | {"berth/expires": "2026-12-31"}), []),
        (
            cluster(HOURS | {"berth/suspended-by": "hours"}, suspended_by="berth-keeper"),
            [
                (
                    "bob is suspended outside of its working hours until Mon 2026-11-23 08:00 CET; back "
                    "at once with: berth wake bob"
                ),
            ],
        ),
        (
            cluster({"berth/idle": "2h", "berth/suspended-by": "idle"}, suspended_by="berth-keeper"),
            ["bob is suspended, as nothing ran on it for 2h; back with: berth wake bob"],
        ),
        (
            cluster(
                {
                    "berth/expires": "2026-11-10",
                    "berth/zone": "Europe/Berlin",
                    "berth/suspended-by": "expired",
                    "berth/delete-due": "2026-11-20T23:00:00Z",
                },
                suspended_by="berth-keeper",
            ),
            [
                (
                    "bob is suspended, as it expired on Wed 2026-11-11 00:00 CET; give it a later "
                    "`lifecycle.expires` and run pulumi"
                    " up, then: berth wake bob"
                ),
                (
                    "bob is due to be deleted since Sat 2026-11-21 00:00 CET: berth engineer remove "
                    "bob, or destroy its stack with"
                    " pulumi destroy"
                ),
            ],
        ),
        # The keeper's note is of an earlier time: somebody woke it and suspended it by hand.
        (
            cluster(HOURS | {"berth/suspended-by": "hours"}, suspended_by="berth-suspension"),
            ["bob was suspended by hand, and stays so; back with: berth wake bob"],
        ),
        (
            cluster(HOURS | {"berth/held-up": "it is outside of its working hours, but job a (running) runs"}),
            ["bob is to be suspended: it is outside of its working hours, but job a (running) runs"],
        ),
        (
            cluster({"berth/idle": "often"}),
            [
                (
                    "bob has a lifecycle that cannot be read: 'often' is not a duration; write for "
                    "example 90s, 10m, 2h or 7d"
                )
            ],
        ),
    ],
)
def test_why_and_until_when(given: dict[str, Any], texts: list[str]) -> None:
    assert sentences("bob", life_of(given, NOW)) == texts


@pytest.mark.parametrize(("day", "over"), [("2026-11-20", True), ("2026-11-21", False), ("18d", True), ("20d", False)])
def test_expiry(day: str, over: bool) -> None:  # noqa: FBT001
    assert life_of(cluster({"berth/expires": day}), NOW).expired(NOW) == over
