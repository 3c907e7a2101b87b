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

Key = tuple[str, str, str]
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
    def key(self) -> Key:
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
class Request:
    """Request for devices of a class (count None: all of a node) that CEL expressions select."""

    device_class: str
    count: int | None
    expressions: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """ResourceClaim."""

    namespace: str
    name: str
    requests: tuple[Request, ...]
    allocated: bool
    held: Mapping[Key, str]
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
    def holders(self) -> Mapping[Key, Claim]:
        """The claim that holds a device, by device."""
        return {key: claim for claim in self.claims for key in claim.held}

    def claim(self, namespace: str, name: str) -> Claim | None:
        """Return a claim by its name."""
        return next(
            (claim for claim in self.claims if (claim.namespace, claim.name) == (namespace, name)),
            None,
        )


NOTHING = Inventory([], [], {}, frozenset())
"""Inventory of a cluster without published devices, or without these kinds."""


def served(api: Reader) -> ResourceApi | None:
    """Return the newest version with all kinds that claims need; None without one."""
    offered = _names(api.get(GROUP), "versions", "version")
    versions: tuple[ResourceApi, ...] = get_args(ResourceApi)
    for version in versions:
        if version in offered and _names(api.get(f"{GROUP}/{version}"), "resources", "name") >= {
            *NEEDED
        }:
            return version
    return None


def _names(answer: Object | None, entries: str, key: str) -> set[str]:
    return {str(entry[key]) for entry in (answer or {}).get(entries) or []}


def inventory_of(api: Reader) -> Inventory:
    """Read a cluster's devices and claims; `NOTHING` where the server has no such kinds."""
    version = served(api)
    if version is None:
        return NOTHING
    return inventory(*(api.list(f"{GROUP}/{version}/{kind}")[0] for kind in NEEDED))


def inventory(
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
    found = []
    for spec in specs:
        driver, pool = spec["driver"], spec["pool"]["name"]
        if _generation(spec) < newest[driver, pool]:
            continue
        for device in spec.get("devices") or []:
            # v1beta1 has a device's content one level deeper
            # (https://pkg.go.dev/k8s.io/api/resource/v1beta1#Device).
            content = device.get("basic") or device
            attributes = {
                name if "/" in name else f"{driver}/{name}": next(iter(value.values()), None)
                for name, value in (content.get("attributes") or {}).items()
            }
            node = spec.get("nodeName") or content.get("nodeName") or ""
            found.append(Device(driver, pool, device["name"], node, attributes))
    return found


def _generation(spec: Object) -> int:
    return int(spec["pool"].get("generation") or 0)


def _claim(claim: Object) -> Claim:
    metadata, devices, status = (
        claim["metadata"],
        claim["spec"].get("devices") or {},
        claim.get("status") or {},
    )
    allocation = status.get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or []
    requests = {request["name"]: _request(request) for request in devices.get("requests") or []}
    unknown = Request("", None, ())
    return Claim(
        namespace=metadata["namespace"],
        name=metadata["name"],
        requests=tuple(requests.values()),
        allocated=allocation is not None,
        held={
            # A request with alternatives is answered as `request/alternative`.
            (result["driver"], result["pool"], result["device"]): requests.get(
                str(result.get("request")).partition("/")[0], unknown
            ).device_class
            for result in results
            if not result.get("adminAccess")
        },
        pods=tuple(
            user["name"]
            for user in status.get("reservedFor") or []
            if user.get("resource") == "pods"
        ),
        constrained=bool(devices.get("constraints")),
    )


def _request(request: Object) -> Request:
    # v1beta1 has no `exactly`; of alternatives the first one is preferred.
    content = request.get("exactly") or next(iter(request.get("firstAvailable") or []), request)
    count = None if content.get("allocationMode") == "All" else int(content.get("count") or 1)
    return Request(str(content.get("deviceClassName") or ""), count, _expressions(content))


def _expressions(spec: Object) -> tuple[str, ...]:
    return tuple(
        selector["cel"]["expression"]
        for selector in spec.get("selectors") or []
        if selector.get("cel")
    )
