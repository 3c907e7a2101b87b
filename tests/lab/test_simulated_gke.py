"""Simulated GKE under the real engine and the real SDK: effects of pools on the lab's nodes."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import Done, eventually

pytestmark = pytest.mark.lab

GPU = "nvidia.com/gpu"
POOL = "cloud.google.com/gke-nodepool"
STACK = "simulated-gke"


class Google:
    """The program of programs/gke as a stack of its own."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        shutil.copytree(Path(__file__).parent / "programs" / "gke", folder)
        self.lab = lab
        self.folder = folder
        self.there: dict[str, object] | None = None
        self.run("stack", "init", STACK)
        self.config(gpus=2)

    def run(self, *command: str, check: bool = True) -> Done:
        return self.lab.run(["pulumi", *command, "--non-interactive"], cwd=self.folder, check=check)

    def config(self, **values: object) -> None:
        pairs = {f"simulated-gke:{key}": value for key, value in values.items()}
        (self.folder / f"Pulumi.{STACK}.yaml").write_text(yaml.safe_dump({"config": pairs}))

    def up(self, *options: str, check: bool = True, **values: Any) -> Done:
        """Bring the stack to these settings."""
        self.config(**values)
        done = self.run("up", "--yes", "--skip-preview", *options, check=check)
        self.there = values if done.returncode == 0 else None
        return done

    def at(self, **values: Any) -> None:
        """Bring the stack to these settings at a test's start; without a change there is no
        update.
        """
        if self.there != values:
            self.up(**values)

    def planned(self, **values: object) -> dict[str, str]:
        """Operations other than `same`, by the resource's name."""
        self.config(**values)
        steps = json.loads(self.run("preview", "--json").stdout)["steps"]
        return {step["urn"].rsplit("::", 1)[-1]: step["op"] for step in steps if step["op"] != "same"}

    def outputs(self) -> dict[str, Any]:
        return dict(json.loads(self.run("stack", "output", "--json", "--show-secrets").stdout))

    def nodes(self, pool: str = "gpus") -> dict[str, dict[str, Any]]:
        found = self.lab.get("nodes", "-l", f"{POOL}={pool}")["items"]
        return {node["metadata"]["name"]: node for node in found}

    def gpus(self) -> list[str | None]:
        return [node["status"]["allocatable"].get(GPU) for node in self.nodes().values()]

    def files(self) -> list[str]:
        return sorted(path.name for path in self.lab.home.cloud.rglob("*.json"))


@pytest.fixture(scope="module")
def google(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Google]:
    google = Google(lab, tmp_path_factory.mktemp("gke") / "program")
    google.up(gpus=2)
    yield google
    google.run("destroy", "--yes", "--skip-preview")
    google.run("stack", "rm", STACK, "--yes")


def test_a_preview_of_a_new_stack_creates_nothing(lab: Lab, tmp_path: Path) -> None:
    # Unknown inputs throughout: ids are known only once the network and the cluster are there.
    google = Google(lab, tmp_path / "program")
    files, planned = google.files(), google.planned(gpus=2)
    assert {"network", "subnetwork", "internal", "cluster", "gpus", "scaled"} < set(planned)
    assert set(planned.values()) == {"create"}
    assert google.files() == files
    google.run("stack", "rm", STACK, "--yes")


def test_nodes_have_the_gpus_of_their_machine(google: Google) -> None:
    google.at(gpus=2)
    eventually(lambda: google.gpus() == ["8", "8"], "both nodes advertise 8 GPUs")
    for node in google.nodes().values():
        assert node["metadata"]["labels"]["cloud.google.com/gke-accelerator"] == "nvidia-b200"
        assert {"key": GPU, "value": "present", "effect": "NoSchedule"} in node["spec"]["taints"]
        assert node["status"]["capacity"]["cpu"] == "224"


