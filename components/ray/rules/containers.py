"""Rules of the containers of pod templates' patches: requests and limits, held to a node."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from berth.components.core.manifest import value_at
from berth.components.core.rules import Breach, Rules
from berth.components.core.types import parse_quantity
from berth.components.hardware.allocatable import GIB, MIB
from berth.components.ray.demand import room_on_a_node
from berth.components.ray.numbers import decimal_text
from berth.components.ray.placed import PlacedPod
from berth.components.ray.pod_template.sidecars import patched_containers, request_of_pod
from berth.components.ray.settings import HeadShape
from berth.components.ray.storage.volumes import mounts_buckets

CONTAINERS = Rules[PlacedPod](HeadShape)
"""Rules of the containers of a head or worker."""

_DISK = "ephemeral-storage"

_OF_BUCKETS = "gke-gcsfuse-sidecar"
"""Container that GKE adds to pods with buckets."""

_HUGE_PAGES: Mapping[str, tuple[str, int]] = {
    "hugepages-2Mi": ("hugepageSize2m", 2 * MIB),
    "hugepages-1Gi": ("hugepageSize1g", GIB),
}
"""Field of a pool's `hugepagesConfig` with the number of pages, and the bytes of one, by resource
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/node-system-config)."""


@CONTAINERS.problem("podTemplate")
def init_container_larger_than_a_node(placed: PlacedPod) -> Iterator[Breach]:
    """A pod needs a node with room for its largest init container."""
    room = room_on_a_node(placed.pool)
    for container in patched_containers(placed.pod.pod_template):
        if not container.runs_before:
            continue
        cores = container.requests.get("cpu", Decimal(0))
        memory = container.requests.get("memory", Decimal(0))
        if cores > room.cores:
            yield Breach(
                f"init container {container.name!r} asks for {decimal_text(cores)} cores, but"
                f" {placed.node} offers {decimal_text(room.cores)}; ask for less"
            )
        if memory > room.memory:
            yield Breach(
                f"init container {container.name!r} asks for {_gib(memory)}Gi of memory, but"
                f" {placed.node} offers {_gib(room.memory)}Gi; ask for less"
            )


@CONTAINERS.problem("", "podTemplate")
def more_disk_than_a_node_has(placed: PlacedPod) -> Iterator[Breach]:
    """A node offers the disk that the containers of a pod request."""
    room = placed.disk
    request = request_of_pod(placed.pod.pod_template, _DISK)
    place = ("podTemplate",) if request else ()
    of_buckets = ""
    if mounts_buckets(placed.cluster.volumes):
        request += parse_quantity(placed.cluster.gcs_fuse.disk)
        of_buckets = f", of which {placed.cluster.gcs_fuse.disk} is `gcsFuse.disk`"
    if room is not None and request > room:
        yield Breach(
            f"a {placed.role} asks for {_gib(request)}Gi of its node's disk ({_DISK}){of_buckets},"
            f" but {placed.node} offers {_gib(room)}Gi: GKE keeps the rest; ask for less, or give"
            " the pool a larger `diskSizeGb` or `localSsds`",
            at=place,
        )


@CONTAINERS.problem("", "podTemplate")
def disk_that_the_berth_refuses(placed: PlacedPod) -> Iterator[Breach]:
    """The LimitRange of a berth refuses pods with a container that may use, or requests, more."""
    most = placed.most_disk
    if most is None or any(more_disk_than_a_node_has(placed)):
        return
    amounts: dict[str, Decimal] = {}
    for container in patched_containers(placed.pod.pod_template):
        of_disk = (container.requests.get(_DISK), container.limits.get(_DISK))
        amounts[container.name] = max(amount or Decimal(0) for amount in of_disk)
    patched = set(amounts)
    if mounts_buckets(placed.cluster.volumes):
        amounts[_OF_BUCKETS] = parse_quantity(placed.cluster.gcs_fuse.disk)
    for name, amount in amounts.items():
        if amount > most:
            yield Breach(
                f"container {name!r} asks for {_gib(amount)}Gi of its node's disk ({_DISK}), and a"
                f" container of a berth has {_gib(most)}Gi at most (`isolation.ephemeralStorage`),"
                " so that its pod would be refused; ask for less, or raise the other",
                at=("podTemplate",) if name in patched else (),
            )


@CONTAINERS.problem("podTemplate")
def huge_pages_that_no_node_has(placed: PlacedPod) -> Iterator[Breach]:
    """Nodes have huge pages only where their pool's Linux configuration gives them some."""
    if placed.on_existing_cluster:
        return
    fields = value_at(
        placed.pool.settings.arguments, "nodeConfig", "linuxNodeConfig", "hugepagesConfig"
    )
    for resource, (field, size) in _HUGE_PAGES.items():
        request = request_of_pod(placed.pod.pod_template, resource)
        pages = int((fields or {}).get(field) or 0)
        if request > pages * size:
            need = -(-int(request) // size)
            yield Breach(
                f"a {placed.role} asks for {need} pages of {resource}, and {placed.node} has"
                f" {pages}; write `arguments: {{nodeConfig: {{linuxNodeConfig: {{hugepagesConfig:"
                f" {{{field}: {need}}}}}}}}}` of the pool, or take the request out"
            )


@CONTAINERS.warning("podTemplate")
def limit_above_the_machine(placed: PlacedPod) -> Iterator[Breach]:
    """A limit above what the machine has holds nothing back: other pods of the node pay for it."""
    machine = placed.pool.settings.machine
    if not machine.known:
        return
    for container in patched_containers(placed.pod.pod_template):
        cores = container.limits.get("cpu", Decimal(0))
        memory = container.limits.get("memory", Decimal(0))
        if cores > machine.vcpus:
            yield Breach(
                f"container {container.name!r} may use {decimal_text(cores)} cores, and"
                f" {machine.name} has {machine.vcpus}, so that the limit holds nothing back; write"
                " a lower one"
            )
        if memory > machine.memory_gib * GIB:
            yield Breach(
                f"container {container.name!r} may use {_gib(memory)}Gi of memory, and"
                f" {machine.name} has {machine.memory_gib}Gi, so that the limit holds nothing back;"
                " write a lower one"
            )


def _gib(amount: Decimal) -> str:
    """Return an amount of bytes in GiB, with a decimal place where one is needed."""
    return decimal_text((amount / GIB).quantize(Decimal("0.1")))
