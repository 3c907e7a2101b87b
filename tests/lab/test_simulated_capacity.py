"""Unavailable machines: the simulated GKE's behavior, berth's messages, and recovery. Long: much of
it is the lab's own, and the unit tests have the messages.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from berth.lab.plugins.gcp.conditions import SHIPPED
from tests.lab.conftest import Lab
from tests.lab.project import Project, eventually

pytestmark = [pytest.mark.lab, pytest.mark.long]

STACK = "capacity"
PROJECT, ZONE = "capacity-test", "us-central1-b"
POOL = "cloud.google.com/gke-nodepool"


def settings(cpu: int = 1, wait: dict[str, str] | None = None, **pools: Any) -> dict[str, Any]:
    """A CPU pool, a pool by flex-start for dev berths, one berth; GKE runs KubeRay by its
    add-on.
    """
    return {
        "project": PROJECT,
        "zone": ZONE,
        "cluster": {"deletionProtection": False},
        "operators": {"kuberay": {"source": "addon"}},
        "pools": {
            "cpu": {"machineType": "n2-standard-8", "nodes": cpu},
            "dev": {"machineType": "g2-standard-12", "nodes": {"min": 0, "max": 2}, "capacity": "flex-start"},
            **pools,
        },
        "defaults": {"worker": {"pool": "dev"}, "wait": wait or {"until": "submitted"}},
        "engineers": {"bob": {"workers": 1}},
    }


class World:
    """Environment, and the conditions of its project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.file = project.lab.home.cloud / SHIPPED.name

    def conditions(self, **parts: Any) -> None:
        """Replace the file in one step, as an editor does."""
        new = self.file.with_suffix(".new")
        new.write_text(yaml.safe_dump(parts))
        new.replace(self.file)

    def up(self, environment: dict[str, Any], *, check: bool = True) -> str:
        """Output of `pulumi up`; an expected failure counts as success."""
        self.project.write(STACK, environment=environment)
        done = self.project.up(STACK, check=check)
        assert check or done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    def status(self) -> dict[str, Any]:
        done = self.project.run("berth", "status", "-s", STACK, "--json", check=False)
        return dict(json.loads(done.stdout))

    def bob(self) -> dict[str, Any]:
        (berth,) = self.status()["berths"]
        return dict(berth)

    def nodes(self, pool: str) -> list[dict[str, Any]]:
        return self.project.get("nodes", "-l", f"{POOL}={pool}")


def stock(available: int, machine: str = "g2-standard-12", capacity: str = "flex-start") -> list[dict[str, Any]]:
    return [{"zone": ZONE, "machineType": machine, "capacity": capacity, "available": available}]


@pytest.fixture(scope="module")
def world(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(Project.make(tmp_path_factory.mktemp("capacity") / "project", lab))
    world.conditions(stock=stock(0))
    yield world
    world.conditions()
    world.project.run("pulumi", "destroy", "-s", STACK, "--yes", "--skip-preview", check=False)
    world.file.write_text(SHIPPED.read_text())


def test_a_pool_by_flex_start_is_created_without_machines_and_the_berth_has_the_reason(world: World) -> None:
    output = world.up(settings(wait={"until": "ready", "timeout": "15s"}), check=False)
    assert "RayCluster berth-bob/bob is not ready after 15s" in output
    assert "GCE out of resources" in output
    assert world.nodes("dev") == []
    eventually(
        lambda: (
            "Node scale up in zones us-central1-b associated with this pod failed: GCE out of resources."
            in " ".join(world.bob()["reasons"])
        ),
        "status has the autoscaler's words",
    )


def test_nodes_come_when_there_are_machines(world: World) -> None:
    world.conditions(stock=stock(1))
    eventually(lambda: bool(world.bob()["ready"]), "bob's berth is ready, by the add-on's operator")
    (node,) = world.nodes("dev")
    assert node["metadata"]["labels"]["cloud.google.com/gke-flex-start"] == "true"
    world.up(settings(wait={"until": "ready", "timeout": "60s"}))


def test_a_full_reservation(world: World) -> None:
    block = {"project": PROJECT, "name": "block", "zone": ZONE, "machineType": "a4-highgpu-8g", "count": 1}
    world.conditions(reservations=[block])
    train = {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": {"kind": "reservation", "reservation": "block"}}
    output = world.up(settings(cpu=2, train=train), check=False)
    assert "Reservation does not have enough resources for the request" in output
    assert "required 2 and short of 1 VM count of machine type a4-highgpu-8g" in output
    world.up(settings(cpu=2, train=train | {"nodes": 1}))
    assert len(world.nodes("train")) == 1


def test_a_new_pool_of_fixed_size_without_machines_is_recorded_and_gets_them_later(world: World) -> None:
    render = {"machineType": "g2-standard-24", "nodes": 2}
    world.conditions(stock=stock(1, "g2-standard-24", "on-demand"))
    output = world.up(settings(cpu=2, render=render), check=False)
    assert 'NodePool render was created in the error state "RUNNING_WITH_ERROR"' in output
    assert "the pool exists, but GKE got none or not all of its g2-standard-24" in output
    assert (
        f"gcloud container node-pools describe render --cluster {STACK} --location {ZONE} --project {PROJECT}" in output
    )
    assert f"The zone 'projects/{PROJECT}/zones/{ZONE}' does not have enough resources available" in output
    names = [resource["urn"].rsplit("::", 1)[-1] for resource in world.project.resources(STACK) if "id" in resource]
    assert "render" in names
    assert "render has 1 of its 2 nodes" in world.project.run("berth", "status", "-s", STACK, check=False).stdout
    world.conditions()
    eventually(lambda: len(world.nodes("render")) == 2, "the instance group has tried again")
