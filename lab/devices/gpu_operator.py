"""The GPU Operator's controller as pure functions: node labels, which DaemonSets there are, runtime classes, ClusterPolicy status.

What the operands' pods do on a node is in `operands.py`, the DaemonSets' manifests are in `operand_objects.py`.

Left out: pods in virtual machines (`sandboxWorkloads`), NVIDIADriver and GPUCluster resources, precompiled drivers, the driver's
upgrade controller (label `nvidia.com/gpu-driver-upgrade-state` and its annotation), the objects that only containers read
(ConfigMaps with scripts, Services, ServiceAccounts). A ClusterPolicy that asks for one of these is named by `unknown`.

Answers to (recorded): GPU Operator v26.7.0, 26 cases of its controller against a real API server
    (../shared/upstream/gpu-operator/recordings; the core of them in tests/unit/lab/devices/recorded_operator.json)
Answers to (read): https://github.com/NVIDIA/gpu-operator/tree/v26.7.0/controllers
    (nodelabeling_controller.go, clusterpolicy_controller.go, state_manager.go, object_controls.go: order of checks, which changes of
    a node bring new labels, when a DaemonSet is ready)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Labels = dict[str, str]

PCI = ("pci-10de.present", "pci-0302_10de.present", "pci-0300_10de.present")
"""Labels of node feature discovery that make a node one with GPUs, without their prefix."""
FEATURES = "feature.node.kubernetes.io/"
OS_NAME, OS_VERSION = FEATURES + "system-os_release.ID", FEATURES + "system-os_release.VERSION_ID"
PRESENT = "nvidia.com/gpu.present"
DEPLOY = "nvidia.com/gpu.deploy."
OPERANDS_LABEL = DEPLOY + "operands"
MIG_MANAGER = DEPLOY + "mig-manager"
MIG_CAPABLE, MIG_CONFIG = "nvidia.com/mig.capable", "nvidia.com/mig.config"
PRODUCT = "nvidia.com/gpu.product"
DISABLED = "all-disabled"

READY, NOT_READY = "ready", "notReady"

_VGPU = "nvidia.com/vgpu.host-driver-version"
_MIG_PRODUCTS = ("h100", "a100", "a30")
_DEPLOYED = (
    "driver",
    "gpu-feature-discovery",
    "container-toolkit",
    "device-plugin",
    "dcgm",
    "dcgm-exporter",
    "node-status-exporter",
    "operator-validator",
    "client",
)
# Labels of virtual machines' operands and of GPUClusters: the operator takes them away.
_FOREIGN = (
    "sandbox-device-plugin",
    "kata-sandbox-device-plugin",
    "sandbox-validator",
    "vfio-manager",
    "kata-manager",
    "cc-manager",
    "vgpu-manager",
    "vgpu-device-manager",
    "dra-driver",
    "dra-validator",
    "dcgm-dra",
    "dcgm-exporter-dra",
)
_CDI_CLASSES = ("nvidia-cdi", "nvidia-legacy")
_WHOLE_VERSIONS = ("ol", "rocky", "rhel")
_UNKNOWN = (
    ("sandboxWorkloads", "enabled"),
    ("driver", "useNvidiaDriverCRD"),
    ("driver", "usePrecompiled"),
    ("psa", "enabled"),
    ("gds", "enabled"),
    ("gdrcopy", "enabled"),
)


@dataclass(frozen=True)
class Policy:
    """A ClusterPolicy's settings.

    Attributes:
        spec: the ClusterPolicy's spec.
    """

    spec: Mapping[str, Any]

    def part(self, name: str) -> Mapping[str, Any]:
        """A component's settings, such as `devicePlugin`."""
        return self.spec.get(name) or {}

    def enabled(self, name: str, *, default: bool = True) -> bool:
        """Whether a component is on."""
        on = self.part(name).get("enabled")
        return default if on is None else bool(on)

    @property
    def config_map(self) -> str:
        """Name of the device plugin's ConfigMap; empty without one."""
        return str((self.part("devicePlugin").get("config") or {}).get("name") or "")

    @property
    def default_config(self) -> str:
        """Entry of the ConfigMap for nodes without a label; empty for none."""
        return str((self.part("devicePlugin").get("config") or {}).get("default") or "")

    @property
    def mig_strategy(self) -> str:
        """MIG strategy of all nodes; empty where the ConfigMap's entries say it."""
        return str(self.part("mig").get("strategy") or "")

    @property
    def nri(self) -> bool:
        """Whether the NRI plugin takes the place of the runtime classes."""
        return bool(self.part("cdi").get("nriPluginEnabled"))

    @property
    def runtime_class(self) -> str:
        """Runtime class of the operands that use GPUs."""
        return str(self.part("operator").get("runtimeClass") or "nvidia")

    def unknown(self) -> list[str]:
        """Settings that the imitation does not know, as `part.key`."""
        found = [f"{part}.{key}" for part, key in _UNKNOWN if self.part(part).get(key)]
        return found + (["migManager.config.name"] if (self.part("migManager").get("config") or {}).get("name") else [])


