"""Simulated GPU Operator: the chart by helm, sharing and MIG on nodes, against recordings and
sources of the real one. Long: test_sharing and test_verify_gpu need the same of it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.lab.home import CLONE
from tests.lab.conftest import Lab
from tests.lab.project import eventually

pytestmark = [pytest.mark.lab, pytest.mark.long]

GPU = "nvidia.com/gpu"
NAMESPACE = RELEASE = "gpu-operator"
PLUGIN = "nvidia-device-plugin-daemonset"
CONFIG = "nvidia.com/device-plugin.config"
MIG = "nvidia.com/mig.config"
OPERANDS_LABEL = "nvidia.com/gpu.deploy.operands"
TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}

GOLDEN = CLONE / "tests" / "golden" / "gpu-operator"

CONTROLLED = {
    "cloud.google.com/gke-accelerator": "nvidia-b200",
    "cloud.google.com/gke-accelerator-count": "8",
    "gke-no-default-nvidia-gpu-device-plugin": "true",
}
PREINSTALLED = {"berth/driver": "preinstalled"}


def sliced(replicas: int, **options: bool) -> str:
    sharing = options | {"resources": [{"name": GPU, "replicas": replicas}]}
    return yaml.safe_dump({"version": "v1", "sharing": {"timeSlicing": sharing}})


FOUR = {
    "any": sliced(4),
    "renamed": sliced(2, renameByDefault=True),
}


class Operated:
    """A lab with a node for the operator, nodes with GPUs, and the chart."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        return self.lab.run(["kubectl", *args], stdin=stdin).stdout

    def add_node(self, name: str, *taints: dict[str, str], **labels: str) -> None:
        sizes = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name, "operated": "yes"} | labels,
            },
            "spec": {"taints": list(taints)},
            "status": {"allocatable": sizes, "capacity": sizes},
        }
        self.kubectl("create", "-f", "-", stdin=json.dumps(node))

    def remove_nodes(self, *names: str) -> None:
        """Delete nodes with their pods, which would stay for a while and hold a DaemonSet's rollout
        back.
        """
        self.kubectl("delete", "nodes", *names)
        for name in names:
            self.kubectl("delete", "pods", "-A", "--field-selector", f"spec.nodeName={name}", "--force")

    def cut(self, layout: str) -> None:
        """Ask for a MIG layout of node `gpus`, once the operator has set its default there.

        The operator patches labels without a resource version (v26.7.0,
        controllers/nodelabeling_controller.go), so that its default can overwrite a label that
        somebody sets at the same moment.
        """
        eventually(lambda: MIG in self.labels(), "the operator has set the default MIG layout")
        self.label("gpus", f"{MIG}={layout}")

    def label(self, node: str, *labels: str) -> None:
        self.kubectl("label", "node", node, "--overwrite", *labels)

    def install(self, name: str, data: dict[str, str] | None = None, **values: Any) -> None:
        """Install or upgrade the chart with a device plugin ConfigMap of this name; its default
        entry is `any`.
        """
        config = {"create": True, "name": name, "default": "any", "data": data or FOUR}
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump({"driver": {"enabled": False}, "devicePlugin": {"config": config}} | values))
        chart = str(self.lab.home.charts / "gpu-operator")
        command = ["helm", "upgrade", "--install", RELEASE, chart, "--namespace", NAMESPACE, "--create-namespace"]
        self.lab.run([*command, "--values", str(file), "--wait", "--timeout", "120s"])

    def uninstall(self) -> None:
        self.lab.run(["helm", "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait"], check=False)

    def node(self, name: str = "gpus") -> dict[str, Any]:
        return dict(self.lab.get("node", name))

    def labels(self, name: str = "gpus") -> dict[str, str]:
        return dict(self.node(name)["metadata"]["labels"])

    def devices(self, name: str = "gpus") -> dict[str, str]:
        """Devices that a node advertises, equal as capacity and as allocatable."""
        status = self.node(name)["status"]
        found = [
            {resource: count for resource, count in status[part].items() if resource.startswith("nvidia.com/")}
            for part in ("capacity", "allocatable")
        ]
        return dict(found[0]) if found[0] == found[1] else {}

    def shows(self, devices: dict[str, str], name: str = "gpus", **labels: str | None) -> None:
        """Wait until a node advertises these devices and has these labels, given without
        `nvidia.com/gpu.`.
        """

        def same() -> bool:
            now = self.labels(name)
            return self.devices(name) == devices and all(now.get(f"{GPU}.{key}") == labels[key] for key in labels)

        eventually(same, f"node {name} shows {devices} and {labels}")

    def sliced(self, count: int, replicas: int, name: str = "gpus") -> None:
        self.shows({GPU: str(count)}, name, count="8", replicas=str(replicas), product="NVIDIA-B200-SHARED")

    def state(self) -> str:
        return str(self.lab.get("clusterpolicy", "cluster-policy").get("status", {}).get("state"))

    def pods(self, node: str) -> dict[str, dict[str, Any]]:
        """The operands' pods on a node by the name of their DaemonSet."""
        items = self.lab.get("pods", "-n", NAMESPACE, "--field-selector", f"spec.nodeName={node}")["items"]
        labeled = [pod for pod in items if "app" in pod["metadata"]["labels"]]  # all but feature discovery's
        # The operator's own pod is a Deployment's, on whichever node the scheduler chose.
        return {pod["metadata"]["labels"]["app"]: pod for pod in labeled if owner_kind(pod) == "DaemonSet"}

    def waits(self, node: str, operand: str, words: str) -> bool:
        """Whether an operand's pod on a node is not ready with this message."""
        conditions = self.pods(node).get(operand, {}).get("status", {}).get("conditions") or []
        return any(condition["type"] == "Ready" and words in condition.get("message", "") for condition in conditions)


