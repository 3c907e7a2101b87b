"""Shipped RayService without a GPU until somebody asks; Ray Serve and Ray's autoscaler are
simulated.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import CLONE, Project, eventually

pytestmark = pytest.mark.lab

SHIPPED = "stacks/gallery/Pulumi.serve.yaml"
DIFFUSION = "berth-stable-diffusion"


@pytest.fixture
def gallery(lab: Lab, tmp_path: Path) -> Project:
    """A project with the gallery beside its stacks."""
    lab.forget()
    project = Project.make(tmp_path / "project", lab)
    shutil.copytree(CLONE / "stacks/gallery", project.folder / "stacks/gallery")
    return project


def gpu_nodes(project: Project) -> list[dict[str, Any]]:
    return project.get("nodes", "-l", "cloud.google.com/gke-nodepool=gpu")


def diffusion(project: Project) -> dict[str, Any]:
    """The service as `berth status` tells of it, which ends with 0."""
    (service,) = json.loads(project.run("berth", "status", "-s", "serve", "--json").stdout)["services"]
    return dict(service)


def test_the_shipped_service_is_ready_without_a_gpu(gallery: Project) -> None:
    shutil.copy2(CLONE / SHIPPED, gallery.folder / "stacks")
    gallery.up("serve")
    service = diffusion(gallery)
    assert (service["state"], service["applicationsRunning"], service["reasons"]) == ("ready", 1, [])
    assert gpu_nodes(gallery) == []
    for head in gallery.get("pods", "-n", DIFFUSION, "-l", "ray.io/node-type=head"):
        names = {"imagine.py", "diffusion.py", "noise.py"}
        (volume,) = [entry for entry in head["spec"]["volumes"] if "downwardAPI" in entry]
        assert {item["path"] for item in volume["downwardAPI"]["items"]} == names
    gallery.up("serve", "--expect-no-changes")


def test_a_request_brings_a_worker_and_its_node_and_both_go_after_it(gallery: Project) -> None:
    """Shipped settings with shorter delays; Ray's autoscaler, Serve and the pool's autoscaler are
    simulated.
    """
    text = (CLONE / SHIPPED).read_text(encoding="utf-8")
    settings = yaml.safe_load(text)["config"]["berth:environment"]
    service = settings["services"]["stable-diffusion"]
    service["workers"]["idleTimeout"] = "5s"
    (painter,) = service["serveConfig"]["applications"][0]["deployments"]
    painter["autoscaling_config"]["downscale_delay_s"] = 10
    gallery.write("serve", environment=settings)
    gallery.up("serve")
    assert gpu_nodes(gallery) == []

    def workers() -> list[dict[str, Any]]:
        return gallery.get("pods", "-n", DIFFUSION, "-l", "ray.io/node-type=worker")

    path = f"/api/v1/namespaces/{DIFFUSION}/services/stable-diffusion-serve-svc:8000/proxy/imagine?prompt=ship"
    asked = gallery.run("kubectl", "get", "--raw", path, check=False)
    assert "in the lab no container runs" in asked.stdout + asked.stderr
    eventually(lambda: len(workers()) == 1, "Ray asks for a worker")
    eventually(lambda: [pod["status"].get("phase") for pod in workers()] == ["Running"], "a node comes for it")
    (worker,), (node,) = workers(), gpu_nodes(gallery)
    assert worker["spec"]["nodeName"] == node["metadata"]["name"]
    assert worker["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert diffusion(gallery)["state"] == "ready", "the application runs, whether or not anybody asks"
    gallery.run("pulumi", "preview", "-s", "serve", "--expect-no-changes")

    eventually(lambda: workers() == [], "the worker goes when nobody asks")
    eventually(lambda: gpu_nodes(gallery) == [], "its node goes when it has been idle", seconds=150)
    assert diffusion(gallery)["state"] == "ready"