def test_the_clusters_endpoint_is_the_labs_api_server(google: Google) -> None:
    outputs = google.outputs()
    server = yaml.safe_load(google.lab.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    assert f"https://{outputs['endpoint']}" == server
    assert b"BEGIN CERTIFICATE" in base64.b64decode(outputs["authority"])
    assert outputs["groups"][0].endswith("-grp")


def test_an_update_without_changes_changes_nothing(google: Google) -> None:
    google.at(gpus=2)
    assert google.planned(gpus=2) == {}
    google.up("--expect-no-changes", gpus=2)


def test_a_pool_grows_and_shrinks_and_keeps_its_first_nodes(google: Google) -> None:
    google.at(gpus=2)
    two = set(google.nodes())
    assert google.planned(gpus=4) == {"gpus": "update"}
    google.up(gpus=4)
    eventually(lambda: google.gpus() == ["8"] * 4, "four nodes advertise 8 GPUs")
    assert two < set(google.nodes())
    google.up(gpus=2)
    assert set(google.nodes()) == two


def test_pods_of_removed_nodes_are_deleted(google: Google) -> None:
    google.at(gpus=2)
    eventually(lambda: google.gpus() == ["8", "8"], "both nodes advertise 8 GPUs")
    for number, node in enumerate(google.nodes()):
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"on-{number}", "namespace": "default"},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main", "image": "none", "resources": {"limits": {GPU: "8"}}}],
            },
        }
        google.lab.run(["kubectl", "create", "-f", "-"], stdin=json.dumps(manifest))
    google.up(gpus=1)
    left = google.lab.get("pods", "-n", "default")["items"]
    assert [pod["spec"]["nodeName"] for pod in left] == list(google.nodes())
    google.lab.run(["kubectl", "delete", "pods", "-n", "default", "--all", "--force"])


def test_labels_change_on_existing_nodes(google: Google) -> None:
    google.at(gpus=2)
    uids = {node["metadata"]["uid"] for node in google.nodes().values()}
    google.lab.run(["kubectl", "label", "nodes", "-l", f"{POOL}=gpus", "seen-by=alice"])
    google.up(gpus=2, owner="bob")
    nodes = google.nodes().values()
    assert {node["metadata"]["labels"]["owner"] for node in nodes} == {"bob"}
    assert {node["metadata"]["labels"]["seen-by"] for node in nodes} == {"alice"}
    assert {node["metadata"]["uid"] for node in nodes} == uids


def test_a_refresh_finds_deleted_nodes_and_an_update_brings_them_back(google: Google) -> None:
    google.at(gpus=2)
    names = set(google.nodes())
    google.lab.run(["kubectl", "delete", "node", min(names)])
    google.run("refresh", "--yes", "--skip-preview")
    google.there = None
    assert google.planned(gpus=2) == {"gpus": "update"}
    google.up(gpus=2)
    assert set(google.nodes()) == names


def test_spot_replaces_the_pool(google: Google) -> None:
    google.at(gpus=2)
    planned = google.planned(gpus=2, spot=True)
    assert set(planned) == {"gpus"}
    google.up(gpus=2, spot=True)
    assert {node["metadata"]["labels"].get("cloud.google.com/gke-spot") for node in google.nodes().values()} == {"true"}


def test_a_pool_of_no_nodes_grows_for_pods_that_need_it(google: Google) -> None:
    google.at(gpus=2)
    assert google.nodes("scaled") == {}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "6"}}}
    for number in range(2):
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"wants-{number}", "namespace": "default"},
            "spec": {"nodeSelector": {"scaled": "yes"}, "containers": [container]},
        }
        google.lab.run(["kubectl", "create", "-f", "-"], stdin=json.dumps(manifest))

    def phases() -> list[str]:
        return [pod["status"]["phase"] for pod in google.lab.get("pods", "-n", "default")["items"]]

    eventually(lambda: phases() == ["Running"] * 2, "both pods run on nodes that were not there")
    assert len(google.nodes("scaled")) == 2
    # The autoscaler owns their number, not the program.
    assert google.planned(gpus=2) == {}
    google.lab.run(["kubectl", "delete", "pods", "-n", "default", "--all", "--force"])


def test_a_destroyed_stack_leaves_no_files_and_no_nodes(google: Google) -> None:
    google.at(gpus=2)
    google.run("destroy", "--yes", "--skip-preview")
    google.there = None
    assert google.files() == []
    assert google.nodes() == google.nodes("scaled") == {}
