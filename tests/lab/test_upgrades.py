"""Upgrades of every operator from an older version, without any effect on RayClusters.

The charts of the version before are the lab's own charts with an older version, and with CRDs that
lack what the newer version brought. KubeRay 1.6 brought RayClusters' `authOptions.secretName` and
`upgradeStrategy`, and the kind RayCronJob (https://github.com/ray-project/kuberay,
ray-operator/config/crd/bases, v1.5.1 and v1.6.2). `upgradeStrategy` stays in the older CRD here:
berth writes it, and server-side apply refuses a field that no definition declares.

Long: a lab of its own, which never had a newer definition.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.core.fast_yaml import LOADER
from berth.components.hardware import versions
from tests.lab.conftest import Lab, brought_up
from tests.lab.project import SMALL, Project, Settings, environment_settings, eventually

pytestmark = [pytest.mark.lab, pytest.mark.long]

STACK = "upgraded"
BEFORE = {
    "kuberay-operator": "1.5.1",
    "gpu-operator": "v26.3.3",
    "dranet": "1.3.0",
    "dra-driver-nvidia-gpu": "0.4.0",
}
NOW = {
    "kuberay-operator": versions.KUBERAY,
    "gpu-operator": versions.GPU_OPERATOR,
    "dranet": versions.DRANET,
    "dra-driver-nvidia-gpu": versions.GPU_DRA,
}
MADE_BY = "ray.io/kuberay-version"
HEADS = "ray.io/node-type=head"
OLD_GIB = "us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib:v1.1.0"

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def older_chart(lab: Lab, folder: Path, chart: str) -> Path:
    """A chart of the lab in the version before."""
    target = folder / chart
    shutil.copytree(lab.home.charts / chart, target)
    file = target / "Chart.yaml"
    metadata = yaml.safe_load(file.read_text())
    metadata["version"] = BEFORE[chart]
    if chart != "kuberay-operator":  # the lab has built one operator only
        metadata["appVersion"] = BEFORE[chart]
    file.write_text(yaml.safe_dump(metadata))
    if chart == "kuberay-operator":
        (target / "crds" / "ray.io_raycronjobs.yaml").unlink()
        edit_schema(target / "crds" / "ray.io_rayclusters.yaml", without_secret_name)
    if chart == "gpu-operator":
        edit_schema(target / "crds" / "clusterpolicies.yaml", without_cdi)
        template = target / "templates" / "clusterpolicy.yaml"
        text, changes = re.subn(
            r"^  cdi:\n.*?(?=^  driver:)", "", template.read_text(), flags=re.MULTILINE | re.DOTALL
        )
        assert changes == 1
        template.write_text(text)
    return target


def without_secret_name(spec: dict[str, Any]) -> None:
    spec["properties"]["authOptions"]["properties"].pop("secretName")


def without_cdi(spec: dict[str, Any]) -> None:
    """Allow all parts of a ClusterPolicy that the chart writes, but `cdi`."""
    spec.pop("x-kubernetes-preserve-unknown-fields")
    parts = (
        "daemonsets",
        "dcgm",
        "dcgmExporter",
        "devicePlugin",
        "driver",
        "gfd",
        "hostPaths",
        "mig",
        "migManager",
    )
    rest = ("nodeStatusExporter", "operator", "toolkit", "validator")
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec["properties"] = dict.fromkeys((*parts, *rest), free)


def edit_schema(file: Path, change: Any) -> None:
    definition = yaml.load(file.read_text(), Loader=LOADER)  # noqa: S506 - either is safe
    for version in definition["spec"]["versions"]:
        if version["storage"]:
            change(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    file.write_text(yaml.dump(definition, Dumper=DUMPER))


def settings(charts: dict[str, Path], version: dict[str, str], gib: str | None) -> Settings:
    """Environment with everything that berth installs."""
    operators: Settings = {
        # Its version is that of the operator's image too, and the lab has built one.
        "kuberay": {"chart": str(charts["kuberay-operator"])}
        if "kuberay-operator" in charts
        else {},
        "gpu": {"chart": str(charts["gpu-operator"]), "version": version["gpu-operator"]},
        "dranet": {"chart": str(charts["dranet"]), "version": version["dranet"]},
        "gpuDra": {
            "chart": str(charts["dra-driver-nvidia-gpu"]),
            "version": version["dra-driver-nvidia-gpu"],
        },
    }
    if gib:
        operators["gib"] = {"image": gib}
    a4 = {"machineType": "a4-highgpu-8g", "nodes": 1}
    return {
        "project": "berth-test",
        "zone": "us-central1-b",
        "cluster": {"deletionProtection": False},
        "sharing": {"any": {"kind": "time-slicing", "replicas": 4}},
        "pools": {
            "cpu": {"machineType": "n2-standard-16", "nodes": 1},
            "dev": a4 | {"sharing": "any"},
            "train": a4 | {"rdma": "networks", "gpuAllocation": "dra"},
        },
        "operators": operators,
        "policies": {"waived": {"rdma-whole": "the tests have smaller workers too"}},
        "defaults": {"head": {"cpu": 1, "memory": "2Gi"}, "wait": {"timeout": "2m"}},
        "clusters": {
            "shared": {
                "workers": 2,
                "worker": {"pool": "dev", "gpus": 1, "cpu": 1, "memory": "2Gi"},
            },
            "pairs": {
                "workers": 2,
                "worker": {"pool": "train", "gpus": 2, "cpu": 8, "memory": "64Gi"},
            },
        },
    }


@dataclass
class Seen:
    """State of the cluster at one moment."""

    pods: dict[str, str]
    releases: dict[str, str]
    claims: dict[str, Any]

    @classmethod
    def now(cls, project: Project) -> Seen:
        pods = {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in project.get("pods", "-A", "-l", "ray.io/cluster")
            if "deletionTimestamp" not in pod["metadata"]
        }
        listed = json.loads(project.run("helm", "list", "-A", "-o", "json").stdout)
        claims = {
            claim["metadata"]["name"]: claim["status"]["allocation"]["devices"]["results"]
            for claim in project.get("resourceclaims", "-A")
        }
        return cls(pods, {release["name"]: release["chart"] for release in listed}, claims)


def knows_secret_name(project: Project) -> bool:
    """Whether the definition of RayClusters in the cluster has `authOptions.secretName`."""
    found = json.loads(
        project.run("kubectl", "get", "crd", "rayclusters.ray.io", "-o", "json").stdout
    )
    (stored,) = [version for version in found["spec"]["versions"] if version["storage"]]
    spec = stored["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return "secretName" in spec["authOptions"]["properties"]


def serves(project: Project, definition: str) -> bool:
    return project.run("kubectl", "get", "crd", definition, check=False).returncode == 0


def daemon_images(project: Project, name: str, namespace: str = "kube-system") -> set[str]:
    """Images of the first containers of a DaemonSet's pods."""
    pods = project.get("pods", "-n", namespace)
    own = [
        pod
        for pod in pods
        if any(
            reference["name"] == name for reference in pod["metadata"].get("ownerReferences", [])
        )
    ]
    return {
        [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]][0]["image"]
        for pod in own
    }


