"""Pods that find no room after an update, beside what the cluster has."""

import pytest

from berth.components.gke import PoolSettings
from berth.components.plan.plan import Event, plan_of
from berth.components.sharing import offered_pools
from berth.stacks.preview.report import PreviewContext, report_of
from tests.unit.components.plan.plans import POOL, RAY, edited, event, pool, ray, same

POOLS = offered_pools(
    {"train": PoolSettings.model_validate({"machineType": "a4-highgpu-8g", "nodes": 2})}, {}
)
GUEST = edited(ray("guest", workers=1), metadata__labels={})
NEW = event("create", RAY, "ann", None, ray("ann"))
STAYS = same(RAY, "ann", ray("ann"))
MORE = event("update", RAY, "ann", ray("ann", workers=1), ray("ann"))
LESS = event("update", RAY, "ann", ray("ann"), ray("ann", workers=1))
GONE = event("delete", RAY, "ann", ray("ann"), None)
ANEW = event("replace", POOL, "train", pool(), pool(machineType="a3-highgpu-8g"))

TOO_MANY = (
    "pool train has 16 × B200, and 24 are asked for, 8 of them by RayClusters outside this plan:"
    " new pods of {} wait for room"
)


@pytest.mark.parametrize(
    ("events", "live", "who"),
    [
        ([NEW], [GUEST], "berth ann"),
        ([MORE], [GUEST, ray("ann", workers=1)], "berth ann"),
        ([STAYS, ANEW], [GUEST, ray("ann")], "berth ann, RayCluster guest"),
        ([NEW], [], ""),
        ([STAYS], [GUEST, ray("ann")], ""),
        ([LESS], [GUEST, ray("ann")], ""),
        ([GONE, ANEW], [GUEST, ray("ann")], ""),
    ],
)
def test_a_plan_says_who_waits(
    events: list[Event], live: list[dict[str, object]], who: str
) -> None:
    report = report_of(
        plan_of(events), PreviewContext("prod", "environment", live=live, pools=POOLS)
    )
    assert [line for line in report.warnings if "room" in line] == (
        [TOO_MANY.format(who)] if who else []
    )
