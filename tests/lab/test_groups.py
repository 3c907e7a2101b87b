"""Several groups of workers in a berth: the real KubeRay operator restarts what the preview says,
and nothing else. Long: KubeRay's own work, and an environment of its own.
"""

import json
import sys
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import HEAD, Project, Settings, brought_up, environment_settings, eventually

pytestmark = [pytest.mark.lab, pytest.mark.long]

CPU = {"pool": "cpu", "gpus": 0, "cpu": 1, "memory": "2Gi"}


def environment(lab: Lab, groups: Settings) -> Settings:
    return environment_settings(
        lab,
        {"gpu": {"machineType": "a4-highgpu-8g", "nodes": 1}},
        defaults={"head": HEAD, "worker": {"pool": "gpu", "cpu": 1, "memory": "4Gi"}},
        engineers={"alice": {"workerGroups": groups}},
    )


def groups() -> Settings:
    return {
        "cpu": {**CPU, "workers": {"min": 1, "max": 3}, "labels": {"tier": "small"}},
        "gpu": {"workers": {"min": 0, "max": 2, "idleTimeout": "10m"}},
        "two": {"workers": 1, "gpus": 2},
    }


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return brought_up(tmp_path_factory.mktemp("groups"), lab, "env", environment(lab, groups()))


def group_of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"]["ray.io/group"])


def pods(fleet: Project) -> dict[str, set[str]]:
    """UIDs of the pods that run by their group; the head's is `headgroup`."""
    found: dict[str, set[str]] = {}
    for pod in fleet.get("pods", "-n", "berth-alice", "-l", "ray.io/cluster=alice"):
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
            found.setdefault(group_of(pod), set()).add(pod["metadata"]["uid"])
    return found


def sizes(fleet: Project) -> dict[str, int]:
    return {group: len(uids) for group, uids in pods(fleet).items()}


def scale(fleet: Project, number: int, workers: int, deleted: list[str] | None = None) -> None:
    """Ask for workers, or name those to delete, as Ray's autoscaler does: a JSON patch, sent by
    Python's requests (ray 2.60.0, python/ray/autoscaler/_private/kuberay/node_provider.py). The
    lab's own autoscaler looks at RayClusters with Ray Serve alone.
    """
    path = f"/spec/workerGroupSpecs/{number}"
    patch = [{"op": "replace", "path": f"{path}/replicas", "value": workers}]
    if deleted is not None:
        strategy = {"workersToDelete": deleted}
        patch.append({"op": "replace", "path": f"{path}/scaleStrategy", "value": strategy})
    where = [
        "-n",
        "berth-alice",
        "--type=json",
        "--field-manager=python-requests",
        "-p",
        json.dumps(patch),
    ]
    fleet.run("kubectl", "patch", "raycluster", "alice", *where)


def change(fleet: Project, edited: Settings) -> str:
    """Preview and apply other groups; return the text of the preview."""
    fleet.write("env", environment=environment(fleet.lab, edited))
    text = fleet.run("berth", "preview", "-s", "env", check=False).stdout
    fleet.up("env")
    return text


def status(fleet: Project) -> dict[str, Any]:
    (berth,) = json.loads(fleet.run("berth", "status", "-s", "env", "--json").stdout)["berths"]
    return dict(berth)


def test_each_group_has_its_own_workers(fleet: Project) -> None:
    assert sizes(fleet) == {"headgroup": 1, "cpu": 1, "two": 1}
    alice = status(fleet)
    found = {
        group["name"]: (group["workersReady"], group["workersDesired"]) for group in alice["groups"]
    }
    assert found == {"cpu": (1, 1), "gpu": (0, 0), "two": (1, 1)}
    assert alice["gpus"] == 2
    wide = ["env", "COLUMNS=200", sys.executable, "-m", "berth.cli"]
    assert "cpu 1/1, gpu 0/0, two 1/1" in fleet.run(*wide, "status", "-s", "env").stdout
    (pod,) = [pod for pod in fleet.workers("alice") if group_of(pod) == "cpu"]
    assert pod["metadata"]["labels"]["tier"] == "small"
    assert "--labels=" in json.dumps(pod["spec"]["containers"][0])
    fleet.up("env", "--expect-no-changes")


