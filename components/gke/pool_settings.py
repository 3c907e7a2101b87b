"""Settings of a node pool: machine type, size, capacity, labels, disks, and who serves its GPUs."""

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from berth.components.core import fast_yaml
from berth.components.core.bounds import CountOrBounds, at_least, at_most
from berth.components.core.nearest import did_you_mean
from berth.components.core.settings import Settings
from berth.components.core.types import Duration, Name, NonEmpty, ProjectId, Zone
from berth.components.hardware.allocatable import DEFAULT_MAX_PODS, Amounts, allocatable
from berth.components.hardware.facts import CapacityKind, Machine
from berth.components.hardware.machines import MACHINES


def _known_machine(name: str) -> str:
    if name in MACHINES:
        return name
    hint = did_you_mean(name, MACHINES)
    if name.lower().startswith("n1-"):
        hint = "; it knows no N1, to which Google attaches T4 GPUs: take g2-standard-8 with an L4, or n2-standard-8"
    elif "-" not in name and "`" in (by_gpu := _machine_types_with(name)):
        hint = f"; {by_gpu}"
    raise ValueError(f"{name!r} is not a machine type that berth knows{hint}")


_OTHER_WORDS: Mapping[str, str] = fast_yaml.read(Path(__file__).with_name("other_words.yaml"))
"""Words of other tools for the settings of a pool, and what berth has."""


class Capacity(Settings):
    """Origin of a pool's machines. Only the keys of its kind are given."""

    @classmethod
    def hint(cls, key: str, value: object) -> str:  # noqa: ARG003 - as the base has it
        """Return what a pool has in place of another tool's key."""
        return _OTHER_WORDS.get(key, "")

    kind: CapacityKind = "on-demand"
    """Kind of capacity. `on-demand`; `reservation`: machines set aside; `flex-start`: machines that
    are queued for, at most seven days; `spot`: cheap machines that Google takes away at any
    time."""
    reservation: Annotated[NonEmpty | None, Field(examples=["a4-prod"])] = None
    """Name of the reservation."""
    block: Annotated[NonEmpty | None, Field(examples=["a4-prod-block-1"])] = None
    """Block of the reservation: machines that are close together."""
    project: Annotated[ProjectId | None, Field(examples=["shared-reservations"])] = None
    """Project that owns a shared reservation. Default: the environment's."""
    max_run_duration: Annotated[Duration | None, Field(examples=["2d"])] = None
    """Longest time for which flex-start machines stay. Default and maximum: 7d."""


def _named(value: Any) -> Any:
    """Return `capacity: spot` as `capacity: {kind: spot}`."""
    return {"kind": value} if isinstance(value, str) else value


class Taint(Settings):
    """A taint of every node of a pool."""

    key: Annotated[NonEmpty, Field(examples=["team"])]
    """Key of the taint."""
    value: Annotated[str, Field(examples=["research"])] = ""
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """Effect on pods that do not tolerate the taint."""


class LocalSsds(Settings):
    """Local SSDs of a node, 375 GB each."""

    count: Annotated[Annotated[int, Field(ge=0, strict=True)] | None, Field(examples=[4])] = None
    """Number of them. Default: those that the machine type always has."""
    use: Literal["ephemeral", "block"] = "ephemeral"
    """`ephemeral`: emptyDir volumes and images are on them. `block`: pods get them as raw block
    devices."""


class Upgrade(Settings):
    """Pace at which GKE replaces nodes when it upgrades them."""

    max_surge: Annotated[Annotated[int, Field(ge=0, le=20, strict=True)] | None, Field(examples=[1])] = None
    """Nodes beyond the pool's size meanwhile. Default: 1 for CPU pools, 0 for GPU pools, which have
    no spare machines."""
    max_unavailable: Annotated[Annotated[int, Field(ge=0, le=20, strict=True)] | None, Field(examples=[2])] = None
    """Nodes that may be away meanwhile. Default: 0 for CPU pools, 1 for GPUs."""


_MOST_OPTIONS = 3


