"""The programs of docs/programs, run as Pulumi projects of their own: three components that
work without berth's program. Long: three environments' work for what berth's program has too.
"""

from pathlib import Path

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import CLONE, Project, eventually

pytestmark = [pytest.mark.lab, pytest.mark.long]

GOOGLE, OPERATORS, BERTH = (
    (CLONE / "docs/programs" / f"{name}.py").read_text(encoding="utf-8")
    for name in ("gke", "operators", "berth")
)


def project(lab: Lab, folder: Path, name: str, program: str) -> Project:
    """A Pulumi project with one program and one stack, which reaches the lab's API server."""
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": name, "runtime": "python"}))
    (folder / "__main__.py").write_text(program)
    created = Project(folder, lab)
    created.run("pulumi", "stack", "init", "own")
    text = lab.kubeconfig.read_text()
    created.run("pulumi", "config", "set", "--secret", "kubeconfig", "--", text)
    return created


@pytest.fixture(scope="module")
def projects(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> list[Project]:
    """The three projects, brought up in the order of docs/advanced.md."""
    folder = tmp_path_factory.mktemp("components")
    up: list[Project] = []
    for name, program in (("google", GOOGLE), ("operators", OPERATORS), ("berth", BERTH)):
        up.append(project(lab, folder / name, f"components-{name}", program))
        up[-1].up("own")
    return up


def test_the_cluster_has_its_pools(projects: list[Project]) -> None:
    nodes = {node["metadata"]["name"]: node for node in projects[0].get("nodes")}
    pools = sorted(
        node["metadata"]["labels"]["cloud.google.com/gke-nodepool"] for node in nodes.values()
    )
    assert pools == ["cpu", "cpu", "dev"]
    assert "kubeconfig" in projects[0].outputs("own")


def test_the_gpu_operator_shares_the_gpus(projects: list[Project]) -> None:
    def shares() -> list[str]:
        nodes = projects[1].get("nodes", "-l", "cloud.google.com/gke-nodepool=dev")
        return [node["status"]["allocatable"].get("nvidia.com/gpu", "0") for node in nodes]

    eventually(lambda: shares() == ["8"], "two L4 are eight shares")


def test_the_berth_is_ready_and_isolated(projects: list[Project]) -> None:
    namespace = projects[2].outputs("own")["namespace"]
    assert namespace == "berth-alice"

    def state() -> str:
        (cluster,) = projects[2].get("rayclusters", "-n", namespace)
        return str(cluster.get("status", {}).get("state"))

    eventually(lambda: state() == "ready", "the RayCluster is ready", 120)
    kinds = {resource["type"].rpartition(":")[2] for resource in projects[2].resources("own")}
    assert {"Berth", "NetworkPolicy", "ResourceQuota", "RayCluster"} <= kinds
