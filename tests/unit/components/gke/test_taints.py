from typing import Any

import pulumi
import pytest

from berth.components.sharing import offered_pools
from berth.stacks.program.google import register_in_google
from tests.unit import loaded
from tests.unit.components.gke.registered import recorded
from tests.unit.recording import Recorder, run

TRAIN = {"machineType": "a4-highgpu-8g", "nodes": 1, "capacity": {"kind": "spot"}}
CPU = {"machineType": "n2-standard-16", "nodes": 1}
GPUS = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
TEAM = {"key": "team", "value": "research", "effect": "NO_SCHEDULE"}


@pytest.mark.parametrize(
    ("pools", "taints"),
    [
        # Pools without GPUs come first: GKE's own pods start on the first nodes that there are.
        ({"train": TRAIN, "cpu": CPU}, {"cpu": [], "train": [GPUS]}),
        (
            {
                "train": TRAIN
                | {"taints": [{"key": "team", "value": "research", "effect": "NoSchedule"}]},
                "cpu": CPU,
            },
            {"cpu": [], "train": [TEAM, GPUS]},
        ),
        # Every pod has to run where there are GPUs.
        ({"train": TRAIN}, {"train": []}),
    ],
)
def test_gpu_nodes_are_for_gpus_where_others_have_nodes(
    pools: dict[str, Any], taints: dict[str, Any]
) -> None:
    values = {"project": "some-project", "zone": "us-central1-b", "pools": pools}
    settings = loaded.environment_of("some", values).settings
    registered = recorded("some", settings).of_type("gcp:container/nodePool:NodePool")
    found = {pool.name: pool.inputs["nodeConfig"].get("taints") or [] for pool in registered}
    assert found == taints
    assert list(found) == list(taints)


class NoMachines(Recorder):
    """Answers as an engine would whose pool `cpu` cannot be made."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if args.name == "cpu":
            raise RuntimeError("no machines")
        return super().new_resource(args)


def test_gpu_nodes_come_after_others_are_there() -> None:
    values = {
        "project": "some-project",
        "zone": "us-central1-b",
        "pools": {"train": TRAIN, "cpu": CPU},
    }
    settings = loaded.environment_of("some", values).settings
    recorder = NoMachines()
    with pytest.raises(Exception, match="no machines"):
        run(
            lambda: register_in_google(
                "some", settings, offered_pools(settings.pools, settings.sharing), {}
            ),
            "some",
            recorder=recorder,
        )
    assert recorder.of_type("gcp:container/cluster:Cluster")
    assert recorder.of_type("gcp:container/nodePool:NodePool") == []
