from __future__ import annotations

import pytest

from berth.lab.devices.api import Api
from berth.lab.devices.gpu_nodes import GpuNodes
from tests.unit.lab.devices.small_cluster import SmallCluster


@pytest.mark.parametrize("observed", [True, False])
def test_a_cluster_policy_is_found_though_no_event_tells_of_it(observed: bool) -> None:  # noqa: FBT001 (a parameter)
    cluster = SmallCluster()
    programs = GpuNodes(Api(cluster), lambda _: observed)
    assert programs.step() is None, "without an operator, only a change is worth a look"
    cluster.install({}, {})
    policy = cluster.objects["clusterpolicies"].pop("cluster-policy")
    assert programs.step(), "the chart's last object is yet to come"
    cluster.objects["clusterpolicies"]["cluster-policy"] = policy
    assert bool(programs.step()) is not observed


def test_without_a_change_only_the_cluster_policy_is_asked_for() -> None:
    cluster = SmallCluster()
    programs = GpuNodes(Api(cluster), lambda _: False)
    cluster.install({}, {})
    programs.step()
    before = len(cluster.asked)
    assert programs.step(changed=False), "a policy without events may change"
    assert cluster.asked[before:] == ["/apis/nvidia.com/v1/clusterpolicies"]
    cluster.objects["clusterpolicies"]["cluster-policy"]["metadata"]["generation"] = 2
    programs.step(changed=False)
    assert "/api/v1/nodes" in cluster.asked[before:]