def keeps_pods_of_another_operator(project: Project, cluster: str) -> None:
    """Mark the head as created by another operator version with its own hash; the real operator
    adopts it.

    KubeRay v1.6.2, shouldRecreatePodsForUpgrade in
    ray-operator/controllers/ray/raycluster_controller.go.
    """
    selector = ["-n", f"berth-{cluster}", "-l", "ray.io/node-type=head"]
    foreign = [f"{MADE_BY}=v1.5.1", "ray.io/upgrade-strategy-recreate-hash=of-another-version"]
    project.run("kubectl", "annotate", "pods", *selector, "--overwrite", *foreign)

    def taken_over() -> bool:
        (head,) = project.get("pods", *selector)
        return bool(head["metadata"]["annotations"][MADE_BY] == f"v{versions.KUBERAY}")

    eventually(taken_over, "the operator has taken the head over")


@pytest.fixture(scope="module")
def own_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that never had a newer definition."""
    with brought_up(tmp_path_factory.mktemp("upgrades") / "lab") as lab:
        yield lab


def test_every_operator_is_upgraded_and_no_raycluster_notices(own_lab: Lab, tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project", own_lab)
    older = {chart: older_chart(own_lab, tmp_path / "charts", chart) for chart in BEFORE}
    # KubeRay's from its repository, which the lab plays: its CRDs come by the provider's own
    # rendering.
    newer = {chart: own_lab.home.charts / chart for chart in NOW if chart != "kuberay-operator"}
    project.write(STACK, environment=settings(older, BEFORE, OLD_GIB))
    try:
        project.up(STACK)
        before = Seen.now(project)
        assert before.releases == {name: f"{name}-{version}" for name, version in BEFORE.items()}
        assert not serves(project, "raycronjobs.ray.io")
        assert not knows_secret_name(project)
        assert "cdi" not in own_lab.get("clusterpolicy", "cluster-policy")["spec"]
        assert daemon_images(project, "nccl-rdma-installer") == {OLD_GIB}

        project.write(STACK, environment=settings(newer, NOW, None))
        preview = project.run("berth", "preview", "-s", STACK, check=False)
        output = " ".join(preview.stdout.split())
        assert "the CRDs of KubeRay are brought up to date" in output
        assert "gIB is written over on every node with RDMA NICs" in output
        assert preview.returncode == 3, "what uses gIB would crash"
        assert set(project.preview(STACK)) == {
            *(f"kubernetes:helm.sh/v3:Release::{name}" for name in NOW),
            "kubernetes:apps/v1:DaemonSet::nccl-rdma-installer",
        }
        project.up(STACK)
        after = Seen.now(project)
        assert after.releases == {name: f"{name}-{version}" for name, version in NOW.items()}
        assert serves(project, "raycronjobs.ray.io")
        assert knows_secret_name(project)
        assert own_lab.get("clusterpolicy", "cluster-policy")["spec"]["cdi"]["enabled"] is True
        eventually(
            lambda: daemon_images(project, "nccl-rdma-installer") == {versions.GIB_IMAGE},
            "gIB's installer is rolled out",
        )
        assert after.pods == before.pods, "no pod of a RayCluster was restarted"
        assert after.claims == before.claims
        assert project.preview(STACK) == {}
        project.run("berth", "status", "-s", STACK)
        keeps_pods_of_another_operator(project, "shared")
        assert Seen.now(project).pods == before.pods
    finally:
        project.destroy(STACK)


def test_an_edit_beside_an_upgrade_of_kuberay_is_not_swallowed(lab: Lab, tmp_path: Path) -> None:
    """The heads are marked as the older version's while the operator stands still, and it goes on
    when the update either waits for it or has edited the RayClusters.
    """
    names = ["ann", "ben", "eve"]

    def edited(image: str) -> Settings:
        pools = {"cpu": {"machineType": "n2-standard-16", "nodes": 2}}
        defaults = SMALL | {"image": image, "worker": SMALL["worker"] | {"pool": "cpu", "gpus": 0}}
        engineers: Settings = {name: {"workers": 1} for name in names}
        return environment_settings(lab, pools, defaults=defaults, engineers=engineers)

    before, after = (f"rayproject/ray:2.60.0-py31{minor}" for minor in (1, 2))
    project = Project.make(tmp_path / "project", lab)
    output = tmp_path / "output"
    project.write(STACK, environment=edited(before))
    try:
        project.up(STACK)
        operator = lab.pids()["kuberay-operator"]
        os.kill(operator, signal.SIGSTOP)
        project.run(
            "kubectl", "annotate", "pods", "-A", "-l", HEADS, "--overwrite", f"{MADE_BY}=v1.5.1"
        )
        project.write(STACK, environment=edited(after))

        def goes_on() -> bool:
            specs = [item["spec"] for item in project.get("rayclusters", "-A")]
            return "has not yet taken over 3" in output.read_text() or after in str(specs)

        with output.open("w") as file:
            command = ["berth", "up", "-s", STACK, "--yes", "--allow-destroy"]
            with subprocess.Popen(
                command, cwd=project.folder, env=lab.env, stdout=file, stderr=file
            ) as update:
                try:
                    eventually(goes_on, "the update comes to the RayClusters")
                finally:
                    os.kill(operator, signal.SIGCONT)
        assert update.returncode == 0, output.read_text()
        pods = [
            pod
            for pod in project.get("pods", "-A", "-l", "ray.io/cluster")
            if "deletionTimestamp" not in pod["metadata"]
        ]
        assert [pod["spec"]["containers"][0]["image"] for pod in pods] == [after] * 2 * len(names)
    finally:
        project.destroy(STACK)


def test_definitions_that_cannot_be_updated_leave_the_operator_unchanged(
    own_lab: Lab, tmp_path: Path
) -> None:
    project = Project.make(tmp_path / "project", own_lab)
    charts = {"kuberay-operator": older_chart(own_lab, tmp_path / "charts", "kuberay-operator")}
    minimal = {
        "project": "berth-test",
        "zone": "us-central1-b",
        "cluster": {"deletionProtection": False},
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}},
    }
    project.write(
        "broken",
        environment=minimal
        | {"operators": {"kuberay": {"chart": str(charts["kuberay-operator"])}}},
    )
    try:
        project.up("broken")
        broken = tmp_path / "broken"
        shutil.copytree(own_lab.home.charts / "kuberay-operator", broken)
        (broken / "crds" / "ray.io_rayjobs.yaml").write_text("kind: Nothing\n")
        project.write(
            "broken", environment=minimal | {"operators": {"kuberay": {"chart": str(broken)}}}
        )
        failed = project.up("broken", check=False)
        output = " ".join((failed.stdout + failed.stderr).split())
        assert failed.returncode != 0
        assert (
            "ray.io_rayjobs.yaml is not a CustomResourceDefinition. The release was not changed"
            in output
        )
        listed = json.loads(project.run("helm", "list", "-A", "-o", "json").stdout)
        assert [release["chart"] for release in listed] == [
            f"kuberay-operator-{BEFORE['kuberay-operator']}"
        ]
        shutil.copy2(
            own_lab.home.charts / "kuberay-operator" / "crds" / "ray.io_rayjobs.yaml",
            broken / "crds",
        )
        project.up("broken")
        assert knows_secret_name(project)
    finally:
        project.destroy("broken")
