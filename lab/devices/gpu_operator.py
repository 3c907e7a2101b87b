"""Rules of the GPU Operator's controller: node labels, runtime classes, ClusterPolicy status. Pure.

What the operands' pods do on a node is in `operands.py`; the DaemonSets are in
`operand_objects.py`.

Left out: pods in virtual machines (`sandboxWorkloads`), NVIDIADriver and GPUCluster resources,
precompiled drivers, the driver's upgrade controller (label `nvidia.com/gpu-driver-upgrade-state`
and its annotation), and objects that only containers read (ConfigMaps with scripts, Services,
ServiceAccounts). Simplified: a label that somebody takes away comes back at the next look.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.hardware.names import MIG_LABEL, OPERANDS_LABEL
from berth.lab.api import now
from berth.lab.devices.gpus import DISABLED

PCI = ("pci-10de.present", "pci-0302_10de.present", "pci-0300_10de.present")
"""Labels of node feature discovery that make a node one with GPUs, without their prefix."""
FEATURES = "feature.node.kubernetes.io/"
OS_NAME = FEATURES + "system-os_release.ID"
OS_VERSION = FEATURES + "system-os_release.VERSION_ID"
PRESENT = "nvidia.com/gpu.present"
DEPLOY = "nvidia.com/gpu.deploy."

_CAPABLE = "nvidia.com/mig.capable"
_PRODUCT = "nvidia.com/gpu.product"
_MIG_PRODUCTS = ("h100", "a100", "a30")
_DEPLOYED = (
    *(
        "driver",
        "gpu-feature-discovery",
        "container-toolkit",
        "device-plugin",
        "dcgm",
        "dcgm-exporter",
    ),
    *("node-status-exporter", "operator-validator", "client"),
)
# Labels of virtual machines' operands and of GPUClusters: the operator takes them away.
_FOREIGN = (
    *(
        "sandbox-device-plugin",
        "kata-sandbox-device-plugin",
        "sandbox-validator",
        "vfio-manager",
        "kata-manager",
    ),
    *(
        "cc-manager",
        "vgpu-manager",
        "vgpu-device-manager",
        "dra-driver",
        "dra-validator",
        "dcgm-dra",
    ),
    "dcgm-exporter-dra",
)
_ALL = (*_DEPLOYED, *_FOREIGN, "mig-manager")
_CDI_CLASSES = ("nvidia-cdi", "nvidia-legacy")


@dataclass(frozen=True)
class OperatorPolicy:
    """A ClusterPolicy's settings."""

    spec: Mapping[str, Any]

    def part(self, *path: str) -> Mapping[str, Any]:
        """Return a section, such as `devicePlugin`, `config`; empty by default."""
        section = self.spec
        for name in path:
            section = section.get(name) or {}
        return section

    def enabled(self, name: str, *, default: bool = True) -> bool:
        """Whether a component is on."""
        on = self.part(name).get("enabled")
        return default if on is None else bool(on)

    def text(self, *path: str, default: str = "") -> str:
        """Return a setting, such as `devicePlugin`, `config`, `name`."""
        return str(self.part(*path[:-1]).get(path[-1]) or default)

    @property
    def runtime_class(self) -> str:
        """Runtime class of the operands that use GPUs."""
        return self.text("operator", "runtimeClass", default="nvidia")


def has_gpus(labels: Mapping[str, str]) -> bool:
    """Whether node feature discovery has seen a GPU of NVIDIA's, whoever owns the node's pool."""
    return any(labels.get(FEATURES + name) == "true" for name in PCI)


def mig_capable(labels: Mapping[str, str]) -> bool:
    """Whether a node's GPUs can do MIG, by GPU feature discovery's labels."""
    if _CAPABLE in labels:
        return labels[_CAPABLE] == "true"
    return any(product in labels.get(_PRODUCT, "").lower() for product in _MIG_PRODUCTS)


def node_labels(labels: Mapping[str, str], policy: OperatorPolicy) -> dict[str, str | None]:
    """Return labels that the operator sets on a node with these labels, or removes (None)."""
    after = dict(labels)
    if has_gpus(labels):
        after[PRESENT] = "true"
    elif labels.get(PRESENT) == "true":
        after[PRESENT] = "false"
    present = after.get(PRESENT) == "true"
    _set_deploy_labels(after, deploys=present and after.get(OPERANDS_LABEL) != "false")
    if present and _disables_mig(policy) and mig_capable(after) and not after.get(MIG_LABEL):
        after[MIG_LABEL] = DISABLED
    return {
        name: after.get(name)
        for name in sorted({*labels, *after})
        if labels.get(name) != after.get(name)
    }