def has_gpus(labels: Mapping[str, str]) -> bool:
    """Whether node feature discovery has seen a GPU of NVIDIA's, whoever owns the node's pool."""
    return any(labels.get(FEATURES + name) == "true" for name in PCI)


def mig_capable(labels: Mapping[str, str]) -> bool:
    """Whether a node's GPUs can do MIG, by GPU feature discovery's labels."""
    if labels.get(_VGPU):
        return False
    if MIG_CAPABLE in labels:
        return labels[MIG_CAPABLE] == "true"
    return any(product in labels.get(PRODUCT, "").lower() for product in _MIG_PRODUCTS)


def node_labels(labels: Mapping[str, str], policy: Policy) -> dict[str, str | None]:
    """Labels of a node that the operator adds or changes, or takes away (None).

    Args:
        labels: all labels that the node has.
        policy: the ClusterPolicy's settings.
    """
    now = dict(labels)
    if has_gpus(labels):
        now[PRESENT] = "true"
    elif labels.get(PRESENT) == "true":
        now[PRESENT] = "false"
    if now.get(PRESENT) != "true":
        _drop(now, (*_DEPLOYED, *_FOREIGN, "mig-manager"))
    else:
        _deploy(now)
        default = (policy.part("migManager").get("config") or {}).get("default")
        manages = policy.enabled("migManager") and default == DISABLED
        if manages and mig_capable(now) and not now.get(MIG_CONFIG):
            now[MIG_CONFIG] = DISABLED
    names = sorted({*labels, *now})
    return {name: now.get(name) for name in names if labels.get(name) != now.get(name)}


def _deploy(labels: Labels) -> None:
    if labels.get(OPERANDS_LABEL) == "false":
        _drop(labels, (*_DEPLOYED, *_FOREIGN, "mig-manager"))
        return
    _drop(labels, _FOREIGN)
    for name in _DEPLOYED:
        labels[DEPLOY + name] = labels.get(DEPLOY + name) or "true"
    if mig_capable(labels):
        labels.setdefault(MIG_MANAGER, "true")


def _drop(labels: Labels, names: Collection[str]) -> None:
    for name in names:
        labels.pop(DEPLOY + name, None)


def relabels(before: Mapping[str, str] | None, now: Mapping[str, str]) -> bool:
    """Whether a node that came (None) or changed makes the operator look at the labels of all nodes."""
    if before is None:
        return has_gpus(now)
    return (
        has_gpus(now) != (now.get(PRESENT) == "true")
        or before.get(PRESENT) != now.get(PRESENT)
        or (before.get(OPERANDS_LABEL) == "false") != (now.get(OPERANDS_LABEL) == "false")
        or mig_capable(before) != mig_capable(now)
    )


@dataclass(frozen=True)
class Findings:
    """Findings of the controller about the cluster's nodes.

    Attributes:
        failure: error that ends the reconcile at once; empty without one.
        gpu_nodes: a node has GPUs; without one DaemonSets are neither created nor changed.
        features: a node has a label of node feature discovery.
        system: name and version of the first GPU node's operating system, the end of the driver image's tag.
    """

    failure: str
    gpu_nodes: bool
    features: bool
    system: str


