"""Settings of a node pool: machine type, size, capacity, labels, disks, and who serves its GPUs."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from berth.components.core.bounds import CountOrBounds, at_least, at_most
from berth.components.core.nearest import did_you_mean, nearest_names
from berth.components.core.settings import Settings
from berth.components.core.types import (
    Duration,
    Memory,
    Name,
    NonEmpty,
    ProjectId,
    Quantity,
    Zone,
    must_match,
    parse_quantity,
)
from berth.components.gke.argument_patches.setting import PoolPatch
from berth.components.gke.pool_hints import GPU_WORDS, OTHER_WORDS, machine_type_hint
from berth.components.hardware.allocatable import (
    DEFAULT_MAX_PODS,
    GIB,
    Amounts,
    allocatable_amounts,
)
from berth.components.hardware.machines import (
    MACHINES,
    CapacityKind,
    Machine,
    machine_of,
)

_DriverWord = Literal["default", "latest"]
_DriverVersion = Annotated[
    _DriverWord | str,
    must_match(
        re.compile(r"default|latest|\d{3}\.\d+(\.\d+)?", re.ASCII),
        "is not a version of the driver; write default, latest, or for example 580.126.20",
    ),
]


class Capacity(Settings):
    """Origin of a pool's machines. Only the keys of its kind are given."""

    other_words: ClassVar[Mapping[str, str]] = OTHER_WORDS

    kind: CapacityKind = "on-demand"
    """Kind of capacity. `on-demand`; `reservation`: machines set aside; `flex-start`: machines that
    are queued for, at most seven days; `spot`: cheap machines that Google takes away at any
    time."""
    reservation: Annotated[NonEmpty | None, Field(examples=["a4-prod"])] = None
    """Name of the reservation."""
    block: Annotated[NonEmpty | None, Field(examples=["a4-prod-block-1"])] = None
    """Block of the reservation: machines that are close together."""
    sub_block: Annotated[NonEmpty | None, Field(examples=["a4-prod-block-1-subblock-1"])] = None
    """Sub-block of the block: machines that are closer still, for A4X those that NVLink joins."""
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


class Gpus(Settings):
    """GPUs of a node whose machine type does not say which ones it has."""

    count: Annotated[int, Field(examples=[2], ge=0, le=16, strict=True)]
    """Number of GPUs; 0 for none."""
    type: Annotated[str, Field(examples=["nvidia-tesla-t4"], pattern="^(nvidia-[-a-z0-9]+)?$")] = ""
    """GKE's name for them (label `cloud.google.com/gke-accelerator`)."""
    memory: Annotated[Memory | None, Field(examples=["80Gi"])] = None
    """Memory of one. Default: the GPU's, where berth knows it."""

    @model_validator(mode="after")
    def _named(self) -> Self:
        if bool(self.count) != bool(self.type):
            raise ValueError(
                "has a count without a type, or a type without a count; write {type: nvidia-l4,"
                " count: 8}"
            )
        return self


def _mapping(value: Any) -> Any:
    """Refuse another tool's `gpus: 8`."""
    if value is None or isinstance(value, dict | Gpus):
        return value
    raise ValueError(
        f"{value!r} is not a mapping; the machine type says how many GPUs a node has: take this"
        " line out, or, for N1 and machine types that berth does not know, write for example gpus:"
        " {type: nvidia-tesla-t4, count: 2}"
    )


class Allocatable(Settings):
    """CPU and memory of a node for pods, where berth does not know the machine type."""

    cpu: Annotated[Quantity, Field(examples=["47810m"])]
    """Allocatable CPU of a node."""
    memory: Annotated[Memory, Field(examples=["166Gi"])]
    """Allocatable memory of a node."""


class LocalSsds(Settings):
    """Local SSDs of a node."""

    count: Annotated[Annotated[int, Field(ge=0, strict=True)] | None, Field(examples=[4])] = None
    """Number of them. Default: those that the machine type always has."""
    use: Literal["ephemeral", "block"] = "ephemeral"
    """`ephemeral`: emptyDir volumes and images are on them. `block`: pods get them as raw block
    devices."""


