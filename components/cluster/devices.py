"""Devices that nodes publish, claims on them, and why a claim gets none: pure, whatever version of resource.k8s.io it is from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.components.hardware.names import (
    DRANET,
    DRANET_DRIVER,
    GPU,
    MANAGED_DRANET_LABEL,
    MANAGED_RDMA,
    MIG,
    POOL_LABEL,
)

Object = dict[str, Any]
Key = tuple[str, str, str]
"""Driver, pool and name of a device."""

NETWORK_PODS = "k8s-app=dranet"
"""Label of DraNet's pods, in its chart and its manifest alike (https://github.com/kubernetes-sigs/dranet, install.yaml)."""
MANAGED_NETWORK_NAMESPACE = "gke-managed-networking-dra-driver"
"""Where GKE runs DraNet itself."""
GPU_PODS = "dra-driver-nvidia-gpu-component=kubelet-plugin"
"""Label of the pods of NVIDIA's DRA driver (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu, its chart)."""

_NETDEV = "netdev.google.com"
_OF_WHOM = {
    DRANET: "`pulumi up` of the environment makes it",
    MANAGED_RDMA: "GKE makes it with the first pool of managed DRANET",
    _NETDEV: "GKE makes it with the first pool of managed DRANET",
    GPU: "NVIDIA's DRA driver brings it",
    MIG: "NVIDIA's DRA driver brings it",
}
_NODES_SHOWN = 4

# The parts of a CEL expression that berth, GKE and NVIDIA's chart write; any other is taken for true.
_DRIVER = re.compile(r"""device\.driver\s*==\s*(?P<quote>["'])(?P<driver>[^"']+)(?P=quote)""")
_ATTRIBUTE = re.compile(
    r"""device\.attributes\[(?P<quote>["'])(?P<domain>[^"']+)(?P=quote)\]\.(?P<name>\w+)\s*==\s*(?P<value>true|false|-?\d+|"[^"]*"|'[^']*')"""
)


@dataclass(frozen=True)
class Device:
    """One device of a node.

    Attributes:
        driver: the driver that publishes it.
        pool: the driver's pool, for both drivers the node.
        name: its name there.
        node: the node that it is in.
        attributes: by name with domain, such as `dra.net/rdma`.
    """

    driver: str
    pool: str
    name: str
    node: str
    attributes: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """How allocations name it."""
        return (self.driver, self.pool, self.name)

    @property
    def is_nic(self) -> bool:
        """It is an RDMA NIC."""
        return self.driver == DRANET_DRIVER and self.attributes.get(f"{DRANET_DRIVER}/rdma") is True

    @property
    def is_gpu(self) -> bool:
        """It is a GPU, or a MIG instance of one."""
        return self.driver == GPU and self.attributes.get(f"{GPU}/type") in ("gpu", "mig")


@dataclass(frozen=True)
class Request:
    """What a claim asks for.

    Attributes:
        device_class: the devices' class.
        count: how many; None for all of a node.
        expressions: CEL expressions that are true for them, beside those of the class.
    """

    device_class: str
    count: int | None
    expressions: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """A ResourceClaim.

    Attributes:
        namespace: where it is.
        name: its name.
        requests: what it asks for.
        allocated: devices were allocated to it.
        held: those devices.
        pods: the pods that it is reserved for.
        constrained: devices of several requests must have something in common.
    """

    namespace: str
    name: str
    requests: tuple[Request, ...]
    allocated: bool
    held: tuple[Key, ...]
    pods: tuple[str, ...]
    constrained: bool

    @property
    def holder(self) -> str:
        """Who has it, for people: a berth's or cluster's name and its pods."""
        owner = self.namespace.removeprefix("berth-") if self.namespace.startswith("berth-") else ""
        pods = ", ".join(f"pod {pod}" for pod in self.pods) or f"claim {self.name}"
        return f"{owner or f'namespace {self.namespace}'} ({pods})"


@dataclass(frozen=True)
class Inventory:
    """All devices of a cluster, and who claims them.

    Attributes:
        devices: what nodes publish.
        claims: all ResourceClaims.
        classes: the CEL expressions of each DeviceClass, by its name.
        templates: namespace and name of each ResourceClaimTemplate.
    """

    devices: Sequence[Device]
    claims: Sequence[Claim]
    classes: Mapping[str, tuple[str, ...]]
    templates: frozenset[tuple[str, str]]

    @property
    def holders(self) -> Mapping[Key, Claim]:
        """The claim that holds a device, by device."""
        return {key: claim for claim in self.claims for key in claim.held}

    def claim(self, namespace: str, name: str) -> Claim | None:
        """A claim by its name."""
        return next((each for each in self.claims if (each.namespace, each.name) == (namespace, name)), None)


NOTHING = Inventory([], [], {}, frozenset())
"""Where no node publishes devices, or the API server serves no such kinds."""


