"""Reasons why a pod waits for the devices that it claims. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.cluster.inventory import Claim, Device, DeviceKey, Inventory
from berth.components.cluster.object_fields import condition_in, labels_of
from berth.components.core.words import counted
from berth.components.hardware.names import (
    DRANET_DRIVER,
    GPU,
    MANAGED_DRANET_LABEL,
    MIG,
    POOL_LABEL,
)

NETWORK_PODS = "k8s-app=dranet"
"""Label of DraNet's pods, in its chart and its manifest alike
(https://github.com/kubernetes-sigs/dranet, install.yaml)."""
MANAGED_NETWORK_NAMESPACE = "gke-managed-networking-dra-driver"
"""Namespace in which GKE runs DraNet."""
GPU_PODS = "dra-driver-nvidia-gpu-component=kubelet-plugin"
"""Label of the pods of NVIDIA's DRA driver
(https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu, its chart)."""

_NODES_SHOWN = 4

_BY_GKE = "GKE creates it with the first pool of managed DRANET"
_BY_NVIDIA = "NVIDIA's DRA driver installs it"
_CREATORS = {
    "dranet": "`berth up` of the environment creates it",
    "mrdma.google.com": _BY_GKE,
    "netdev.google.com": _BY_GKE,
    "gpu.nvidia.com": _BY_NVIDIA,
    "mig.nvidia.com": _BY_NVIDIA,
    "compute-domain-default-channel.nvidia.com": _BY_NVIDIA,
}
"""Creator of a DeviceClass, by the name of the class."""

# The parts of a CEL expression that berth, GKE and NVIDIA's chart write; any other part counts as
# true.
_DRIVER = re.compile(r"""device\.driver\s*==\s*(?P<quote>["'])(?P<driver>[^"']+)(?P=quote)""")
_ATTRIBUTE = re.compile(
    r"""device\.attributes\[(?P<quote>["'])(?P<domain>[^"']+)(?P=quote)\]\.(?P<name>\w+)"""
    r"""\s*==\s*(?P<value>true|false|-?\d+|"[^"]*"|'[^']*')"""
)


def why_without_devices(
    pod: Object, inventory: Inventory, nodes: Iterable[Object], refused: str = ""
) -> str:
    """Return why a pending pod lacks devices; "" if it has them, or the reason is unknown.

    Args:
        pod: the pod.
        inventory: the devices of the cluster and the claims on them.
        nodes: the nodes of the pod's pool.
        refused: the API server's words on a claim of the pod that it refuses.
    """
    names = {
        status["name"]: status.get("resourceClaimName")
        for status in (pod.get("status") or {}).get("resourceClaimStatuses") or []
    }
    pool_nodes = list(nodes)
    reasons = []
    for entry in pod["spec"].get("resourceClaims") or []:
        name = entry.get("resourceClaimName") or names.get(entry["name"])
        claim = inventory.claim(pod["metadata"]["namespace"], name) if name else None
        if claim is None:
            reasons.append(_why_no_claim(pod, entry, name, inventory, refused))
        elif not claim.allocated:
            reasons.append(_why_unallocated(claim, inventory, pool_nodes, pod))
    reasons.append(_why_unbound(pod))
    return "; ".join(filter(None, reasons))


def _why_no_claim(
    pod: Object, entry: Object, name: str | None, inventory: Inventory, refused: str
) -> str:
    """Return why a claim that a pod refers to does not exist; "" if nobody knows."""
    template = entry.get("resourceClaimTemplateName")
    namespace = pod["metadata"]["namespace"]
    if template and (namespace, template) not in inventory.templates:
        return (
            f"its ResourceClaimTemplate {template} is not in namespace {namespace}; `berth up`"
            " creates it again"
        )
    if name:
        return f"its ResourceClaim {name} is gone"
    return f"its ResourceClaim could not be created: {refused}" if refused else ""


def _why_unbound(pod: Object) -> str:
    """Return the cause of a scheduler's message; Kubernetes has no field for it."""
    message = str(condition_in(pod, "PodScheduled").get("message"))
    if "empty request mappings" not in message:
        return ""
    return (
        "Kubernetes 1.36 and newer cannot bind a pod that counts nvidia.com/gpu and claims other"
        " devices while NVIDIA's DRA driver is in the cluster: `gpuAllocation: dra` on its pool"
        " lets it claim its GPUs too"
    )


@dataclass(frozen=True)
class _RequestedDevices:
    """Devices of one class that a claim requests, and those of the cluster that fit."""

    singular: str
    plural: str
    count: int | None
    """Number of devices; None for all of a node."""
    driver: str
    devices: Sequence[Device]

    @property
    def noun(self) -> str:
        """Name of as many devices as are requested."""
        return self.singular if self.count == 1 else self.plural

    def __str__(self) -> str:
        return f"{'all' if self.count is None else self.count} {self.noun}"


def _why_unallocated(
    claim: Claim, inventory: Inventory, nodes: Sequence[Object], pod: Object
) -> str:
    """Return why the scheduler finds no devices for a claim; "" if the autoscaler says why."""
    classes = {request.device_class for request in claim.requests}
    if missing := sorted(classes - inventory.classes.keys()):
        creator = _CREATORS.get(missing[0], "`kubectl get deviceclasses` shows the existing ones")
        return (
            f"it claims devices of class {missing[0]}, but there is no such DeviceClass: {creator}"
        )
    if not nodes:
        # The autoscaler says why there is no node.
        return ""
    demands = _demands_of(claim, inventory)
    names = [str(node["metadata"]["name"]) for node in nodes]
    request = f"it wants {' and '.join(map(str, demands))}"
    for demand in demands:
        if not any(device.node in names for device in demand.devices):
            pool = (pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL, "")
            return (
                f"{request}, but no node of pool {pool} has published any {demand.noun}:"
                f" {_where_to_look(demand, nodes)}"
            )
    return f"{request}; {_held_devices(claim, demands, names, inventory.holders)}"


def _held_devices(
    claim: Claim,
    demands: Sequence[_RequestedDevices],
    nodes: Sequence[str],
    holders: Mapping[DeviceKey, Claim],
) -> str:
    """Return who holds the devices of nodes that a claim does not get."""
    states = [f"node {node}: {_state_of(node, demands, holders)}" for node in nodes[:_NODES_SHOWN]]
    if len(nodes) > _NODES_SHOWN:
        states.append(f"and {counted(len(nodes) - _NODES_SHOWN, 'more node')}")
    text = "; ".join(states)
    if not any(_has_enough(node, demands, holders) for node in nodes):
        return text
    common = "devices that are free have no PCIe root in common, or " if claim.constrained else ""
    return f"{text}; where enough are free, {common}the node lacks something else"


def _demands_of(claim: Claim, inventory: Inventory) -> list[_RequestedDevices]:
    """Return the devices that a claim requests, by class and by what selects them."""
    counts: dict[tuple[str, tuple[str, ...]], int | None] = {}
    for request in claim.requests:
        key = (request.device_class, request.expressions)
        before = counts.get(key, 0)
        counts[key] = None if before is None or request.count is None else before + request.count
    demands = []
    for (device_class, selectors), count in counts.items():
        expressions = (*inventory.classes[device_class], *selectors)
        driver = _driver_in(expressions)
        singular, plural = _nouns(device_class, driver)
        devices = [
            device
            for device in inventory.devices
            if driver in ("", device.driver) and _is_selected(device, expressions)
        ]
        demands.append(_RequestedDevices(singular, plural, count, driver, devices))
    return demands


def _nouns(device_class: str, driver: str) -> tuple[str, str]:
    """Return the noun for devices of a class, in singular and plural."""
    if driver == DRANET_DRIVER:
        return ("NIC", "NICs")
    if driver == GPU:
        return ("MIG instance", "MIG instances") if device_class == MIG else ("GPU", "GPUs")
    return (f"of {device_class}", f"of {device_class}")


def _driver_in(expressions: Iterable[str]) -> str:
    """Return the driver that CEL expressions name first; "" for none."""
    for text in expressions:
        if match := _DRIVER.search(text):
            return match["driver"]
    return ""


def _is_selected(device: Device, expressions: Iterable[str]) -> bool:
    for text in expressions:
        for match in _ATTRIBUTE.finditer(text):
            attribute = device.attributes.get(f"{match['domain']}/{match['name']}")
            if attribute != _literal(match["value"]):
                return False
    return True


def _literal(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1] if text[0] in "\"'" else int(text)


def _state_of(
    node: str, demands: Sequence[_RequestedDevices], holders: Mapping[DeviceKey, Claim]
) -> str:
    """Return who holds the devices of a node, for each kind of devices that a claim requests."""
    states = []
    for demand in demands:
        devices = [device for device in demand.devices if device.node == node]
        held = Counter(holders[device.key].holder for device in devices if device.key in holders)
        free = len(devices) - held.total()
        parts = [f"{count} of {len(devices)} held by {holder}" for holder, count in held.items()]
        if not held:
            parts.append(f"none of {len(devices)} held")
        elif free:
            parts.append(f"{free} free")
        state = ", ".join(parts)
        states.append(f"{state} ({demand.plural})" if len(demands) > 1 else state)
    return ", ".join(states)


def _has_enough(
    node: str, demands: Iterable[_RequestedDevices], holders: Mapping[DeviceKey, Claim]
) -> bool:
    """Return whether as many devices of a node are free as a claim requests."""
    for demand in demands:
        devices = [device for device in demand.devices if device.node == node]
        free = sum(device.key not in holders for device in devices)
        if free < (len(devices) if demand.count is None else demand.count):
            return False
    return True


def _where_to_look(demand: _RequestedDevices, nodes: Iterable[Object]) -> str:
    """Return where to look if no node of a pool has published devices of a kind."""
    if demand.driver == GPU:
        return (
            f"NVIDIA's DRA driver does not run there (kubectl get pods -A -l {GPU_PODS} -o wide),"
            " or finds no driver of the GPUs"
        )
    if demand.driver != DRANET_DRIVER:
        return "`kubectl get resourceslices` shows which nodes publish what"
    if any(labels_of(node).get(MANAGED_DRANET_LABEL) == "true" for node in nodes):
        return (
            "GKE's DRANET does not work there"
            f" (kubectl get pods -n {MANAGED_NETWORK_NAMESPACE} -o wide)"
        )
    return (
        f"DraNet does not run there (kubectl get pods -A -l {NETWORK_PODS} -o wide), or the nodes"
        " have no RDMA networks"
    )
