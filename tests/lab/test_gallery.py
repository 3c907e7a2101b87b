"""Gallery (docs/gallery.md): the shipped environments come up in the lab unchanged, and Pulumi
leaves Ray's autoscaler alone. Long: test_prod brings `prod` up, and test_isolation has an
autoscaler.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import CLONE, Project, eventually

pytestmark = pytest.mark.lab


PLUGIN = "nvidia-device-plugin-daemonset"
SHIPPED = {
    "solo": "stacks/gallery",
    "groups": "stacks/gallery",
    "serve": "stacks/gallery",
    "dev": "stacks",
    "mixed": "stacks/gallery",
    "nested": "stacks/gallery",
}


@pytest.fixture
def gallery(lab: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    """Project with one shipped stack file, unchanged, and its environment up."""
    lab.forget()
    stack: str = request.param
    project = Project.make(tmp_path / "project", lab)
    shutil.copytree(CLONE / "stacks/gallery", project.folder / "stacks/gallery")
    shutil.copy2(CLONE / SHIPPED[stack] / f"Pulumi.{stack}.yaml", project.folder / "stacks")
    project.up(stack)
    return project


def test_every_stack_of_the_gallery_is_tested_here() -> None:
    files = (CLONE / "stacks/gallery").glob("*.yaml")
    assert {file.name for file in files} == {
        f"Pulumi.{name}.yaml" for name in SHIPPED if SHIPPED[name] != "stacks"
    }


def settings(project: Project, stack: str) -> dict[str, Any]:
    text = (project.folder / "stacks" / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text)["config"]["berth:environment"])


def clusters(project: Project) -> dict[str, tuple[str, int]]:
    """State and ready workers of each RayCluster."""
    found = {
        cluster["metadata"]["name"]: cluster["status"]
        for cluster in project.get("rayclusters", "-A")
    }
    return {
        name: (status["state"], status.get("readyWorkerReplicas", 0))
        for name, status in found.items()
    }


def nodes(project: Project, pool: str) -> list[dict[str, Any]]:
    return project.get("nodes", "-l", f"cloud.google.com/gke-nodepool={pool}")


def running(project: Project, owner: str) -> set[str]:
    """UIDs of a berth's workers that run."""
    return {
        pod["metadata"]["uid"]
        for pod in project.workers(owner)
        if pod["status"].get("phase") == "Running"
    }


def scale(project: Project, owner: str, workers: int, group: int = 0) -> None:
    """Ask for workers as Ray's autoscaler does: a JSON patch, sent by Python's requests."""
    patch = [
        {"op": "replace", "path": f"/spec/workerGroupSpecs/{group}/replicas", "value": workers}
    ]
    where = [
        "-n",
        f"berth-{owner}",
        "--type=json",
        "--field-manager=python-requests",
        "-p",
        json.dumps(patch),
    ]
    project.run("kubectl", "patch", "raycluster", owner, *where)


def seen(project: Project, owner: str) -> bool:
    """Whether the operator has observed the RayCluster's present generation."""
    (cluster,) = project.get("rayclusters", "-n", f"berth-{owner}")
    return bool(cluster["status"].get("observedGeneration") == cluster["metadata"]["generation"])