def inventory(
    slices: Iterable[Object], claims: Iterable[Object], classes: Iterable[Object], templates: Iterable[Object]
) -> Inventory:
    """What the API server's objects say, of any of the versions v1, v1beta2 and v1beta1."""
    return Inventory(
        devices=_devices(list(slices)),
        claims=[_claim(each) for each in claims],
        classes={each["metadata"]["name"]: _expressions(each["spec"]) for each in classes},
        templates=frozenset((each["metadata"]["namespace"], each["metadata"]["name"]) for each in templates),
    )


def _devices(slices: list[Object]) -> list[Device]:
    newest: dict[tuple[str, str], int] = {}
    for each in slices:
        key = (each["spec"]["driver"], each["spec"]["pool"]["name"])
        newest[key] = max(newest.get(key, 0), each["spec"]["pool"]["generation"])
    found = []
    for each in slices:
        driver, pool = each["spec"]["driver"], each["spec"]["pool"]
        if pool["generation"] < newest[driver, pool["name"]]:
            continue
        for device in each["spec"].get("devices") or []:
            # v1beta1 has what belongs to a device one level deeper.
            content = device.get("basic") or device
            attributes = {
                name if "/" in name else f"{driver}/{name}": next(iter(value.values()), None)
                for name, value in (content.get("attributes") or {}).items()
            }
            node = each["spec"].get("nodeName") or content.get("nodeName") or ""
            found.append(Device(driver, pool["name"], device["name"], node, attributes))
    return found


def _claim(claim: Object) -> Claim:
    metadata, devices, status = claim["metadata"], claim["spec"].get("devices") or {}, claim.get("status") or {}
    allocation = status.get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or []
    return Claim(
        namespace=metadata["namespace"],
        name=metadata["name"],
        requests=tuple(_request(each) for each in devices.get("requests") or []),
        allocated=allocation is not None,
        held=tuple((each["driver"], each["pool"], each["device"]) for each in results if not each.get("adminAccess")),
        pods=tuple(each["name"] for each in status.get("reservedFor") or [] if each.get("resource") == "pods"),
        constrained=bool(devices.get("constraints")),
    )


def _request(request: Object) -> Request:
    # v1beta1 has no `exactly`; of alternatives the first one is what is wanted most.
    content = request.get("exactly") or next(iter(request.get("firstAvailable") or []), request)
    count = None if content.get("allocationMode") == "All" else int(content.get("count") or 1)
    return Request(str(content.get("deviceClassName") or ""), count, _expressions(content))


def _expressions(spec: Object) -> tuple[str, ...]:
    return tuple(each["cel"]["expression"] for each in spec.get("selectors") or [] if each.get("cel"))


def why_without_devices(pod: Object, seen: Inventory, nodes: Iterable[Object], refused: str = "") -> str:
    """Why a pod that waits has not got the devices that it claims, beyond the scheduler's words; "" if it has, or none can tell.

    Args:
        pod: the pod.
        seen: the cluster's devices and claims.
        nodes: the nodes of the pool that the pod asks for.
        refused: why a claim could not be made from its template, in the API server's words.
    """
    names = {each["name"]: each.get("resourceClaimName") for each in _statuses(pod)}
    there = list(nodes)
    reasons = []
    for entry in pod["spec"].get("resourceClaims") or []:
        template, namespace = entry.get("resourceClaimTemplateName"), pod["metadata"]["namespace"]
        name = entry.get("resourceClaimName") or names.get(entry["name"])
        claim = seen.claim(namespace, name) if name else None
        if claim is None and template and (namespace, template) not in seen.templates:
            reasons.append(
                f"its ResourceClaimTemplate {template} is not in namespace {namespace}; `pulumi up` makes it again"
            )
        elif claim is None and name:
            reasons.append(f"its ResourceClaim {name} is gone")
        elif claim is None and refused:
            reasons.append(f"its ResourceClaim could not be made: {refused}")
        elif claim is not None and not claim.allocated:
            reasons.append(_why_unallocated(claim, seen, there, pod))
    return "; ".join(filter(None, [*reasons, _why_unbound(pod)]))