def _machine_types_with(accelerator: object) -> str:
    """Return the hint for `accelerator: h100:8`: the machine types that have these GPUs."""
    name, _, count = str(accelerator).partition(":")
    product = re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("nvidia").removeprefix("-"))
    found = [
        machine.name
        for machine in MACHINES.values()
        if machine.gpus
        and product in re.sub(r"[^a-z0-9]", "", f"{machine.gpu.product}{machine.gpu.accelerator}".lower())
        if not count.strip().isdecimal() or machine.gpus == int(count)
    ]
    if not product or not found:
        return "the machine type says which GPUs a node has, and how many"
    options = " or ".join(f"`machineType: {machine}`" for machine in found[:_MOST_OPTIONS])
    return f"the machine type says which GPUs a node has; write {options}"


class PoolSettings(Settings):
    """A node pool: nodes of one machine type."""

    @classmethod
    def hint(cls, key: str, value: object) -> str:
        """Return what a pool has in place of another tool's key."""
        if key in {"accelerator", "accelerators", "gpuType"}:
            return _machine_types_with(value)
        return _OTHER_WORDS.get(key, "")

    machine_type: Annotated[
        str,
        AfterValidator(_known_machine),
        Field(examples=["a4-highgpu-8g"], json_schema_extra={"enum": list(MACHINES)}),
    ]
    """Compute Engine machine type."""
    nodes: Annotated[CountOrBounds, Field(examples=[1, 4, {"min": 0, "max": 4}])]
    """Number of nodes in all zones together, or `{min, max}` for GKE's cluster autoscaler."""
    zones: Annotated[list[Zone] | None, Field(examples=[["us-central1-b"]])] = None
    """Zones of its nodes, in the environment's region. Default: the environment's zone, or its
    `zones`."""
    capacity: Annotated[
        Capacity, BeforeValidator(_named), Field(examples=["spot", {"kind": "reservation", "reservation": "a4-prod"}])
    ] = Capacity()
    """Origin of its machines: `on-demand`, `spot`, or a mapping for a reservation or flex-start."""
    compact_placement: bool = False
    """Put the nodes close together in one zone, for lower latency."""
    labels: Annotated[dict[NonEmpty, str], Field(examples=[{"team": "research"}])] = {}
    """Labels of every node, beside those that GKE sets."""
    taints: Annotated[list[Taint], Field(examples=[[{"key": "team", "value": "research"}]])] = []
    """Taints of every node, which workers, drivers and the GPU Operator's daemons tolerate. On an
    existing cluster: those that its nodes have."""
    sysctls: Annotated[dict[NonEmpty, str], Field(examples=[{"net.core.somaxconn": "4096"}])] = {}
    """Kernel settings of every node, beside those that nodes with RDMA NICs get."""
    node_image: Literal["cos", "ubuntu"] = "cos"
    """Container-Optimized OS, or Ubuntu with containerd. RDMA needs COS."""
    gpu_management: Literal["gke", "operator"] | None = None
    """Manager of the pool's GPUs: GKE's own device plugin, or NVIDIA's GPU Operator. Default:
    `operator` where the GPUs are shared, else `gke`."""
    driver: Literal["gke", "operator", "preinstalled"] = "gke"
    """Installer of NVIDIA's driver: Google's, the GPU Operator (Ubuntu only), or none because the
    node image has the driver."""
    driver_version: Literal["default", "latest"] | None = None
    """Driver that GKE installs; only where GKE manages the GPUs. Default: `default`."""
    sharing: Annotated[Name | None, Field(examples=["quarter"])] = None
    """The sharing profile of its GPUs, one of `sharing`. Default: whole GPUs."""
    rdma: Literal["none", "managed", "networks"] = "none"
    """`networks`: berth creates the RDMA networks, and DraNet hands the NICs out. `managed`: GKE
    does both (managed DRANET). A worker takes all GPUs and NICs of its node."""
    gpu_allocation: Literal["device-plugin", "dra"] = "device-plugin"
    """How pods get GPUs: counted by a device plugin, or by claims on single devices (NVIDIA's DRA
    driver), which pair each GPU with its RDMA NIC, for workers smaller than a node."""
    disk_size_gb: Annotated[int, Field(examples=[500], ge=10, le=65536, strict=True)] = 200
    """Boot disk in GB: Ray images with CUDA take over 10."""
    disk_type: Annotated[NonEmpty | None, Field(examples=["pd-ssd"])] = None
    """Type of the boot disk. Default: the machine type's first, such as hyperdisk-balanced for
    A4."""
    local_ssds: Annotated[LocalSsds | None, Field(examples=[{"count": 4}])] = None
    """Local SSDs. Default: those that the machine type always has, as ephemeral storage."""
    max_pods_per_node: Annotated[Annotated[int, Field(ge=8, le=256, strict=True)] | None, Field(examples=[64])] = None
    """Most pods on a node. Default: GKE's, 110."""
    upgrade: Annotated[Upgrade, Field(examples=[{"maxSurge": 1}])] = Upgrade()
    """Pace at which GKE replaces the nodes when it upgrades them."""
    auto_repair: bool | None = None
    """Let GKE recreate unhealthy nodes. Default: yes, except for flex-start, where it is not
    possible."""
    host_maintenance: Literal["periodic", "as-needed"] | None = None
    """Maintenance of the hosts, as their reservation has it (`maintenanceInterval`)."""
    secure_boot: bool | None = None
    """Shielded nodes boot signed software only. Default: yes, unless the GPU Operator builds its
    own driver."""
    hourly_rate: Annotated[Annotated[Decimal, Field(gt=0)] | None, Field(examples=[12.5])] = None
    """Price of one node for an hour, in the environment's `currency`. Berth knows no prices and
    shows money only by this rate."""

    @property
    def machine(self) -> Machine:
        """Facts about the machine type."""
        return MACHINES[self.machine_type]

    @property
    def by_dra(self) -> bool:
        """Whether pods get the GPUs by claims."""
        return self.machine.gpus > 0 and self.gpu_allocation == "dra"

    @property
    def nics(self) -> int:
        """RDMA NICs of a node that pods can claim."""
        return self.machine.series.gpu_nics if self.rdma != "none" else 0

    @property
    def by_operator(self) -> bool:
        """Whether the GPU Operator serves the GPUs."""
        manager = self.gpu_management or ("operator" if self.sharing else "gke")
        return self.machine.gpus > 0 and not self.by_dra and manager == "operator"

    @property
    def boot_disk(self) -> str:
        """Type of the boot disk."""
        return self.disk_type or self.machine.series.boot_disks[0]

    @property
    def local_ssd_count(self) -> int:
        """Local SSDs of a node."""
        given = self.local_ssds.count if self.local_ssds else None
        return self.machine.local_ssds if given is None else given

    @property
    def for_pods(self) -> Amounts:
        """CPU, memory and storage that GKE leaves to pods on a node."""
        block = self.local_ssds is not None and self.local_ssds.use == "block"
        ephemeral_ssds = 0 if block else self.local_ssd_count
        max_pods = self.max_pods_per_node or DEFAULT_MAX_PODS
        return allocatable(self.machine, self.disk_size_gb, ephemeral_ssds, max_pods)

    @property
    def max_surge(self) -> int:
        """Nodes beyond the pool's size while GKE upgrades it."""
        given = self.upgrade.max_surge
        return (0 if self.machine.gpus else 1) if given is None else given

    @property
    def max_unavailable(self) -> int:
        """Nodes that may be away while GKE upgrades the pool."""
        given = self.upgrade.max_unavailable
        return (1 if self.machine.gpus else 0) if given is None else given

    @property
    def nodes_at_least(self) -> int:
        """Nodes that the pool always has."""
        return at_least(self.nodes)

    @property
    def nodes_at_most(self) -> int:
        """Nodes that the pool can ever have."""
        return at_most(self.nodes)
