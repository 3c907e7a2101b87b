"""Devices that nodes publish and the claims on them, of any version of resource.k8s.io."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from berth.components.cluster.api import Object, Reader
from berth.components.hardware.names import DRANET_DRIVER, GPU, ResourceApi

GROUP = "/apis/resource.k8s.io"

# GKE lets beta APIs be switched on kind by kind
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/use-beta-apis).
NEEDED = ("resourceslices", "resourceclaims", "deviceclasses", "resourceclaimtemplates")
"""Kinds that claims need."""

DeviceKey = tuple[str, str, str]
"""Driver, pool and name of a device."""


@dataclass(frozen=True)
class Device:
    """Device of a node, with attributes by name and domain, such as `dra.net/rdma`."""

    driver: str
    pool: str
    name: str
    node: str
    attributes: Mapping[str, Any]

    @property
    def key(self) -> DeviceKey:
        """Name of the device in allocations."""
        return (self.driver, self.pool, self.name)

    @property
    def is_nic(self) -> bool:
        """Whether the device is an RDMA NIC."""
        return self.driver == DRANET_DRIVER and self.attributes.get(f"{DRANET_DRIVER}/rdma") is True

    @property
    def is_gpu(self) -> bool:
        """Whether the device is a GPU, or a MIG instance of one."""
        return self.driver == GPU and self.attributes.get(f"{GPU}/type") in ("gpu", "mig")


@dataclass(frozen=True)
class DeviceRequest:
    """Request for devices of a class (count None: all of a node) that CEL expressions select."""

    device_class: str
    count: int | None
    expressions: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """ResourceClaim."""

    namespace: str
    name: str
    requests: tuple[DeviceRequest, ...]
    allocated: bool
    held: Mapping[DeviceKey, str]
    """Classes of the allocated devices, by device."""
    pods: tuple[str, ...]
    """The pods that the claim is reserved for."""
    constrained: bool
    """Whether devices of several requests must have an attribute in common."""

    @property
    def holder(self) -> str:
        """Name of the berth or namespace with the claim's pods, for people."""
        berth = self.namespace.removeprefix("berth-")
        owner = berth if berth != self.namespace else f"namespace {self.namespace}"
        return f"{owner} ({', '.join(f'pod {pod}' for pod in self.pods) or f'claim {self.name}'})"


@dataclass(frozen=True)
class Inventory:
    """Published devices and claims of a cluster, CEL expressions by class, and claim templates."""

    devices: Sequence[Device]
    claims: Sequence[Claim]
    classes: Mapping[str, tuple[str, ...]]
    templates: frozenset[tuple[str, str]]

    @property
    def holders(self) -> Mapping[DeviceKey, Claim]:
        """The claim that holds a device, by device."""
        holders: dict[DeviceKey, Claim] = {}
        for claim in self.claims:
            holders |= dict.fromkeys(claim.held, claim)
        return holders

    def claim(self, namespace: str, name: str) -> Claim | None:
        """Return a claim by its name."""
        return next(
            (claim for claim in self.claims if (claim.namespace, claim.name) == (namespace, name)),
            None,
        )


NOTHING = Inventory([], [], {}, frozenset())
"""Inventory of a cluster without published devices, or without these kinds."""


def served_version(api: Reader) -> ResourceApi | None:
    """Return the newest version with all kinds that claims need; None without one."""
    offered = _names(api.get(GROUP), "versions", "version")
    versions: tuple[ResourceApi, ...] = get_args(ResourceApi)
    for version in versions:
        if version not in offered:
            continue
        kinds = _names(api.get(f"{GROUP}/{version}"), "resources", "name")
        if kinds.issuperset(NEEDED):
            return version
    return None


def _names(answer: Object | None, entries: str, key: str) -> set[str]:
    return {str(entry[key]) for entry in (answer or {}).get(entries) or []}


