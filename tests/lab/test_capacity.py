"""A reservation with too few machines: said before an update, silent in the middle of one, as
Google's own provider is, and over once there are machines.
"""

import json
import signal
import subprocess
from typing import Any

import pytest
import yaml

from berth.lab.plugins.gcp.conditions import SHIPPED
from tests.lab.conftest import Lab
from tests.lab.project import Project, environment_settings, eventually, started

pytestmark = pytest.mark.lab

STACK = "capacity"
PROJECT = "berth-test"
POOL = "gcp:container/nodePool:NodePool"


def reserve(lab: Lab, count: int) -> None:
    """Let the project have so many reserved machines, those in use included."""
    reservation = {
        "project": PROJECT,
        "name": "a4",
        "zone": "us-central1-b",
        "machineType": "a4-highgpu-8g",
        "count": count,
    }
    file = lab.home.cloud / SHIPPED.name
    file.write_text(
        yaml.safe_dump({**yaml.safe_load(file.read_text()), "reservations": [reservation]})
    )


def settings(lab: Lab, nodes: int) -> dict[str, Any]:
    train = {
        "machineType": "a4-highgpu-8g",
        "nodes": nodes,
        "rdma": "none",
        "capacity": {"kind": "reservation", "reservation": "a4"},
    }
    return environment_settings(lab, {"train": train}, policies={"waived": {"rdma-whole": "small"}})


@pytest.fixture(scope="module")
def project(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project.make(tmp_path_factory.mktemp("capacity") / "project", lab)
    project.write(STACK, environment=settings(lab, 2))
    project.run("pulumi", "stack", "init", STACK, "--no-select")
    return project


def test_a_full_reservation_is_said_before_an_update(project: Project, lab: Lab) -> None:
    reserve(lab, 1)
    shown = project.run("berth", "preview", "-s", STACK, "--json")
    (warning,) = [
        line for line in json.loads(shown.stdout)["warnings"] if "reservation 'a4'" in line
    ]
    assert f"of project {PROJECT} in us-central1-b has 1 of its 1 a4-highgpu-8g free" in warning
    assert "the plan takes 2 (train)" in warning
    refused = project.run("berth", "up", "-s", STACK, "--yes", check=False)
    assert refused.returncode == 1
    assert "nothing was done" in refused.stderr
    assert "set fewer pools.train.nodes, or free machines" in " ".join(refused.stderr.split())
    assert project.resources(STACK) == []


def pending(project: Project) -> list[str]:
    """Types of the resources that the engine is creating."""
    latest = json.loads(project.state(STACK).read_text())["checkpoint"]["latest"]
    return [
        operation["resource"]["type"]
        for operation in latest.get("pending_operations") or []
        if operation["type"] == "creating"
    ]


def interrupt(process: subprocess.Popen[str]) -> None:
    """Interrupt an update, which says that it cancels what it has not begun."""
    process.send_signal(signal.SIGINT)
    assert process.stdout
    assert any("cancel" in line.lower() for line in process.stdout)


@pytest.mark.long
def test_an_update_that_waits_for_machines_goes_on_when_there_are_some(
    project: Project, lab: Lab
) -> None:
    """The first interrupt begins nothing more, and waits; the provider does not hear of it."""
    reserve(lab, 1)
    update = ("pulumi", "up", "-s", STACK, "--yes", "--skip-preview")
    with started(project, *update) as process:
        eventually(lambda: pending(project) == [POOL], "only the pool is still being created")
        interrupt(process)
        assert pending(project) == [POOL]
        reserve(lab, 2)
        process.wait()
    assert process.returncode != 0
    assert pending(project) == []
    assert [
        r["id"]
        for r in project.resources(STACK)
        if r["type"] == POOL and r["urn"].endswith("::train")
    ]


@pytest.mark.long
def test_a_second_interrupt_ends_an_update_that_waits_for_machines(
    project: Project, lab: Lab
) -> None:
    """The next update says what may be there, and goes on."""
    grown = settings(lab, 2)
    grown["pools"]["more"] = grown["pools"]["train"]
    project.write(STACK, environment=grown)
    update = ("pulumi", "up", "-s", STACK, "--yes", "--skip-preview")
    with started(project, *update) as process:
        eventually(lambda: pending(project) == [POOL], "only the pool is still being created")
        interrupt(process)
        process.send_signal(signal.SIGINT)
        process.wait()
    assert pending(project) == [POOL]
    reserve(lab, 4)
    again = project.run("berth", "up", "-s", STACK, "--yes")
    assert "an update was killed while it created more, which may exist or not" in again.stderr
