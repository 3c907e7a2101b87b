"""Traffic between the berths of an environment under its policies, judged by cyclonus.

Needs the judge among the lab's tools, and no lab.
"""

import itertools
from pathlib import Path
from typing import Any

import pytest

from berth.components.berth import BerthManifests
from berth.components.isolation import cluster_spec
from berth.lab.progress import LabProgress
from berth.lab.toolchain.ensure import programs_of
from berth.lab.toolchain.tools import CYCLONUS
from berth.stacks.load.stack import Environment, load
from tests.lab.traffic import DENIED, RAY_PORTS, BerthPods, Case, Peer, wrong

Object = dict[str, Any]


def rendered(count: int) -> list[BerthManifests]:
    """Manifests of berths of one environment, with Ray's autoscaler."""
    values: Object = {
        "project": "berth-test",
        "zone": "us-central1-b",
        "pools": {
            "cpu": {"machineType": "n2-standard-128", "nodes": 8},
            "dev": {"machineType": "a4-highgpu-8g", "nodes": 13},
        },
        "defaults": {
            "workers": {"min": 0, "max": 1},
            "worker": {"pool": "dev", "gpus": 1, "cpu": 1},
        },
        "engineers": {f"eng-{number:03}": {} for number in range(count)},
    }
    loaded = load("apart", {"environment": values}, None)
    assert isinstance(loaded, Environment)
    return [inputs.manifests for inputs in loaded.berths]


def pods(number: int, berth: BerthManifests) -> BerthPods:
    """Pods of a berth with the labels that KubeRay gives them."""
    name = berth.main["metadata"]["name"]
    namespace = berth.namespace["metadata"]
    spec = cluster_spec(berth.main)
    assert spec

    def pod(kind: str, template: Object) -> Peer:
        labels = template["metadata"]["labels"] | {"ray.io/cluster": name, "ray.io/node-type": kind}
        of_namespace = namespace["labels"] | {"kubernetes.io/metadata.name": namespace["name"]}
        host = "2" if kind == "head" else "3"
        return Peer(
            f"{name}'s {kind}",
            f"10.4.{number}.{host}",
            namespace["name"],
            tuple(of_namespace.items()),
            tuple(labels.items()),
        )

    worker = pod("worker", spec["workerGroupSpecs"][0]["template"])
    return BerthPods(name, pod("head", spec["headGroupSpec"]["template"]), worker)


def policies(berth: BerthManifests) -> list[Object]:
    return [item for item in berth.objects if item["kind"] == "NetworkPolicy"]


@pytest.fixture(scope="module")
def judge() -> Path:
    return programs_of([CYCLONUS], LabProgress())["judge"]


@pytest.mark.parametrize("count", [30, pytest.param(100, marks=pytest.mark.long)])
def test_berths_are_closed_to_one_another(judge: Path, count: int) -> None:
    berths = rendered(count)
    heads = [pods(number, berth).head for number, berth in enumerate(berths)]
    pairs = list(itertools.permutations(heads, 2))
    cases = [Case(one, other, port, DENIED) for one, other in pairs for port in RAY_PORTS]
    assert len(cases) == count * (count - 1) * len(RAY_PORTS)
    assert wrong(judge, [policy for berth in berths for policy in policies(berth)], cases) == []
