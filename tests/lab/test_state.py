"""Size of a berth in the state of its stack: the engine writes the whole state before and after
each step, so that a byte of one berth costs time at each step of all others.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from berth.cli.backend import state_in_folder
from tests.lab.conftest import Lab
from tests.lab.project import Project, brought_up, environment_settings

pytestmark = pytest.mark.lab

MOST_RESOURCES, MOST_BYTES = 6, 24_500
OF_A_BERTH = {"Berth", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "RayCluster"}
Object = dict[str, Any]


@pytest.fixture(scope="module")
def project(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Environment with two default engineers."""
    pools = {"dev": {"machineType": "a4-highgpu-8g", "nodes": 1}}
    settings = environment_settings(lab, pools, engineers={"alice": {}, "bob": {}})
    return brought_up(tmp_path_factory.mktemp("state"), lab, "small", settings)


@pytest.fixture(scope="module")
def resources(project: Project) -> list[Object]:
    return project.resources("small")


def of_engineer(resources: list[Object], name: str) -> list[Object]:
    return [item for item in resources if item["urn"].split("::")[-1] in {name, f"{name}-pods", f"{name}-berth"}]


def test_a_default_berth_is_few_resources_and_few_bytes(resources: list[Object]) -> None:
    berth = of_engineer(resources, "alice")
    kinds = Counter(item["type"].rpartition(":")[2] for item in berth)
    assert kinds == Counter(OF_A_BERTH)
    assert len(berth) <= MOST_RESOURCES
    assert len([item for item in resources if "alice" in item["urn"]]) == len(berth), "nothing else is the berth's"
    sizes = {item["type"]: len(json.dumps(item, separators=(",", ":"))) for item in berth}
    assert sum(sizes.values()) <= MOST_BYTES, sizes


def test_the_state_has_no_call_stacks_of_the_program(project: Project, resources: list[Object]) -> None:
    # The SDK registers the stack before it runs the program.
    of_program = [item for item in resources if item["type"] != "pulumi:pulumi:Stack"]
    assert [item["urn"] for item in of_program if item.get("stackTrace") or item.get("sourcePosition")] == []
    assert project.preview("small") == {}


def test_the_file_of_a_state_has_what_pulumi_exports(
    project: Project, resources: list[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = json.loads(project.run("pulumi", "stack", "export", "-s", "small").stdout)
    assert exported["deployment"]["resources"] == resources
    monkeypatch.setenv("PULUMI_BACKEND_URL", project.lab.env["PULUMI_BACKEND_URL"])
    monkeypatch.chdir(project.folder)
    assert state_in_folder("small") == exported


def test_no_file_beside_the_state_can_be_cut_off_by_a_kill(project: Project, resources: list[Object]) -> None:
    assert resources
    assert not list(project.lab.home.backend.rglob("*.attrs"))


def test_what_is_inside_goes_with_its_namespace_after_the_raycluster(resources: list[Object]) -> None:
    berth = {item["type"].rpartition(":")[2]: item for item in of_engineer(resources, "alice")}
    inside = OF_A_BERTH - {"Berth", "Namespace", "RayCluster"}
    namespace = berth["Namespace"]["urn"]
    assert {kind for kind, item in berth.items() if item.get("deletedWith") == namespace} == inside
    assert {berth[kind]["urn"] for kind in inside} == set(berth["RayCluster"]["dependencies"])


def test_an_engineer_who_leaves_takes_everything_along(project: Project) -> None:
    (before,) = project.get("rayclusters", "-n", "berth-bob")
    pools = {"dev": {"machineType": "a4-highgpu-8g", "nodes": 1}}
    project.write("small", environment=environment_settings(project.lab, pools, engineers={"bob": {}}))
    project.up("small")
    assert "berth-alice" not in {item["metadata"]["name"] for item in project.get("namespaces")}
    assert of_engineer(project.resources("small"), "alice") == []
    (after,) = project.get("rayclusters", "-n", "berth-bob")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