def _set_deploy_labels(labels: dict[str, str], *, deploys: bool) -> None:
    """Set the labels by which operands choose a node, and take out those of other kinds of node."""
    for name in _FOREIGN if deploys else _ALL:
        labels.pop(DEPLOY + name, None)
    if not deploys:
        return
    for name in _DEPLOYED:
        labels[DEPLOY + name] = labels.get(DEPLOY + name) or "true"
    if mig_capable(labels):
        labels.setdefault(DEPLOY + "mig-manager", "true")


def _disables_mig(policy: OperatorPolicy) -> bool:
    """Whether the MIG manager's default is no MIG."""
    default = policy.text("migManager", "config", "default")
    return policy.enabled("migManager") and default == DISABLED


@dataclass(frozen=True)
class NodeFindings:
    """Findings of the controller about the cluster's nodes."""

    failure: str  # error that ends the reconcile at once; empty without one
    gpu_nodes: bool  # a node has GPUs; without one DaemonSets are neither created nor changed
    features: bool  # a node has a label of node feature discovery
    system: (
        str  # name and version of the first GPU node's system, the end of the driver image's tag
    )


def findings(nodes: Mapping[str, Mapping[str, str]]) -> NodeFindings:
    """Return the controller's findings about nodes, given as labels by name.

    The first node with GPUs stands for all; the real controller takes any one.
    """
    features = any(key.startswith(FEATURES) for labels in nodes.values() for key in labels)
    first = next(
        (nodes[name] for name in sorted(nodes) if nodes[name].get(PRESENT) == "true"), None
    )
    if first is None:
        return NodeFindings("", gpu_nodes=False, features=features, system="")
    failure = ""
    for what, label in (("version", OS_VERSION), ("name", OS_NAME)):
        if label not in first:
            failure = (
                f"failed to retrieve GPU node OS info: unable to retrieve OS {what} from label"
                f" {label}"
            )
    system = first.get(OS_NAME, "") + first.get(OS_VERSION, "")
    return NodeFindings(failure, gpu_nodes=True, features=features, system=system)


def runtime_classes(policy: OperatorPolicy) -> tuple[set[str], set[str]]:
    """Return names of runtime classes that the operator creates, and that it deletes."""
    own = {policy.runtime_class}
    if not policy.enabled("cdi"):
        return own, set(_CDI_CLASSES)
    return own | set(_CDI_CLASSES), set()


def rolled_out(daemonset: Mapping[str, Any]) -> bool:
    """Whether a DaemonSet counts as ready: it has no pods, or all are updated and available."""
    status = daemonset.get("status") or {}
    desired = status.get("desiredNumberScheduled") or 0
    return desired == 0 or (
        not status.get("numberUnavailable")
        and (status.get("observedGeneration") or 0)
        >= (daemonset["metadata"].get("generation") or 0)
        and status.get("updatedNumberScheduled") == status.get("numberAvailable") == desired
    )


def _reason_of(found: NodeFindings, states_not_ready: Collection[str]) -> tuple[str, str]:
    """Return reason and message of the condition that is true."""
    if found.failure:
        return "ReconcileFailed", found.failure
    if states_not_ready:
        states = f"[{' '.join(states_not_ready)}]"
        return "OperandNotReady", f"ClusterPolicy is not ready; states not ready: {states}"
    if not found.features:
        return "NFDLabelsMissing", "No NFD labels found"
    if not found.gpu_nodes:
        return "NoGPUNodes", "No GPU node found, watching for new nodes to join the cluster."
    return (
        "Reconciled",
        "ClusterPolicy is ready as all resources have been successfully reconciled",
    )


def status(
    before: Mapping[str, Any],
    namespace: str,
    found: NodeFindings,
    states_not_ready: Collection[str],
) -> dict[str, Any]:
    """Return the ClusterPolicy's next status; empty where it does not change.

    Args:
        before: the status that it has.
        namespace: the operator's.
        found: findings about the nodes.
        states_not_ready: states whose DaemonSets are not ready, in the operator's order.
    """
    reason, message = _reason_of(found, states_not_ready)
    is_error = reason in ("ReconcileFailed", "OperandNotReady")
    holds = {"reason": reason, "message": message, "status": "True"}
    does_not = {"reason": "Error" if is_error else "Ready", "message": "", "status": "False"}
    conditions = [
        {"type": "Ready", **(does_not if is_error else holds)},
        {"type": "Error", **(holds if is_error else does_not)},
    ]
    result = {
        "state": "notReady" if is_error else "ready",
        "namespace": namespace,
        "conditions": conditions,
    }
    without_times = []
    for condition in before.get("conditions") or []:
        fields = condition.items()
        without_times.append({key: value for key, value in fields if key != "lastTransitionTime"})
    if {**before, "conditions": without_times} == result:
        return {}
    return {
        **result,
        "conditions": [{**condition, "lastTransitionTime": now()} for condition in conditions],
    }
