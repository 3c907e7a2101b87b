"""Meaning of a node pool's inputs: machine, GPUs, disks, zones and sizes.

Inputs are as the engine sends them: camel case, and plain data.
"""

from dataclasses import dataclass
from typing import Any

from berth.components.hardware.allocatable import DEFAULT_MAX_PODS
from berth.components.hardware.machines import Machine, machine_of
from berth.lab.plugins.gcp.locations import ZONES, default_zones
from berth.lab.plugins.gcp.store import StoredRecord

DEFAULT_DISK_GIB = 100
"""GKE's default."""


@dataclass(frozen=True)
class PoolBounds:
    """Bounds of the autoscaler."""

    least: int
    most: int
    per_zone: bool
    """Whether the two count for each zone, rather than for the whole pool."""


def cluster_zones(inputs: dict[str, Any]) -> list[str]:
    """The zones of a cluster's nodes.

    A zonal cluster's own zone always is one of them, and `nodeLocations` are the others; a regional
    cluster has the zones that it names, else three.
    """
    location = str(inputs["location"])
    others = [str(zone) for zone in inputs.get("nodeLocations") or []]
    if location in ZONES:
        return list(dict.fromkeys([location, *others]))
    return others or default_zones(location)


class PoolInputs:
    """A node pool's inputs, read."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self.inputs = inputs
        self.config: dict[str, Any] = inputs.get("nodeConfig") or {}

    @property
    def machine_name(self) -> str:
        """The machine type asked for."""
        return str(self.config.get("machineType") or "")

    @property
    def machine(self) -> Machine:
        """The machine type, with the GPUs that are attached to it."""
        gpus = self.accelerator
        return machine_of(
            self.machine_name, str(gpus.get("type") or ""), int(gpus.get("count") or 0)
        )

    @property
    def os_distribution(self) -> str:
        """The nodes' system: the value of GKE's label for it."""
        return (
            "ubuntu"
            if str(self.config.get("imageType") or "").upper().startswith("UBUNTU")
            else "cos"
        )

    @property
    def accelerator(self) -> dict[str, Any]:
        """The first (and for GPUs only) guest accelerator, or nothing."""
        accelerators = self.config.get("guestAccelerators") or [{}]
        return dict(accelerators[0] or {})

    @property
    def driver_version(self) -> str:
        """Driver version: `DEFAULT` (also for none), `LATEST` or `INSTALLATION_DISABLED`."""
        installation = self.accelerator.get("gpuDriverInstallationConfig") or {}
        return str(installation.get("gpuDriverVersion") or "DEFAULT")

    @property
    def disk_gib(self) -> int:
        """Size of the boot disk."""
        boot = self.config.get("bootDisk") or {}
        return int(boot.get("sizeGb") or self.config.get("diskSizeGb") or DEFAULT_DISK_GIB)

    @property
    def disk_type(self) -> str:
        """Type of the boot disk; by default the machine's first, or GKE's if it is unknown."""
        boot = self.config.get("bootDisk") or {}
        of_the_machine = next(iter(self.machine.series.boot_disks), "pd-balanced")
        return str(boot.get("diskType") or self.config.get("diskType") or of_the_machine)

    @property
    def ephemeral_ssds(self) -> int:
        """Local SSDs that hold ephemeral storage.

        Bundled ones do, unless they are asked for as raw block devices (GKE's page "Provision
        ephemeral storage with Local SSDs").
        """
        ephemeral = self.config.get("ephemeralStorageLocalSsdConfig") or {}
        if ephemeral.get("localSsdCount"):
            return int(ephemeral["localSsdCount"])
        if self.config.get("localNvmeSsdBlockConfig"):
            return 0
        return self.machine.local_ssds

    @property
    def streams_images(self) -> bool:
        """Whether image streaming is on."""
        return bool((self.config.get("gcfsConfig") or {}).get("enabled"))

    @property
    def max_pods(self) -> int:
        """Most pods on a node."""
        return int(self.inputs.get("maxPodsPerNode") or DEFAULT_MAX_PODS)

    @property
    def flex_start(self) -> bool:
        """Whether nodes come by flex-start."""
        return bool(self.config.get("flexStart"))

    @property
    def spot(self) -> bool:
        """Whether nodes are Spot VMs."""
        return bool(self.config.get("spot"))

    @property
    def network_profile(self) -> str:
        """The profile by which GKE makes networks for the GPUs' NICs; empty without one."""
        return str((self.inputs.get("networkConfig") or {}).get("acceleratorNetworkProfile") or "")

    @property
    def reservation(self) -> str:
        """The reservation affinity's type; empty when none is given."""
        return str(
            (self.config.get("reservationAffinity") or {}).get("consumeReservationType") or ""
        )

    @property
    def bounds(self) -> PoolBounds | None:
        """The autoscaler's bounds, or nothing without an autoscaler."""
        scaling = self.inputs.get("autoscaling")
        if not scaling:
            return None
        if "totalMaxNodeCount" in scaling or "totalMinNodeCount" in scaling:
            return PoolBounds(
                int(scaling.get("totalMinNodeCount") or 0),
                int(scaling.get("totalMaxNodeCount") or 0),
                per_zone=False,
            )
        return PoolBounds(
            int(scaling.get("minNodeCount") or 0),
            int(scaling.get("maxNodeCount") or 0),
            per_zone=True,
        )

    def zones(self, cluster: StoredRecord) -> list[str]:
        """The zones of the pool's nodes: its own, else the cluster's."""
        if self.inputs.get("nodeLocations"):
            return [str(zone) for zone in self.inputs["nodeLocations"]]
        return cluster_zones(cluster.inputs)

    def start_sizes(self, zones: list[str]) -> dict[str, int]:
        """Return the nodes in each zone of a new pool.

        An autoscaler's bounds say how far it goes once a pod needs a node, or a node is idle; they
        are not enforced.
        """
        count = self.inputs.get("nodeCount")
        if count is None:
            count = self.inputs.get("initialNodeCount") or 0
        return dict.fromkeys(zones, int(count))