def _why_unbound(pod: Object) -> str:
    """What is behind words of the scheduler's own that tell nobody anything."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    said = next((str(each.get("message")) for each in conditions if each["type"] == "PodScheduled"), "")
    if "empty request mappings" not in said:
        return ""
    return (
        "Kubernetes 1.36 and newer cannot bind a pod that counts nvidia.com/gpu and claims other devices while NVIDIA's DRA driver"
        " is in the cluster: `gpuAllocation: dra` on its pool lets it claim its GPUs too"
    )


def _statuses(pod: Object) -> list[Object]:
    return (pod.get("status") or {}).get("resourceClaimStatuses") or []


def _why_unallocated(claim: Claim, seen: Inventory, nodes: list[Object], pod: Object) -> str:
    missing = sorted({each.device_class for each in claim.requests if each.device_class not in seen.classes})
    if missing:
        known = _OF_WHOM.get(missing[0], "`kubectl get deviceclasses` shows those that are there")
        return f"it claims devices of class {missing[0]}, but there is no such DeviceClass: {known}"
    kinds = _kinds(claim, seen)
    pool = (pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL, "")
    names = [node["metadata"]["name"] for node in nodes]
    if not names:
        # Without a node nothing can be said of devices; why there is none, the autoscaler says.
        return ""
    wants = " and ".join(f"{'all' if kind.count is None else kind.count} {kind.noun}" for kind in kinds)
    for kind in kinds:
        if not any(device.node in names for device in kind.devices):
            return f"it wants {wants}, but no node of pool {pool} has published any {kind.noun}: {_where_to_look(kind, nodes)}"
    told = [_of_node(name, kinds, seen.holders) for name in names]
    shown = [text for text, _ in told[:_NODES_SHOWN]]
    if len(told) > _NODES_SHOWN:
        shown.append(f"and {len(told) - _NODES_SHOWN} nodes more")
    text = f"it wants {wants}; {'; '.join(shown)}"
    if any(enough for _, enough in told):
        common = "devices that are free have no PCIe root in common, or " if claim.constrained else ""
        text += f"; where enough are free, {common}the node lacks something else"
    return text


@dataclass(frozen=True)
class _Kind:
    """Devices of one class that a claim wants, over all its requests."""

    noun: str
    count: int | None
    driver: str
    devices: Sequence[Device]


def _kinds(claim: Claim, seen: Inventory) -> list[_Kind]:
    counts: dict[tuple[str, tuple[str, ...]], int | None] = {}
    for each in claim.requests:
        key, before = (each.device_class, each.expressions), counts.get((each.device_class, each.expressions), 0)
        counts[key] = None if before is None or each.count is None else before + each.count
    found = []
    for (device_class, own), count in counts.items():
        expressions = (*seen.classes[device_class], *own)
        drivers = {match["driver"] for text in expressions for match in _DRIVER.finditer(text)}
        driver = next(iter(drivers), "")
        devices = [each for each in seen.devices if driver in ("", each.driver) and _selected(each, expressions)]
        found.append(_Kind(_noun(device_class, driver, count), count, driver, devices))
    return found


def _noun(device_class: str, driver: str, count: int | None) -> str:
    if driver == DRANET_DRIVER:
        noun = "NIC"
    elif driver == GPU:
        noun = "MIG instance" if device_class == MIG else "GPU"
    else:
        return f"of {device_class}"
    return noun if count == 1 else f"{noun}s"


def _selected(device: Device, expressions: Iterable[str]) -> bool:
    wanted = [match for text in expressions for match in _ATTRIBUTE.finditer(text)]
    return all(device.attributes.get(f"{each['domain']}/{each['name']}") == _literal(each["value"]) for each in wanted)


def _literal(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1] if text[0] in "\"'" else int(text)


def _of_node(node: str, kinds: Iterable[_Kind], holders: Mapping[Key, Claim]) -> tuple[str, bool]:
    """What a node has of each kind, and whether that is enough."""
    parts, enough = [], True
    for kind in kinds:
        mine = [device for device in kind.devices if device.node == node]
        held = Counter(holders[device.key].holder for device in mine if device.key in holders)
        free = len(mine) - held.total()
        noun = kind.noun if kind.noun.startswith("of ") else kind.noun.removesuffix("s") + "s"
        by = ", ".join(f"{count} of {len(mine)} held by {holder}" for holder, count in held.items())
        parts.append(f"{by or f'none of {len(mine)} held'}{f', {free} free' if held and free else ''} ({noun})")
        enough = enough and (free == len(mine) if kind.count is None else free >= kind.count)
    if len(parts) == 1:
        parts = [parts[0].rpartition(" (")[0]]
    return f"node {node}: {', '.join(parts)}", enough


def _where_to_look(kind: _Kind, nodes: Iterable[Object]) -> str:
    if kind.driver == DRANET_DRIVER:
        managed = any((node["metadata"].get("labels") or {}).get(MANAGED_DRANET_LABEL) == "true" for node in nodes)
        if managed:
            return f"GKE's DRANET does not work there (kubectl get pods -n {MANAGED_NETWORK_NAMESPACE} -o wide)"
        return f"DraNet does not run there (kubectl get pods -A -l {NETWORK_PODS} -o wide), or the nodes have no RDMA networks"
    if kind.driver == GPU:
        return (
            f"NVIDIA's DRA driver does not run there (kubectl get pods -A -l {GPU_PODS} -o wide), or finds no driver of"
            " the GPUs"
        )
    return "`kubectl get resourceslices` shows which nodes publish what"
