"""A hundred berths on shared pools: all become ready, and the removal of one changes no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import SMALL, Project, Settings, environment_settings, eventually

pytestmark = [pytest.mark.lab, pytest.mark.long]

BERTHS = [f"eng-{number:03}" for number in range(100)]
UPDATE_SECONDS = 1200


def environment(lab: Lab, engineers: list[str]) -> Settings:
    return environment_settings(
        lab,
        {
            "cpu": {"machineType": "n2-standard-128", "nodes": 1},
            "dev": {"machineType": "a4-highgpu-8g", "nodes": 1, "sharing": "any"},
        },
        "gpu",
        sharing={"any": {"kind": "time-slicing", "replicas": 16}},
        defaults=SMALL | {"wait": {"timeout": "10m"}},
        engineers={name: {} for name in engineers},
    )


def up(project: Project) -> str:
    command = ["pulumi", "up", "-s", "hundred", "--yes", "--skip-preview"]
    return project.lab.run(command, cwd=project.folder, timeout=UPDATE_SECONDS).stdout


@pytest.fixture
def fleet(lab: Lab, tmp_path: Path) -> Project:
    project = Project.make(tmp_path / "project", lab)
    project.write("hundred", environment=environment(lab, BERTHS))
    project.run("pulumi", "stack", "init", "hundred", "--no-select")
    return project


def settled(project: Project) -> dict[str, str]:
    """Resource versions of all objects, once they no longer change."""
    seen: list[dict[str, str]] = [{}]

    def still() -> bool:
        seen.append(project.versions())
        return seen[-1] == seen[-2]

    eventually(still, "the operator has nothing more to say", seconds=120)
    return seen[-1]


def test_a_hundred_berths_are_ready_and_one_leaves_the_others_as_they_are(fleet: Project) -> None:
    up(fleet)
    report = json.loads(fleet.run("berth", "status", "-s", "hundred", "--json").stdout)
    assert len(report["berths"]) == len(BERTHS)
    assert {berth["state"] for berth in report["berths"]} == {"ready"}
    assert {berth["workersReady"] for berth in report["berths"]} == {1}
    before = settled(fleet)

    fleet.write("hundred", environment=environment(fleet.lab, BERTHS[1:]))
    up(fleet)
    gone = f"berth-{BERTHS[0]}"
    eventually(lambda: not any(gone in name for name in fleet.versions()), "the berth that left is gone")
    after = settled(fleet)
    assert after == {name: version for name, version in before.items() if gone not in name}
    assert len([name for name in after if name.startswith("RayCluster ")]) == len(BERTHS) - 1