def inventory_of(api: Reader) -> Inventory:
    """Read a cluster's devices and claims; `NOTHING` where the server has no such kinds."""
    version = served_version(api)
    if version is None:
        return NOTHING
    return inventory_of_objects(*(api.list(f"{GROUP}/{version}/{kind}")[0] for kind in NEEDED))


def inventory_of_objects(
    slices: Iterable[Object],
    claims: Iterable[Object],
    classes: Iterable[Object],
    templates: Iterable[Object],
) -> Inventory:
    """Return the inventory that the API server's objects describe."""
    return Inventory(
        devices=_published(slices),
        claims=[_claim(claim) for claim in claims],
        classes={entry["metadata"]["name"]: _expressions(entry["spec"]) for entry in classes},
        templates=frozenset(
            (entry["metadata"]["namespace"], entry["metadata"]["name"]) for entry in templates
        ),
    )


def _published(slices: Iterable[Object]) -> list[Device]:
    """Return the devices in the newest generation of each pool."""
    specs = [entry["spec"] for entry in slices]
    newest: dict[tuple[str, str], int] = {}
    for spec in specs:
        key = (spec["driver"], spec["pool"]["name"])
        newest[key] = max(newest.get(key, 0), _generation(spec))
    published = []
    for spec in specs:
        if _generation(spec) == newest[spec["driver"], spec["pool"]["name"]]:
            published += [_device(spec, device) for device in spec.get("devices") or []]
    return published


def _device(spec: Object, device: Object) -> Device:
    """Return a device of a ResourceSlice with a spec.

    v1beta1 has a device's content one level deeper
    (https://pkg.go.dev/k8s.io/api/resource/v1beta1#Device).
    """
    driver = spec["driver"]
    content = device.get("basic") or device
    attributes = {}
    for name, value in (content.get("attributes") or {}).items():
        whole_name = name if "/" in name else f"{driver}/{name}"
        attributes[whole_name] = next(iter(value.values()), None)
    node = spec.get("nodeName") or content.get("nodeName") or ""
    return Device(driver, spec["pool"]["name"], device["name"], node, attributes)


def _generation(spec: Object) -> int:
    return int(spec["pool"].get("generation") or 0)


def _claim(claim: Object) -> Claim:
    metadata = claim["metadata"]
    devices = claim["spec"].get("devices") or {}
    status = claim.get("status") or {}
    requests = {request["name"]: _request(request) for request in devices.get("requests") or []}
    users = status.get("reservedFor") or []
    return Claim(
        namespace=metadata["namespace"],
        name=metadata["name"],
        requests=tuple(requests.values()),
        allocated=status.get("allocation") is not None,
        held=_held(status.get("allocation") or {}, requests),
        pods=tuple(user["name"] for user in users if user.get("resource") == "pods"),
        constrained=bool(devices.get("constraints")),
    )


def _held(allocation: Object, requests: Mapping[str, DeviceRequest]) -> dict[DeviceKey, str]:
    """Return the classes of the devices of an allocation, but those of access for admins."""
    held = {}
    for result in (allocation.get("devices") or {}).get("results") or []:
        if result.get("adminAccess"):
            continue
        # A request with alternatives is answered as `request/alternative`.
        request = requests.get(str(result.get("request")).partition("/")[0])
        key = (result["driver"], result["pool"], result["device"])
        held[key] = request.device_class if request else ""
    return held


def _request(request: Object) -> DeviceRequest:
    # v1beta1 has no `exactly`; of alternatives the first one is preferred.
    content = request.get("exactly") or next(iter(request.get("firstAvailable") or []), request)
    count = None if content.get("allocationMode") == "All" else int(content.get("count") or 1)
    device_class = str(content.get("deviceClassName") or "")
    return DeviceRequest(device_class, count, _expressions(content))


def _expressions(spec: Object) -> tuple[str, ...]:
    return tuple(
        selector["cel"]["expression"]
        for selector in spec.get("selectors") or []
        if selector.get("cel")
    )
