"""Reasons why a pod waits for the devices that it claims. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.cluster.inventory import Claim, Device, Inventory, Key
from berth.components.core import fast_yaml
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

_WORDS = fast_yaml.load_beside(__file__)
_NODES_SHOWN = 4

# The parts of a CEL expression that berth, GKE and NVIDIA's chart write; any other part counts as
# true.
_DRIVER = re.compile(r"""device\.driver\s*==\s*(?P<quote>["'])(?P<driver>[^"']+)(?P=quote)""")
_ATTRIBUTE = re.compile(
    r"""device\.attributes\[(?P<quote>["'])(?P<domain>[^"']+)(?P=quote)\]\.(?P<name>\w+)"""
    r"""\s*==\s*(?P<value>true|false|-?\d+|"[^"]*"|'[^']*')"""
)


def why_without_devices(
    pod: Object, seen: Inventory, nodes: Iterable[Object], refused: str = ""
) -> str:
    """Return why a pending pod lacks devices; "" if it has them, or the reason is unknown.

    `nodes` are those of the pod's pool; `refused` has the API server's words on a claim.
    """
    status, namespace = pod.get("status") or {}, pod["metadata"]["namespace"]
    names = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in status.get("resourceClaimStatuses") or []
    }
    there = list(nodes)
    reasons = []
    for entry in pod["spec"].get("resourceClaims") or []:
        template = entry.get("resourceClaimTemplateName")
        name = entry.get("resourceClaimName") or names.get(entry["name"])
        claim = seen.claim(namespace, name) if name else None
        if claim is not None:
            reasons.append("" if claim.allocated else _why_unallocated(claim, seen, there, pod))
        elif template and (namespace, template) not in seen.templates:
            reasons.append(
                f"its ResourceClaimTemplate {template} is not in namespace {namespace}; `pulumi up`"
                " creates it again"
            )
        elif name:
            reasons.append(f"its ResourceClaim {name} is gone")
        elif refused:
            reasons.append(f"its ResourceClaim could not be created: {refused}")
    return "; ".join(filter(None, [*reasons, _why_unbound(status)]))


def _why_unbound(status: Object) -> str:
    """Return the cause of a scheduler's message; Kubernetes has no field for it."""
    conditions = status.get("conditions") or []
    message = next(
        (str(entry.get("message")) for entry in conditions if entry["type"] == "PodScheduled"), ""
    )
    if "empty request mappings" not in message:
        return ""
    return (
        "Kubernetes 1.36 and newer cannot bind a pod that counts nvidia.com/gpu and claims other"
        " devices while NVIDIA's DRA driver is in the cluster: `gpuAllocation: dra` on its pool"
        " lets it claim its GPUs too"
    )


@dataclass(frozen=True)
class _Kind:
    """Devices of one class that a claim requests; `nouns` are singular and plural."""

    nouns: tuple[str, str]
    count: int | None
    driver: str
    devices: Sequence[Device]

    @property
    def noun(self) -> str:
        """Name of as many devices as are requested."""
        return self.nouns[self.count != 1]


def _why_unallocated(claim: Claim, seen: Inventory, nodes: list[Object], pod: Object) -> str:
    missing = sorted(
        {
            request.device_class
            for request in claim.requests
            if request.device_class not in seen.classes
        }
    )
    if missing:
        creator = _WORDS["creators"].get(missing[0], _WORDS["creators"]["other"])
        return (
            f"it claims devices of class {missing[0]}, but there is no such DeviceClass: {creator}"
        )
    if not nodes:
        # The autoscaler says why there is no node.
        return ""
    kinds = _kinds(claim, seen)
    names = [node["metadata"]["name"] for node in nodes]
    wants = " and ".join(
        f"{'all' if kind.count is None else kind.count} {kind.noun}" for kind in kinds
    )
    for kind in kinds:
        if not any(device.node in names for device in kind.devices):
            pool = (pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL, "")
            where = _where_to_look(kind, nodes)
            return (
                f"it wants {wants}, but no node of pool {pool} has published any {kind.noun}:"
                f" {where}"
            )
    states = [_node_state(name, kinds, seen.holders) for name in names]
    shown = [text for text, _ in states[:_NODES_SHOWN]]
    if len(states) > _NODES_SHOWN:
        shown.append(f"and {counted(len(states) - _NODES_SHOWN, 'more node')}")
    text = f"it wants {wants}; {'; '.join(shown)}"
    if any(enough for _, enough in states):
        common = (
            "devices that are free have no PCIe root in common, or " if claim.constrained else ""
        )
        text += f"; where enough are free, {common}the node lacks something else"
    return text


def _kinds(claim: Claim, seen: Inventory) -> list[_Kind]:
    counts: dict[tuple[str, tuple[str, ...]], int | None] = {}
    for request in claim.requests:
        key = (request.device_class, request.expressions)
        before = counts.get(key, 0)
        counts[key] = None if before is None or request.count is None else before + request.count
    found = []
    for (device_class, own), count in counts.items():
        expressions = (*seen.classes[device_class], *own)
        driver = next(
            (match["driver"] for text in expressions for match in _DRIVER.finditer(text)), ""
        )
        devices = [
            device
            for device in seen.devices
            if driver in ("", device.driver) and _selected(device, expressions)
        ]
        found.append(_Kind(_nouns(device_class, driver), count, driver, devices))
    return found


def _nouns(device_class: str, driver: str) -> tuple[str, str]:
    if driver == DRANET_DRIVER:
        return ("NIC", "NICs")
    if driver == GPU:
        return ("MIG instance", "MIG instances") if device_class == MIG else ("GPU", "GPUs")
    return (f"of {device_class}", f"of {device_class}")


def _selected(device: Device, expressions: Iterable[str]) -> bool:
    matches = (match for text in expressions for match in _ATTRIBUTE.finditer(text))
    return all(
        device.attributes.get(f"{match['domain']}/{match['name']}") == _literal(match["value"])
        for match in matches
    )


def _literal(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1] if text[0] in "\"'" else int(text)


def _node_state(
    node: str, kinds: Sequence[_Kind], holders: Mapping[Key, Claim]
) -> tuple[str, bool]:
    """Return the devices that a node has of each kind, and whether they suffice."""
    parts, enough = [], True
    for kind in kinds:
        mine = [device for device in kind.devices if device.node == node]
        held = Counter(holders[device.key].holder for device in mine if device.key in holders)
        free = len(mine) - held.total()
        by = ", ".join(f"{count} of {len(mine)} held by {holder}" for holder, count in held.items())
        state = f"{by or f'none of {len(mine)} held'}{f', {free} free' if held and free else ''}"
        parts.append(f"{state} ({kind.nouns[1]})" if len(kinds) > 1 else state)
        enough = enough and (free == len(mine) if kind.count is None else free >= kind.count)
    return f"node {node}: {', '.join(parts)}", enough


def _where_to_look(kind: _Kind, nodes: Iterable[Object]) -> str:
    publisher = {DRANET_DRIVER: "dranet", GPU: "gpu"}.get(kind.driver, "other")
    labels = [node["metadata"].get("labels") or {} for node in nodes]
    if publisher == "dranet" and any(
        of_node.get(MANAGED_DRANET_LABEL) == "true" for of_node in labels
    ):
        publisher = "managed"
    pods = {
        "namespace": MANAGED_NETWORK_NAMESPACE,
        "network_pods": NETWORK_PODS,
        "gpu_pods": GPU_PODS,
    }
    return str(_WORDS["publishers"][publisher].format(**pods))