@pytest.mark.long
@pytest.mark.parametrize("gallery", ["solo"], indirect=True)
def test_solo_costs_no_gpu_until_ray_asks_and_pulumi_leaves_the_number_to_ray(
    gallery: Project,
) -> None:
    assert clusters(gallery) == {"me": ("ready", 0)}
    assert nodes(gallery, "gpu") == []
    (cluster,) = gallery.get("rayclusters", "-n", "berth-me")
    assert cluster["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 600

    scale(gallery, "me", 1)
    eventually(lambda: len(running(gallery, "me")) == 1, "a node comes, and a worker runs on it")
    before = running(gallery, "me")
    gallery.run("pulumi", "preview", "-s", "solo", "--expect-no-changes")

    # The API server has the list of groups owned as a whole, by whoever wrote it last: an edit
    # beside the number meets it.
    changed = settings(gallery, "solo")
    changed["engineers"]["me"]["workers"]["max"] = 1
    gallery.write("solo", environment=changed)
    gallery.up("solo")
    (cluster,) = gallery.get("rayclusters", "-n", "berth-me")
    assert cluster["spec"]["workerGroupSpecs"][0]["maxReplicas"] == 1
    eventually(lambda: seen(gallery, "me"), "the operator has seen the edit")
    assert running(gallery, "me") == before, "KubeRay leaves it to the autoscaler which workers go"


@pytest.mark.long
@pytest.mark.parametrize("gallery", ["serve"], indirect=True)
def test_serve_is_ready_with_its_code_and_without_a_gpu(gallery: Project) -> None:
    """tests/real/test_serve.py asks the service for a picture."""
    (service,) = gallery.status("serve")["services"]
    assert (service["state"], service["reasons"]) == ("ready", [])
    assert nodes(gallery, "gpu") == []
    (head,) = gallery.get("pods", "-n", "berth-stable-diffusion", "-l", "ray.io/node-type=head")
    (volume,) = [entry for entry in head["spec"]["volumes"] if "downwardAPI" in entry]
    assert {item["path"] for item in volume["downwardAPI"]["items"]} == {
        "imagine.py",
        "diffusion.py",
        "noise.py",
    }
    gallery.up("serve", "--expect-no-changes")


@pytest.mark.long
@pytest.mark.parametrize("gallery", ["groups"], indirect=True)
def test_groups_get_nodes_of_their_own_and_leave_each_other_alone(gallery: Project) -> None:
    assert clusters(gallery) == {"me": ("ready", 0)}
    names = [
        group["groupName"]
        for group in gallery.get("rayclusters", "-n", "berth-me")[0]["spec"]["workerGroupSpecs"]
    ]
    assert names == ["a4", "cpu", "l4"]
    before: set[str] = set()
    for number, name in enumerate(names):
        scale(gallery, "me", 1, number)
        eventually(lambda: running(gallery, "me") > before, f"a worker of {name} runs")  # noqa: B023 - called here
        assert len(nodes(gallery, name)) == 1
        before = running(gallery, "me")
    gallery.up("groups", "--expect-no-changes")


@pytest.mark.long
@pytest.mark.parametrize("gallery", ["dev"], indirect=True)
def test_dev_shares_each_gpu_among_four(gallery: Project) -> None:
    assert clusters(gallery) == {"bob": ("ready", 2), "carol": ("ready", 1)}
    (node,) = nodes(gallery, "dev")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8", "2 L4, 4 shares of each"
    gallery.up("dev", "--expect-no-changes")


@pytest.mark.long
@pytest.mark.parametrize("gallery", ["mixed"], indirect=True)
def test_mixed_has_shares_whole_gpus_and_the_fabric(gallery: Project) -> None:
    assert clusters(gallery) == {"bob": ("ready", 2), "carol": ("ready", 0), "train": ("ready", 2)}
    assert nodes(gallery, "batch") == []
    assert {
        node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes(gallery, "shared")
    } == {"8"}
    train = nodes(gallery, "train")
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in train] == ["8", "8"], (
        "GKE's plugin alone"
    )
    operator = {
        pod["spec"].get("nodeName")
        for pod in gallery.get("pods", "-n", "gpu-operator", "-l", f"app={PLUGIN}")
    }
    assert operator == {node["metadata"]["name"] for node in nodes(gallery, "shared")}
    claims = [
        claim["status"]["allocation"]["devices"]["results"]
        for claim in gallery.get("resourceclaims", "-A")
    ]
    assert [len(claim) for claim in claims] == [8, 8], "8 NICs for each worker of train"
    (group,) = gallery.get("rayclusters", "-n", "berth-carol")[0]["spec"]["workerGroupSpecs"]
    assert group["rayStartParams"]["resources"] == "'{\"spot\": 1}'"
    scale(gallery, "carol", 1)
    eventually(
        lambda: len(running(gallery, "carol")) == 1, "a spot node comes, and a worker runs on it"
    )
    (node,) = nodes(gallery, "batch")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4", "whole GPUs"
    (worker,) = gallery.workers("carol")
    assert "'{\"spot\": 1}'" in json.dumps(worker).replace('\\"', '"'), "Ray is started with it"
    assert gallery.get("cronjobs", "-n", "berth-keeper"), (
        "somebody suspends berths that nobody uses"
    )


@pytest.mark.long
@pytest.mark.parametrize("gallery", ["nested"], indirect=True)
def test_nested_has_podmans_parts_in_every_pod_and_no_privileges(gallery: Project) -> None:
    assert clusters(gallery) == {"me": ("ready", 2)}
    (namespace,) = [
        item for item in gallery.get("namespaces") if item["metadata"]["name"] == "berth-me"
    ]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    pods = gallery.get("pods", "-n", "berth-me", "-l", "ray.io/cluster=me")
    assert len(pods) == 3
    image = settings(gallery, "nested")["defaults"]["image"]
    for pod in pods:
        ray = pod["spec"]["containers"][0]
        assert ray["image"] == image
        mounts = {mount["mountPath"] for mount in ray["volumeMounts"]}
        assert {"/opt/berth/nested", "/etc/cdi", "/var/lib/containers"} <= mounts
        context = ray["securityContext"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not context["allowPrivilegeEscalation"]
        assert context["seccompProfile"] == context["appArmorProfile"] == {"type": "Unconfined"}
        assert not context.get("privileged")
    gallery.up("nested", "--expect-no-changes")
