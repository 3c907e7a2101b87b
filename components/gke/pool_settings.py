"""A node pool as it is written in YAML."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from berth.components.core.bounds import CountOrBounds, at_least, at_most
from berth.components.core.nearest import did_you_mean
from berth.components.core.settings import Settings
from berth.components.core.types import Name, NonEmpty, Zone
from berth.components.gke.capacity_settings import Capacity, CapacitySettings
from berth.components.hardware.facts import Machine
from berth.components.hardware.machines import MACHINES


def _known_machine(name: str) -> str:
    if name not in MACHINES:
        raise ValueError(f"{name!r} is no machine type that berth knows{did_you_mean(name, MACHINES)}")
    return name


class Taint(Settings):
    """A taint of every node of a pool."""

    key: NonEmpty
    """Key of the taint."""
    value: str = ""
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """Effect on pods that do not tolerate the taint."""


class LocalSsds(Settings):
    """Local SSDs of a node, 375 GB each."""

    count: Annotated[int, Field(ge=0, strict=True)] | None = None
    """How many. Default: those that the machine type always has."""
    use: Literal["ephemeral", "block"] = "ephemeral"
    """`ephemeral`: emptyDir volumes and images are on them. `block`: pods get them as raw block devices."""


class Upgrade(Settings):
    """How GKE replaces nodes when it upgrades them."""

    max_surge: Annotated[int, Field(ge=0, le=20, strict=True)] | None = None
    """Nodes beyond the pool's size meanwhile. Default: 1 for CPU pools, 0 for GPUs, of which there are no spare ones."""
    max_unavailable: Annotated[int, Field(ge=0, le=20, strict=True)] | None = None
    """Nodes that may be away meanwhile. Default: 0 for CPU pools, 1 for GPUs."""


class PoolSettings(Settings):
    """A node pool: nodes of one machine type."""

    machine_type: Annotated[
        str,
        AfterValidator(_known_machine),
        Field(examples=["a4-highgpu-8g"], json_schema_extra={"enum": list(MACHINES)}),
    ]
    """Compute Engine machine type."""
    nodes: CountOrBounds
    """Number of nodes in all zones together, or `{min, max}` for GKE's cluster autoscaler."""
    zones: list[Zone] | None = None
    """Zones of its nodes, in the environment's region. Default: the environment's zone, or its `zones`."""
    capacity: CapacitySettings = Capacity()
    """Where its machines come from: `on-demand`, `spot`, or a mapping for a reservation or flex-start."""
    compact_placement: bool = False
    """Put the nodes close together, for lower latency; in one zone."""
    labels: dict[NonEmpty, str] = {}
    """Labels of every node, beside those that GKE sets."""
    taints: list[Taint] = []
    """Taints of every node, beside GKE's own for GPUs. Workers on the pool, drivers and the GPU Operator's daemons tolerate
    them. On an existing cluster: the taints that its nodes have."""
    sysctls: dict[NonEmpty, str] = {}
    """Kernel settings of every node, beside those that nodes with RDMA NICs get."""
    node_image: Literal["cos", "ubuntu"] = "cos"
    """Container-Optimized OS, or Ubuntu with containerd. RDMA needs COS."""
    gpu_management: Literal["gke", "operator"] | None = None
    """Who advertises the pool's GPUs: GKE's own device plugin, or NVIDIA's GPU Operator, which berth installs when a pool
    wants it. Default: `operator` where the GPUs are shared, else `gke`."""
    driver: Literal["gke", "operator", "preinstalled"] = "gke"
    """Who installs NVIDIA's driver: Google's installer, the GPU Operator (Ubuntu only), or nobody, since it is there."""
    driver_version: Literal["default", "latest"] | None = None
    """The driver that GKE installs: its default for the GKE version, or the latest. A change replaces the pool. Only where
    GKE manages the GPUs. Default: `default`."""
    sharing: Name | None = None
    """The sharing profile of its GPUs, one of `sharing`. Default: whole GPUs."""
    rdma: Literal["none", "managed", "networks"] = "none"
    """`managed`: GKE makes the RDMA networks and installs the driver that hands the NICs to pods through DRA (managed
    DRANET). `networks`: berth makes the networks, and DraNet on the cluster hands the NICs out. Either way a worker takes
    all GPUs and all NICs of its node."""
    gpu_allocation: Literal["device-plugin", "dra"] = "device-plugin"
    """How pods get GPUs: by counting a resource that a device plugin advertises, or by claims on single devices (NVIDIA's DRA
    driver, which berth installs then). Claims pair each GPU with the RDMA NIC of its PCIe root, so that workers smaller than
    the node have their own; a pod that takes the whole node needs none. Never both on one node."""
    disk_size_gb: Annotated[int, Field(ge=10, le=65536, strict=True)] = 200
    """Boot disk in GB: Ray images with CUDA take over 10."""
    disk_type: NonEmpty | None = None
    """Type of the boot disk. Default: the machine type's first, such as hyperdisk-balanced for A4."""
    local_ssds: LocalSsds | None = None
    """Local SSDs. Default: those that the machine type always has, as ephemeral storage."""
    max_pods_per_node: Annotated[int, Field(ge=8, le=256, strict=True)] | None = None
    """Default: GKE's, 110."""
    upgrade: Upgrade = Upgrade()
    """How GKE replaces its nodes when it upgrades them."""
    auto_repair: bool | None = None
    """Let GKE make unhealthy nodes anew. Default: yes, but for flex-start, where it is not possible."""
    secure_boot: bool | None = None
    """Shielded nodes boot signed software only. Default: yes, unless the GPU Operator builds its own driver."""
    hourly_rate: Annotated[Decimal, Field(gt=0)] | None = None
    """What one node costs an hour, in the environment's `currency`: berth knows no prices, and shows money only by this."""

    @property
    def machine(self) -> Machine:
        """What one node has."""
        return MACHINES[self.machine_type]

    @property
    def by_dra(self) -> bool:
        """Pods get its GPUs by claims."""
        return self.machine.gpus > 0 and self.gpu_allocation == "dra"

    @property
    def nics(self) -> int:
        """RDMA NICs of a node that pods can claim."""
        return self.machine.series.gpu_nics if self.rdma != "none" else 0

    @property
    def by_operator(self) -> bool:
        """The GPU Operator serves its GPUs."""
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