class Upgrade(Settings):
    """Pace at which GKE replaces nodes when it upgrades them."""

    max_surge: Annotated[
        Annotated[int, Field(ge=0, le=20, strict=True)] | None, Field(examples=[1])
    ] = None
    """Nodes beyond the pool's size meanwhile. Default: 1 for CPU pools, 0 for GPU pools, which have
    no spare machines."""
    max_unavailable: Annotated[
        Annotated[int, Field(ge=0, le=20, strict=True)] | None, Field(examples=[2])
    ] = None
    """Nodes that may be away meanwhile. Default: 0 for CPU pools, 1 for GPUs."""


class PoolSettings(Settings):
    """A node pool: nodes of one machine type."""

    other_words: ClassVar[Mapping[str, str]] = OTHER_WORDS

    @classmethod
    def hint(cls, key: str, value: object) -> str:
        """Return what a pool has in place of another tool's key."""
        if key in GPU_WORDS:
            return machine_type_hint(value)
        return super().hint(key, value)

    gpus: Annotated[
        Gpus | None,
        BeforeValidator(_mapping),
        Field(examples=[{"type": "nvidia-tesla-t4", "count": 2}]),
    ] = None
    """GPUs of a node, for N1 and unknown machine types. Default: the machine type's; on an existing
    cluster what nodes report."""
    machine_type: Annotated[
        NonEmpty,
        Field(
            examples=["a4-highgpu-8g"],
            json_schema_extra={"anyOf": [{"enum": list(MACHINES)}, {"type": "string"}]},
        ),
    ]
    """Compute Engine machine type; one that berth does not know needs `gpus`."""
    allocatable: Annotated[
        Allocatable | None, Field(examples=[{"cpu": "47810m", "memory": "166Gi"}])
    ] = None
    """CPU and memory for pods, of an unknown machine type. Default: what nodes of an existing
    cluster report; else berth does not check whether pods fit."""
    nodes: Annotated[CountOrBounds, Field(examples=[1, 4, {"min": 0, "max": 4}])]
    """Number of nodes in all zones together, or `{min, max}` for GKE's cluster autoscaler."""
    zones: Annotated[list[Zone] | None, Field(examples=[["us-central1-b"]])] = None
    """Zones of its nodes, in the environment's region. Default: the environment's zone, or its
    `zones`."""
    capacity: Annotated[
        Capacity,
        BeforeValidator(_named),
        Field(examples=["spot", {"kind": "reservation", "reservation": "a4-prod"}]),
    ] = Capacity()
    """Origin of its machines: `on-demand`, `spot`, or a mapping for a reservation or flex-start."""
    compact_placement: bool = False
    """Put the nodes close together in one zone, for lower latency."""
    labels: Annotated[dict[NonEmpty, str], Field(examples=[{"team": "research"}])] = {}
    """Labels of every node, beside those that GKE sets."""
    taints: Annotated[list[Taint], Field(examples=[[{"key": "team", "value": "research"}]])] = []
    """Taints of every node, which workers and daemons tolerate. On an existing cluster: those that
    its nodes have."""
    sysctls: Annotated[dict[NonEmpty, str], Field(examples=[{"net.core.somaxconn": "4096"}])] = {}
    """Kernel settings of every node, beside those for RDMA."""
    node_image: Literal["cos", "ubuntu"] = "cos"
    """Container-Optimized OS, or Ubuntu with containerd. RDMA needs COS."""
    gpu_management: Literal["gke", "operator"] | None = None
    """Manager of the pool's GPUs: GKE's own device plugin, or NVIDIA's GPU Operator. Default:
    `operator` where the GPUs are shared, else `gke`."""
    driver: Literal["gke", "operator", "preinstalled"] = "gke"
    """Installer of NVIDIA's driver: Google's, the GPU Operator (Ubuntu only), or none."""
    driver_version: Annotated[
        _DriverVersion | None,
        Field(examples=["latest", "580.126.20"]),
    ] = None
    """Version of the driver with `driver: gke`: that of the node image, its `latest`, or, where GKE
    does not manage the GPUs, a number. Default: `default`."""
    sharing: Annotated[Name | None, Field(examples=["quarter"])] = None
    """The sharing profile of its GPUs, one of `sharing`. Default: whole GPUs."""
    rdma: Literal["none", "managed", "networks"] = "none"
    """`networks`: berth creates the RDMA networks, and DraNet hands the NICs out. `managed`: GKE
    does both, as in Google's blueprints; its pools were reported to never finish deleting. A worker
    takes all GPUs and NICs of its node."""
    gpu_allocation: Literal["device-plugin", "dra"] = "device-plugin"
    """How pods get GPUs: counted, or by claims on single ones (NVIDIA's DRA driver), each with its
    RDMA NIC, for workers smaller than a node."""
    disk_size_gb: Annotated[int, Field(examples=[500], ge=12, le=65536, strict=True)] = 200
    """Boot disk in GB: Ray images with CUDA take over 10."""
    disk_type: Annotated[NonEmpty | None, Field(examples=["pd-ssd"])] = None
    """Type of the boot disk. Default: the machine type's first, such as hyperdisk-balanced for
    A4."""
    local_ssds: Annotated[LocalSsds | None, Field(examples=[{"count": 4}])] = None
    """Local SSDs. Default: those that the machine type always has, as ephemeral storage."""
    max_pods_per_node: Annotated[
        Annotated[int, Field(ge=8, le=256, strict=True)] | None, Field(examples=[64])
    ] = None
    """Most pods on a node. Default: GKE's, 110."""
    upgrade: Annotated[Upgrade, Field(examples=[{"maxSurge": 1}])] = Upgrade()
    """Pace at which GKE replaces the nodes when it upgrades them."""
    auto_repair: bool | None = None
    """Let GKE recreate unhealthy nodes. Default: yes; for flex-start it cannot."""
    image_streaming: bool | None = None
    """Start containers before their image, from Artifact Registry, is there whole. Default: GKE's
    choice; yes with `imageDisks`."""
    image_disks: Annotated[
        list[Annotated[str, Field(pattern="^projects/[^/]+/global/images/[^/]+$")]],
        Field(examples=[["projects/my-project/global/images/ray-2026-11"]], max_length=127),
    ] = []
    """Disk images with container images for every node (secondary boot disks)."""
    host_maintenance: Literal["periodic", "as-needed"] | None = None
    """Maintenance of the hosts, as their reservation has it (`maintenanceInterval`)."""
    secure_boot: bool | None = None
    """Nodes boot signed software only. Default: yes, unless the GPU Operator builds a driver."""
    arguments: Annotated[
        PoolPatch,
        Field(
            examples=[
                {"nodeConfig": {"tags": ["gpu"]}},
                {"nodeConfig": {"loggingVariant": "MAX_THROUGHPUT"}},
                {"nodeConfig": {"minCpuPlatform": "Intel Sapphire Rapids"}},
            ]
        ),
    ] = {}
    """Fields of the pool for which there is no setting, as Pulumi's `gcp.container.NodePool` has
    them: see `berth docs gke#fields-without-a-setting`."""
    hourly_rate: Annotated[Annotated[Decimal, Field(gt=0)] | None, Field(examples=[12.5])] = None
    """Price of one node for an hour, in `currency`, without which berth shows no money."""

    @field_validator("machine_type")
    @classmethod
    def _known(cls, name: str, info: ValidationInfo) -> str:
        if name in MACHINES or "gpus" not in info.data or info.data["gpus"]:
            return name
        hint = did_you_mean(name, MACHINES)
        if "?" not in hint:
            hint = f"; the nearest are {', '.join(nearest_names(name, MACHINES))}"
        by_gpu = machine_type_hint(name)
        if "-" not in name and "`" in by_gpu:
            hint = f"; {by_gpu}"
        raise ValueError(
            f"{name!r} is not a machine type that berth knows{hint}; for one that Google has, say"
            " which GPUs a node has: gpus: {count: 0} for none, or for example gpus: {type:"
            " nvidia-l4, count: 8}; on an existing cluster berth reads them from the pool's nodes"
        )

    @property
    def machine(self) -> Machine:
        """Facts about the machine type, with the GPUs of a node."""
        gpus = self.gpus or Gpus(count=0)
        memory = int(parse_quantity(gpus.memory) / GIB) if gpus.memory else 0
        return machine_of(self.machine_type, gpus.type, gpus.count, memory)

    @property
    def by_dra(self) -> bool:
        """Whether pods get the GPUs by claims."""
        return self.machine.gpus > 0 and self.gpu_allocation == "dra"

    @property
    def nics(self) -> int:
        """RDMA NICs of a node that pods can claim."""
        return self.machine.series.gpu_nics if self.rdma != "none" else 0

    @property
    def nvlink(self) -> bool:
        """Whether NVLink joins the GPUs of several nodes, in a ComputeDomain."""
        return bool(self.machine.series.accelerator_topology) and self.rdma == "managed"

    @property
    def by_operator(self) -> bool:
        """Whether the GPU Operator serves the GPUs."""
        manager = self.gpu_management or ("operator" if self.sharing else "gke")
        return self.machine.gpus > 0 and not self.by_dra and manager == "operator"

    @property
    def by_googles_installer(self) -> bool:
        """Whether a DaemonSet installs the driver, since GKE does so only where it manages GPUs."""
        unmanaged = self.by_operator or self.by_dra
        return unmanaged and self.driver == "gke" and self.node_image == "cos"

    @property
    def boot_disk(self) -> str:
        """Type of the boot disk; "" for GKE's default."""
        return self.disk_type or next(iter(self.machine.series.boot_disks), "")

    @property
    def local_ssd_count(self) -> int:
        """Local SSDs of a node."""
        if self.local_ssds is None or self.local_ssds.count is None:
            return self.machine.local_ssds
        return self.local_ssds.count

    @property
    def ephemeral_ssds(self) -> int:
        """Local SSDs of a node on which emptyDir volumes and images are."""
        return 0 if self.local_ssds and self.local_ssds.use == "block" else self.local_ssd_count

    @property
    def streams_images(self) -> bool | None:
        """Whether GKE streams images; None for its own choice."""
        return True if self.image_streaming is None and self.image_disks else self.image_streaming

    @property
    def for_pods(self) -> Amounts | None:
        """CPU, memory and storage that GKE leaves to pods on a node; None where nobody says."""
        if self.allocatable:
            cpu = parse_quantity(self.allocatable.cpu)
            memory = parse_quantity(self.allocatable.memory)
            return Amounts(int(cpu * 1000), int(memory), 0)
        if not self.machine.known:
            return None
        max_pods = self.max_pods_per_node or DEFAULT_MAX_PODS
        streaming = bool(self.streams_images)
        return allocatable_amounts(
            self.machine, self.disk_size_gb, self.ephemeral_ssds, max_pods, streaming=streaming
        )

    @property
    def max_surge(self) -> int:
        """Nodes beyond the pool's size while GKE upgrades it."""
        if self.upgrade.max_surge is None:
            return 0 if self.machine.gpus else 1
        return self.upgrade.max_surge

    @property
    def max_unavailable(self) -> int:
        """Nodes that may be away while GKE upgrades the pool."""
        if self.upgrade.max_unavailable is None:
            return 1 if self.machine.gpus else 0
        return self.upgrade.max_unavailable

    @property
    def nodes_at_least(self) -> int:
        """Nodes that the pool always has."""
        return at_least(self.nodes)

    @property
    def nodes_at_most(self) -> int:
        """Nodes that the pool can ever have."""
        return at_most(self.nodes)
