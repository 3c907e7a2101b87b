"""Simulated GPU Operator: the chart by helm, sharing and MIG on nodes, against recordings and
sources of the real one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.lab.home import CLONE
from tests.lab.conftest import Lab
from tests.lab.project import eventually

pytestmark = pytest.mark.lab

GPU = "nvidia.com/gpu"
NAMESPACE = RELEASE = "gpu-operator"
PLUGIN = "nvidia-device-plugin-daemonset"
CONFIG = "nvidia.com/device-plugin.config"
MIG = "nvidia.com/mig.config"
OPERANDS_LABEL = "nvidia.com/gpu.deploy.operands"
PCI = "feature.node.kubernetes.io/pci-10de.present"
TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
REAL = CLONE.parent / "shared" / "upstream" / "gpu-operator" / "nvidia.com_clusterpolicies.yaml"

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
    "strict": sliced(4, failRequestsGreaterThanOne=True),
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

    def serves(self, kind: str) -> bool:
        return self.lab.run(["kubectl", "get", kind], check=False).returncode == 0

    def settled(self, pod: str) -> dict[str, Any]:
        """Status of a pod once the kubelet has set it."""
        eventually(lambda: bool(self.status(pod).get("podIP")), f"a kubelet looks at pod {pod}")
        return self.status(pod)

    def status(self, pod: str) -> dict[str, Any]:
        return dict(self.lab.get("pod", pod, "-n", "default")["status"])

    def state(self) -> str:
        return str(self.lab.get("clusterpolicy", "cluster-policy").get("status", {}).get("state"))

    def condition(self, kind: str) -> tuple[str, str]:
        """Reason and message of a condition of the ClusterPolicy."""
        conditions = self.lab.get("clusterpolicy", "cluster-policy").get("status", {}).get("conditions") or []
        found: dict[str, str] = next((item for item in conditions if item["type"] == kind), {})
        return found.get("reason", ""), found.get("message", "")

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

    def warnings(self, about: str, reason: str) -> list[str]:
        """Messages of events about objects whose name begins so."""
        items = self.lab.get("events", "-A", "--field-selector", f"reason={reason},type=Warning")["items"]
        return [event["message"] for event in items if event["involvedObject"]["name"].startswith(about)]


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


def pod(name: str, gpus: int, **spec: Any) -> str:
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: str(gpus)}}}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "nodeSelector": {"operated": "yes"}} | spec,
    }
    return json.dumps(manifest)


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


def test_an_edit_in_place_waits_for_a_restart_of_the_daemonset(again: Operated) -> None:
    again.kubectl("patch", "configmap", "four", "-n", NAMESPACE, "-p", json.dumps({"data": {"any": sliced(8)}}))
    # A change that reaches the node meanwhile shows that the node was reconciled again, with the
    # old configuration.
    again.label("gpus", "nvidia.com/gpu.replicas=none")
    again.sliced(32, 4)
    again.kubectl("rollout", "restart", f"daemonset/{PLUGIN}", "-n", NAMESPACE)
    # GPU feature discovery still has what it read.
    again.shows({GPU: "64"}, replicas="4")
    again.kubectl("rollout", "restart", "daemonset/gpu-feature-discovery", "-n", NAMESPACE)
    again.sliced(64, 8)
    again.kubectl("patch", "configmap", "four", "-n", NAMESPACE, "-p", json.dumps({"data": FOUR}))
    again.kubectl("delete", "pods", "-n", NAMESPACE, "-l", f"app in ({PLUGIN},gpu-feature-discovery)")
    again.sliced(32, 4)


def test_the_nodes_label_is_followed_live(again: Operated) -> None:
    pods = again.kubectl("get", "pods", "-n", NAMESPACE, "-l", f"app={PLUGIN}", "-o", "name")
    again.label("gpus", f"{CONFIG}=renamed")
    # The old name is gone, not just empty; renamed resources have no suffix in the product.
    again.shows({f"{GPU}.shared": "16"}, product="NVIDIA-B200", replicas="2")
    assert again.kubectl("get", "pods", "-n", NAMESPACE, "-l", f"app={PLUGIN}", "-o", "name") == pods


def test_a_pod_that_wants_two_shares_fails_where_the_plugin_is_strict(again: Operated) -> None:
    again.label("gpus", f"{CONFIG}=strict")
    words = "maximum request size for shared resources is 1; found 2"
    try:
        # Nothing else shows the label's change: the first pods may still be admitted.
        for number in range(20):
            again.kubectl("create", "-f", "-", stdin=pod(f"two-{number}", 2))
            status = again.settled(f"two-{number}")
            if status["phase"] == "Failed":
                break
        assert status["reason"] == "UnexpectedAdmissionError"
        assert words in status["message"]
        assert "containerStatuses" not in status
        assert any(words in message for message in again.warnings(f"two-{number}", "UnexpectedAdmissionError"))
        again.kubectl("create", "-f", "-", stdin=pod("single", 1))
        assert again.settled("single")["phase"] == "Running"
    finally:
        again.kubectl("delete", "pods", "-n", "default", "--all", "--force")


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


def test_a_mig_profile_that_the_gpu_lacks_fails_in_a_label_and_changes_no_gpu(again: Operated) -> None:
    again.cut("all-1g.5gb")
    eventually(lambda: again.labels().get("nvidia.com/mig.config.state") == "failed", "the MIG manager says so")
    again.sliced(32, 4)
    eventually(lambda: again.state() == "ready", "the MIG manager itself runs")


def test_an_entry_that_the_plugin_cannot_read_takes_the_devices_away(again: Operated) -> None:
    again.install("broken", {"any": sliced(1)})
    again.shows({})
    assert any("must be >= 2" in message for message in again.warnings(PLUGIN, "BackOff"))
    states = "state-operator-validation state-device-plugin gpu-feature-discovery"
    expected = ("OperandNotReady", f"ClusterPolicy is not ready; states not ready: [{states}]")
    eventually(lambda: again.condition("Error") == expected, f"the ClusterPolicy says {expected}")


def test_an_entry_that_is_not_in_the_config_map_keeps_the_plugin_from_starting(operated: Operated) -> None:
    operated.add_node("lost", **CONTROLLED, **PREINSTALLED, **{CONFIG: "nosuch"})
    words = "specified config nosuch does not exist"
    try:
        eventually(lambda: operated.waits("lost", PLUGIN, words), "the plugin's pod says why it does not start")
        status = operated.pods("lost")[PLUGIN]["status"]
        assert status["phase"] == "Pending"
        states = {item["name"]: item["state"] for item in status["initContainerStatuses"]}
        assert states["config-manager-init"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert operated.devices("lost") == {}
        eventually(lambda: operated.state() == "notReady", "the ClusterPolicy is not ready")
        operated.label("lost", f"{CONFIG}=any")
        operated.sliced(32, 4, "lost")
        eventually(lambda: operated.state() == "ready", "the ClusterPolicy is ready")
    finally:
        operated.remove_nodes("lost")


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


def test_a_node_that_is_added_later_gets_the_same(operated: Operated) -> None:
    operated.add_node("later", **CONTROLLED, **PREINSTALLED)
    operated.sliced(32, 4, "later")
    operated.remove_nodes("later")


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


def test_without_feature_discovery_a_new_node_is_not_seen(again: Operated) -> None:
    again.install("four", nfd={"enabled": False})
    again.add_node("unseen", **CONTROLLED, **PREINSTALLED)
    again.add_node("labeled", **CONTROLLED, **PREINSTALLED, **{PCI: "true"})
    # The operator has reconciled all nodes, and nothing writes GPU feature discovery's labels.
    again.shows({GPU: "32"}, "labeled", present="true", product=None)
    assert not any(name.startswith("nvidia.com/") for name in again.labels("unseen"))
    assert again.devices("unseen") == {}
    again.remove_nodes("unseen", "labeled")


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


def test_the_daemon_sets_are_those_of_the_real_operator(operated: Operated) -> None:
    items = operated.lab.get("daemonsets", "-n", NAMESPACE)["items"]
    found = {item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in items}
    assert sorted(found) == [
        "gpu-feature-discovery",
        "gpu-operator-node-feature-discovery-worker",
        "nvidia-container-toolkit-daemonset",
        "nvidia-dcgm-exporter",
        "nvidia-device-plugin-daemonset",
        "nvidia-device-plugin-mps-control-daemon",
        "nvidia-mig-manager",
        "nvidia-operator-validator",
    ]
    plugin = found[PLUGIN]
    assert plugin["nodeSelector"] == {"nvidia.com/gpu.deploy.device-plugin": "true"}
    assert (plugin["runtimeClassName"], plugin["priorityClassName"]) == ("nvidia", "system-node-critical")
    assert plugin["tolerations"] == [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    classes = {runtime_class["metadata"]["name"] for runtime_class in operated.lab.get("runtimeclasses")["items"]}
    assert {"nvidia", "nvidia-cdi", "nvidia-legacy"} <= classes
    assert not operated.pods("plain")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("mig.strategy=", "spec.mig in body must be of type object"),
        ("mig.strategy=double", 'Unsupported value: "double": supported values: "none", "single", "mixed"'),
        ("migManager.config.default=all-1g.23gb", 'supported values: "all-disabled", ""'),
    ],
)
def test_the_api_server_refuses_what_the_published_definition_refuses(
    operated: Operated, value: str, words: str
) -> None:
    chart = str(operated.lab.home.charts / "gpu-operator")
    rendered = operated.lab.run(["helm", "template", "x", chart, "--set", value]).stdout
    policy = next(item for item in yaml.safe_load_all(rendered) if item and item["kind"] == "ClusterPolicy")
    policy["metadata"]["name"] = "another"
    # A POST drops a null that has no default before the server looks at types; applied by the
    # server, it is refused.
    command = ["kubectl", "apply", "--server-side", "--dry-run=server", "--validate=ignore", "-f", "-"]
    refused = operated.lab.run(command, stdin=json.dumps(policy), check=False)
    assert refused.returncode != 0
    assert words in refused.stderr


def test_the_chart_deploys_what_the_published_one_deploys(lab: Lab) -> None:
    recording = CLONE.parent / "shared" / "upstream" / "gpu-operator" / "recordings" / "N1-chart-workloads.json"
    if not recording.is_file():
        pytest.skip(f"the recording is not here: {recording.relative_to(CLONE.parent)}")
    chart = ["helm", "template", RELEASE, str(lab.home.charts / "gpu-operator"), "--namespace", NAMESPACE]
    documents = yaml.safe_load_all(lab.run(chart).stdout)
    found = {
        document["metadata"]["name"]: document
        for document in documents
        if document and document["kind"] in {"DaemonSet", "Deployment"}
    }
    workloads = json.loads(recording.read_text())["output"]["workloads"]
    assert sorted(found) == sorted(item["name"] for item in workloads)
    for workload in workloads:
        created, spec = found[workload["name"]], found[workload["name"]]["spec"]["template"]["spec"]
        assert created["kind"] == workload["kind"]
        assert by_text(spec.get("tolerations") or []) == by_text(workload["tolerations"])
        assert (spec.get("nodeSelector") or {}) == workload["nodeSelector"]
        assert spec["priorityClassName"] == workload["priorityClassName"]
        role = workload["labels"].get("role")
        assert role is None or created["metadata"]["labels"]["role"] == role


def by_text(objects: list[dict[str, str]]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in objects)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["devicePlugin.config.create=true", "devicePlugin.config.name=x"], "devicePlugin.config.data cannot be empty"),
        (
            ["devicePlugin.config.create=true", "devicePlugin.config.data.a=b"],
            "devicePlugin.config.name cannot be empty",
        ),
        (["cdi.enabled=false", "cdi.nriPluginEnabled=true"], "NRI Plugin cannot be enabled when CDI is disabled"),
    ],
)
def test_the_chart_refuses_what_the_published_one_refuses(lab: Lab, values: list[str], words: str) -> None:
    options = [option for value in values for option in ("--set", value)]
    failed = lab.run(["helm", "template", str(lab.home.charts / "gpu-operator"), *options], check=False)
    assert failed.returncode != 0
    assert words in failed.stderr


def test_the_cluster_policy_fits_the_published_definition(lab: Lab, operated: Operated) -> None:
    if not REAL.is_file():
        pytest.skip(f"the published definition is not here: {REAL.relative_to(CLONE.parent)}")
    definition = yaml.safe_load(REAL.read_text())
    # Under another group, beside our own definition: the schema is what counts.
    definition["metadata"]["name"] = "clusterpolicies.published.example.com"
    definition["spec"]["group"] = "published.example.com"
    try:
        operated.kubectl("create", "-f", "-", stdin=json.dumps(definition))
        eventually(lambda: operated.serves("clusterpolicies.published.example.com"), "the kind is served")
        # The chart's own values, and those that berth sets.
        files = [path for path in sorted(GOLDEN.glob("*.yaml")) if "devicePlugin" in yaml.safe_load(path.read_text())]
        assert files
        for options in ([], *(["--values", str(path)] for path in files)):
            rendered = lab.run(["helm", "template", "x", str(lab.home.charts / "gpu-operator"), *options]).stdout
            policy = next(item for item in yaml.safe_load_all(rendered) if item and item["kind"] == "ClusterPolicy")
            policy["apiVersion"] = "published.example.com/v1"
            # Strict: a field that the definition does not have is refused, too.
            operated.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(policy))
            policy["spec"]["devicePlugin"]["unknown"] = 1
            command = ["kubectl", "create", "--dry-run=server", "--validate=strict", "-f", "-"]
            assert (
                'unknown field "spec.devicePlugin.unknown"'
                in lab.run(command, stdin=json.dumps(policy), check=False).stderr
            )
    finally:
        operated.kubectl("delete", "crd", definition["metadata"]["name"], "--ignore-not-found")


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