def owner_kind(pod: dict[str, Any]) -> str:
    return str(next((owner["kind"] for owner in pod["metadata"].get("ownerReferences", [])), ""))


@pytest.fixture(scope="module")
def operated(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Operated:
    operated = Operated(lab, tmp_path_factory.mktemp("values"))
    operated.add_node("plain")
    operated.add_node("gpus", **CONTROLLED, **PREINSTALLED)
    operated.install("four")
    operated.sliced(32, 4)
    return operated


@pytest.fixture
def again(operated: Operated) -> Iterator[Operated]:
    """The installation to be changed; each test leaves it as it found it."""
    yield operated
    operated.label("gpus", f"{CONFIG}-", f"{MIG}-")
    operated.install("four")
    operated.sliced(32, 4)


def test_eight_gpus_with_four_replicas_are_32_and_labels_say_so(operated: Operated) -> None:
    labels = operated.labels()
    assert labels["nvidia.com/gpu.present"] == "true"
    assert labels["nvidia.com/gpu.sharing-strategy"] == "time-slicing"
    assert labels["nvidia.com/gpu.family"] == "blackwell"
    eventually(lambda: operated.state() == "ready", "the ClusterPolicy is ready")
    plugin = operated.lab.get("daemonset", PLUGIN, "-n", NAMESPACE)
    assert plugin["status"]["numberReady"] == 1


def test_another_config_map_reaches_the_node_and_its_labels(again: Operated) -> None:
    again.install("two", {"any": sliced(2)})
    again.sliced(16, 2)


def test_mig_instances_under_one_name(again: Operated) -> None:
    again.install("whole", {"any": "version: v1"}, mig={"strategy": "single"})
    again.cut("all-3g.90gb")
    again.shows({GPU: "16"}, product="NVIDIA-B200-MIG-3g.90gb", count="16")
    assert again.labels()["nvidia.com/mig.config.state"] == "success"


def test_mig_instances_each_under_their_own(again: Operated) -> None:
    again.install("whole", {"any": "version: v1"}, mig={"strategy": "mixed"})
    again.cut("all-balanced")
    expected = {"nvidia.com/mig-1g.23gb": "16", "nvidia.com/mig-2g.45gb": "8", "nvidia.com/mig-3g.90gb": "8"}
    again.shows(expected, product="NVIDIA-B200", count="8")
    assert again.labels()["nvidia.com/mig-3g.90gb.count"] == "8"


def test_a_taint_that_nothing_tolerates_keeps_feature_discovery_and_operands_away(again: Operated) -> None:
    again.add_node("tainted", TAINT, **CONTROLLED, **PREINSTALLED)
    again.add_node("free", **CONTROLLED, **PREINSTALLED)
    again.sliced(32, 4, "free")
    assert not any(name.startswith("feature.node") for name in again.labels("tainted"))
    assert again.devices("tainted") == {}
    tolerations = [TAINT | {"operator": "Equal"}, {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    worker: Any = {"node-feature-discovery": {"worker": {"tolerations": tolerations}}}
    again.install("four", **worker)
    # The operator labels the node now, and its DaemonSets still don't go there.
    eventually(lambda: again.labels("tainted").get("nvidia.com/gpu.deploy.device-plugin") == "true", "it is labeled")
    assert again.pods("tainted") == {}
    assert again.devices("tainted") == {}
    again.install("four", **worker, daemonsets={"tolerations": tolerations})
    again.sliced(32, 4, "tainted")
    again.remove_nodes("tainted", "free")


def test_a_node_without_a_driver_has_no_devices_until_an_installer_runs_on_it(operated: Operated) -> None:
    operated.add_node("bare", **CONTROLLED)
    installer = yaml.safe_load((GOLDEN / "driver-installer.yaml").read_text())
    toolkit = "nvidia-container-toolkit-daemonset"
    eventually(lambda: operated.waits("bare", toolkit, "no NVIDIA driver: GKE installs none"), "the toolkit waits")
    # Without the toolkit the runtime class of the others has no handler.
    eventually(lambda: operated.waits("bare", PLUGIN, 'no runtime for "nvidia" is configured'), "the plugin waits")
    assert operated.devices("bare") == {}
    try:
        operated.kubectl("create", "-f", "-", stdin=json.dumps(installer))
        operated.sliced(32, 4, "bare")
        eventually(lambda: operated.state() == "ready", "the ClusterPolicy is ready")
    finally:
        operated.kubectl("delete", "daemonset", "nvidia-driver-installer", "-n", "kube-system", "--ignore-not-found")
        operated.remove_nodes("bare")


def test_a_node_of_gkes_is_served_twice_unless_it_opts_out(operated: Operated) -> None:
    own = CONTROLLED | {
        "gke-no-default-nvidia-gpu-device-plugin": "false",
        "cloud.google.com/gke-gpu-driver-version": "latest",
    }
    operated.add_node("gkes", **own)
    # GKE's plugin offers 8; NVIDIA's, which registers after it, the default of the ConfigMap.
    operated.sliced(32, 4, "gkes")
    operated.label("gkes", f"{OPERANDS_LABEL}=false")
    operated.shows({GPU: "8"}, "gkes", present="true", product=None)
    eventually(lambda: not operated.pods("gkes"), "no operand is left")
    assert not [name for name in operated.labels("gkes") if name.startswith("nvidia.com/gpu.deploy.device")]
    operated.label("gkes", f"{OPERANDS_LABEL}-", f"{CONFIG}=renamed")
    operated.shows({GPU: "8", f"{GPU}.shared": "16"}, "gkes", product="NVIDIA-B200")
    operated.remove_nodes("gkes")


def test_devices_go_with_the_operator_and_its_own_labels_stay(operated: Operated) -> None:
    operated.uninstall()
    operated.shows({}, product=None, replicas=None)
    # The operator takes none of its own labels away when its ClusterPolicy is deleted.
    assert operated.labels()["nvidia.com/gpu.deploy.device-plugin"] == "true"
    eventually(
        lambda: not any(name.startswith("feature.node") for name in operated.labels()),
        "the labels of node feature discovery are gone",
    )
    eventually(
        lambda: operated.lab.get("daemonsets", "-n", NAMESPACE)["items"] == [], "the operands' DaemonSets are gone"
    )
    operated.install("four")
    operated.sliced(32, 4)