def findings(nodes: Mapping[str, Mapping[str, str]]) -> Findings:
    """Findings of the controller about these nodes: labels by the node's name.

    Of several nodes with GPUs the first by name stands for all; the real controller takes any one.
    """
    features = any(key.startswith(FEATURES) for labels in nodes.values() for key in labels)
    first = next((nodes[name] for name in sorted(nodes) if nodes[name].get(PRESENT) == "true"), None)
    failure, system = "", ""
    if first is not None:
        missing = [
            f"failed to retrieve GPU node OS info: unable to retrieve OS {what} from label {label}"
            for what, label in (("name", OS_NAME), ("version", OS_VERSION))
            if label not in first
        ]
        failure = missing[0] if missing else ""
        version = first.get(OS_VERSION, "")
        name = first.get(OS_NAME, "")
        system = name + (version.partition(".")[0] if name in _WHOLE_VERSIONS else version)
    return Findings(failure, first is not None, features, system)


def runtime_classes(policy: Policy) -> tuple[set[str], set[str]]:
    """Names of the runtime classes that the operator makes, and of those that it deletes."""
    own = {policy.runtime_class}
    if policy.nri:
        return set(), own | set(_CDI_CLASSES)
    if not policy.enabled("cdi", default=True):
        return own, set(_CDI_CLASSES)
    return own | set(_CDI_CLASSES), set()


def rolled_out(daemonset: Mapping[str, Any]) -> bool:
    """Whether the operator takes a DaemonSet for ready: no pod wanted, or all of them of the newest kind and available."""
    status = daemonset.get("status") or {}
    wanted = status.get("desiredNumberScheduled") or 0
    return wanted == 0 or (
        not status.get("numberUnavailable")
        and (status.get("observedGeneration") or 0) >= (daemonset["metadata"].get("generation") or 0)
        and status.get("updatedNumberScheduled") == wanted
        and status.get("numberAvailable") == wanted
    )


def status(namespace: str, found: Findings, states_not_ready: Collection[str]) -> dict[str, Any]:
    """The ClusterPolicy's status, without times.

    Args:
        namespace: the operator's.
        found: findings about the nodes.
        states_not_ready: states whose DaemonSet is not ready, in the operator's order.
    """
    if found.failure:
        return _status(namespace, "ReconcileFailed", found.failure, error=True)
    if states_not_ready:
        states = f"[{' '.join(states_not_ready)}]"
        message = f"ClusterPolicy is not ready; states not ready: {states}"
        return _status(namespace, "OperandNotReady", message, error=True)
    if not found.features:
        return _status(namespace, "NFDLabelsMissing", "No NFD labels found")
    if not found.gpu_nodes:
        return _status(namespace, "NoGPUNodes", "No GPU node found, watching for new nodes to join the cluster.")
    message = "ClusterPolicy is ready as all resources have been successfully reconciled"
    return _status(namespace, "Reconciled", message)


def _status(namespace: str, reason: str, message: str, *, error: bool = False) -> dict[str, Any]:
    true = {"reason": reason, "message": message, "status": "True"}
    false = {"message": "", "status": "False"}
    conditions = [
        {"type": "Ready", **(false | {"reason": "Error"} if error else true)},
        {"type": "Error", **(true if error else false | {"reason": "Ready"})},
    ]
    return {"state": NOT_READY if error else READY, "namespace": namespace, "conditions": conditions}


def dated(now: Mapping[str, Any], status: Mapping[str, Any], time: str) -> dict[str, Any]:
    """Status with the time of each condition's last change; empty where the ClusterPolicy has it already.

    Args:
        now: the status that the ClusterPolicy has.
        status: the status that it should have.
        time: current time (RFC 3339).
    """
    before = {each["type"]: each for each in now.get("conditions") or []}
    conditions = []
    for each in status["conditions"]:
        known = before.get(each["type"], {})
        same = known.get("status") == each["status"]
        conditions.append({**each, "lastTransitionTime": (known.get("lastTransitionTime") if same else None) or time})
    dated_status = {**status, "conditions": conditions}
    return {} if all(now.get(key) == value for key, value in dated_status.items()) else dated_status