def test_a_worker_is_named_by_its_group(fleet: Project) -> None:
    refused = fleet.run("berth", "exec", "alice", "--worker", "two/2", "--", "true", check=False)
    assert (
        refused.returncode,
        "1 worker in group two; there is no worker two/2" in refused.stderr,
    ) == (2, True)
    unknown = fleet.run("berth", "logs", "alice", "--worker", "tow/1", check=False)
    assert (
        unknown.returncode,
        "no group of workers 'tow'; did you mean 'two'?" in unknown.stderr,
    ) == (2, True)
    simulated = fleet.run("berth", "exec", "alice", "--worker", "two/1", "--", "true", check=False)
    assert (simulated.returncode, "simulated node" in simulated.stderr) == (1, True)


def test_groups_grow_and_shrink_alone(fleet: Project) -> None:
    before = pods(fleet)
    scale(fleet, 1, 2)
    eventually(lambda: sizes(fleet).get("gpu") == 2, "the autoscaler's workers run")
    grown = pods(fleet)
    assert {group: grown[group] for group in before} == before
    fleet.up("env", "--expect-no-changes")
    assert pods(fleet) == grown

    resized = groups()
    resized["two"]["workers"] = 2
    resized["cpu"]["workers"] = {"min": 2, "max": 4}
    text = change(fleet, resized)
    assert "alice restarts" not in text
    eventually(
        lambda: sizes(fleet) == {"headgroup": 1, "cpu": 2, "gpu": 2, "two": 2},
        "two groups have grown",
    )
    after = pods(fleet)
    assert (after["headgroup"], after["gpu"]) == (grown["headgroup"], grown["gpu"])
    assert after["cpu"] > grown["cpu"]
    assert after["two"] > grown["two"]

    # The edit has applied the number at the start, which ended no worker; the autoscaler sets its
    # own again.
    scale(fleet, 1, 2)
    resized["gpu"]["workers"] |= {"max": 0}
    text = change(fleet, resized)
    assert "alice restarts" not in text
    assert "berth alice: 2 workers of group gpu become 0" in text
    assert pods(fleet) == after, "with an autoscaler KubeRay ends no worker that is not named"
    names = [pod["metadata"]["name"] for pod in fleet.workers("alice") if group_of(pod) == "gpu"]
    scale(fleet, 1, 0, names)
    eventually(lambda: "gpu" not in pods(fleet), "the named workers are gone")
    assert pods(fleet) == {group: uids for group, uids in after.items() if group != "gpu"}


def test_kuberay_restarts_all_groups_for_a_new_one_and_the_plan_says_so(fleet: Project) -> None:
    """The head has the hash of the whole RayCluster without numbers of workers."""
    fleet.write("env", environment=environment(fleet.lab, groups()))
    fleet.up("env")
    before = pods(fleet)
    more = groups() | {"more": {**CPU, "workers": 1}}
    text = change(fleet, more)
    assert (
        "berth alice restarts, since worker group more is added: KubeRay recreates all its pods"
        in text
    )
    added = pods(fleet)
    assert added.keys() >= {"headgroup", "cpu", "two", "more"}
    assert not set().union(*before.values()) & set().union(*added.values())

    text = change(fleet, groups())
    assert "restarts, since worker group more is removed" in text
    assert "a group that stays with `workers: 0`" in text
    removed = pods(fleet)
    assert "more" not in removed
    assert not set().union(*added.values()) & set().union(*removed.values())

    larger = groups()
    larger["two"]["memory"] = "5Gi"
    text = change(fleet, larger)
    assert "berth alice restarts, since worker group two is changed" in text
    assert not set().union(*removed.values()) & set().union(*pods(fleet).values())
