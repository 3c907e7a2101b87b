"""Shipped production environment, unmodified, in the lab: created, changed, drifted, and removed
without a trace.
"""

import json
import os
import shutil
from typing import Any

import pytest
import yaml

from berth.components.hardware.machines import RDMA_NICS
from berth.lab.plugins.gcp.store import Store
from tests.lab.conftest import Lab
from tests.lab.project import CLONE, Project, eventually

pytestmark = pytest.mark.lab

STACK = "prod"
DRIFTED = 4

FIREWALL = "gcp:compute/firewall:Firewall"
UNPROTECTED = {"deletion-protection": "it is being taken down"}


def shipped() -> dict[str, Any]:
    """The settings of stacks/Pulumi.prod.yaml."""
    text = (CLONE / "stacks" / f"Pulumi.{STACK}.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text)["config"]["berth:environment"])


@pytest.fixture(scope="module")
def project(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The clone's program, with the shipped file as it is."""
    project = Project.make(tmp_path_factory.mktemp("prod") / "project", lab)
    shutil.copy2(CLONE / "stacks" / f"Pulumi.{STACK}.yaml", project.folder / "stacks")
    project.run("pulumi", "stack", "init", STACK, "--no-select")
    return project


@pytest.fixture(scope="module")
def prod(project: Project) -> Project:
    """Project that is up. The last test destroys it."""
    project.up(STACK)
    return project


def in_the_cloud(project: Project) -> dict[str, list[str]]:
    """Names of the simulated project's resources, by collection."""
    found: dict[str, list[str]] = {}
    for record in Store(project.lab.home.cloud).list():
        found.setdefault(record.id.split("/")[-2], []).append(record.name)
    return found


def berth_preview(project: Project, *options: str) -> tuple[int, dict[str, Any]]:
    done = project.run("berth", "preview", "-s", STACK, "--json", *options, check=False)
    assert done.stdout, done.stderr
    return done.returncode, dict(json.loads(done.stdout))


def test_preview_needs_no_network_and_no_credentials(project: Project) -> None:
    command = ["pulumi", "preview", "-s", STACK, "--non-interactive"]
    if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip"):
        # A network namespace with nothing in it but loopback, which the engine needs to speak to
        # its plugins.
        command = ["unshare", "--net", "sh", "-c", f"ip link set lo up && exec {' '.join(command)}"]
    done = project.run(*command)
    assert "error" not in done.stderr
    assert "gcp:container:NodePool" in done.stdout


def test_it_comes_up_as_it_is_shipped(prod: Project) -> None:
    cloud = in_the_cloud(prod)
    assert sorted(cloud["nodePools"]) == ["cpu", "dev", "train"]
    assert len(cloud["networks"]) == 3, "primary, second gVNIC, RDMA"
    assert len(cloud["subnetworks"]) == 2 + RDMA_NICS
    assert not [name for name in cloud["firewalls"] if "rdma" in name]
    nodes = prod.get("nodes", "-l", "cloud.google.com/gke-nodepool=train")
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8", "8"]
    clusters = {cluster["metadata"]["name"]: cluster for cluster in prod.get("rayclusters", "-A")}
    assert clusters["train"]["status"]["state"] == "ready"
    daemons = {
        daemon_set["metadata"]["name"]: daemon_set["status"]["numberReady"]
        for daemon_set in prod.get("daemonsets", "-A")
    }
    assert daemons == {"dranet": 2, "nccl-rdma-installer": 2}, "on the nodes of train, and nowhere else"
    claims = [claim["status"]["allocation"]["devices"]["results"] for claim in prod.get("resourceclaims", "-A")]
    assert [{result["driver"] for result in claim} for claim in claims] == [{"dra.net"}] * 2
    assert [len(claim) for claim in claims] == [RDMA_NICS] * 2


def test_the_development_pool_scales_up_from_zero(prod: Project) -> None:
    eventually(lambda: len(prod.get("nodes", "-l", "cloud.google.com/gke-nodepool=dev")) == 1, "a node for bob")
    eventually(lambda: prod.run("berth", "status", "-s", STACK, check=False).returncode == 0, "all berths ready")


def test_the_fabric_is_proven_but_for_what_containers_would_do(prod: Project) -> None:
    done = prod.run("berth", "verify", "fabric", "-s", STACK, "--cluster", "train", "--json")
    found = {check["name"]: (check["verdict"], check["evidence"]) for check in json.loads(done.stdout)["checks"]}
    assert found["claims"] == ("pass", f"{RDMA_NICS} NICs of class dranet in each of 2 workers")
    assert found["scheduling"][0] == "pass"
    assert found["all-reduce"] == ("simulated", "simulated: this node runs no containers (KWOK)")


def test_it_is_protected_has_drift_only_where_something_is_gone_grows_and_then_leaves_nothing(prod: Project) -> None:
    store = Store(prod.lab.home.cloud)
    (firewall, *_) = store.list("firewalls")
    store.remove(firewall.id)
    drift, plan = berth_preview(prod, "--refresh", "--expect-no-changes")
    assert drift == DRIFTED
    assert [(change["operation"], change["type"]) for change in plan["changes"]] == [("create", FIREWALL)]
    there = prod.resources(STACK)
    refused = prod.run("pulumi", "destroy", "-s", STACK, "--yes", check=False)
    assert refused.returncode != 0
    assert "because it is protected" in refused.stdout + refused.stderr
    assert prod.resources(STACK) == there, "it is refused before anything is deleted"
    unprotected = shipped()["cluster"] | {"deletionProtection": False}
    waived = {"waived": shipped()["policies"]["waived"] | UNPROTECTED}
    pools = shipped()["pools"] | {"train": shipped()["pools"]["train"] | {"nodes": 3}}
    prod.write(STACK, environment=shipped() | {"pools": pools, "cluster": unprotected, "policies": waived})
    prod.up(STACK, "--refresh")
    assert firewall.name in in_the_cloud(prod)["firewalls"]
    assert len(prod.get("nodes", "-l", "cloud.google.com/gke-nodepool=train")) == 3
    prod.destroy(STACK)
    assert in_the_cloud(prod) == {}
    assert prod.resources(STACK) == []
