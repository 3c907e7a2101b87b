"""Rules of one pool's GPUs and NICs: who hands them out, which driver they have, what shares them.

The rules are in the order in which berth reports them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from berth.components.core.nearest import did_you_mean
from berth.components.core.rules import Breach, Rules
from berth.components.gke import PoolSettings
from berth.components.hardware.machines import MACHINES, NETWORKS_WITHOUT_RDMA, Machine
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.sharing.modes import SharingProfile
from berth.components.sharing.settings import SharingSettings

_RDMA = ("managed", "networks")


@dataclass(frozen=True)
class PoolGpus:
    """A pool, and what its environment decides about its GPUs.

    Attributes:
        pool: the pool.
        environment: the environment that the pool belongs to.
    """

    pool: PoolSettings
    environment: SharingSettings

    @property
    def machine(self) -> Machine:
        """Machine type of the pool's nodes."""
        return self.pool.machine

    @cached_property
    def profile(self) -> SharingProfile | None:
        """Sharing profile that the pool names; None without one, or for an unknown name."""
        return self.environment.sharing.get(self.pool.sharing or "")

    @property
    def has_rdma(self) -> bool:
        """Whether pods of the pool get RDMA NICs."""
        return self.pool.rdma in _RDMA

    @property
    def on_existing_cluster(self) -> bool:
        """Whether berth does not create the pool's cluster."""
        return self.environment.cluster.existing is not None

    @property
    def counted(self) -> bool:
        """Whether a device plugin advertises the GPUs, and pods count them."""
        return bool(self.machine.gpus) and not self.pool.by_dra

    @property
    def claimable_parts(self) -> bool:
        """Whether pods can claim parts of a GPU by the profile, on this cluster."""
        return (
            self.profile is not None and self.profile.facts.claimable and self.on_existing_cluster
        )

    @property
    def profile_path(self) -> tuple[str, ...]:
        """Path of the profile that the pool names."""
        return ("environment", "sharing", self.pool.sharing or "")


POOL_GPUS = Rules[PoolGpus](PoolSettings)
"""Rules of one pool's GPUs."""


@POOL_GPUS.problem("rdma")
def rdma_without_nics(gpus: PoolGpus) -> str | None:
    """RDMA needs a machine type with RDMA NICs."""
    if not gpus.has_rdma or gpus.machine.rdma:
        return None
    network = NETWORKS_WITHOUT_RDMA.get(gpus.machine.series.gpu_network)
    instead = f", its GPUs' NICs are for {network}" if network else ""
    with_rdma = [name for name, machine in MACHINES.items() if machine.rdma]
    return (
        f"{gpus.pool.machine_type} has no RDMA NICs{instead}; those that have them are"
        f" {', '.join(with_rdma)}"
    )


@POOL_GPUS.problem("gpus")
def shared_gpus_not_attached(gpus: PoolGpus) -> str | None:
    """A machine type whose GPUs are attached has none to share until `gpus` names them."""
    attached = next(iter(gpus.machine.series.attaches), "")
    if gpus.machine.gpus or not attached or not gpus.pool.sharing:
        return None
    return (
        f"is required: {gpus.machine.name} has GPUs to share only as `gpus` says; write gpus:"
        f" {{type: {attached}, count: 1}}, or take `sharing` out"
    )


@POOL_GPUS.problem("sharing", "gpuManagement", "driver", "driverVersion", "gpuAllocation")
def gpu_settings_without_gpus(gpus: PoolGpus) -> Iterator[Breach]:
    """Settings of GPUs have no meaning on a machine type without GPUs."""
    pool = gpus.pool
    if gpus.machine.gpus:
        return
    written = {
        "sharing": pool.sharing and not gpus.machine.series.attaches,
        "gpuManagement": pool.gpu_management,
        "driver": pool.driver != "gke",
        "driverVersion": pool.driver_version,
        "gpuAllocation": pool.gpu_allocation == "dra",
    }
    for key, is_written in written.items():
        if is_written:
            yield Breach(f"{gpus.machine.name} has no GPUs; take this line out", at=(key,))


@POOL_GPUS.problem("sharing", "gpuManagement", "gpuAllocation", "driver", "nodeImage")
def part_of_a_gpu(gpus: PoolGpus) -> Iterator[Breach]:
    """GKE serves parts of a GPU itself, on Container-Optimized OS only.

    Source: "GPUs in GKE", limitations of fractional G4
    (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/gpus).
    """
    pool = gpus.pool
    if not gpus.machine.series.gpu_part:
        return
    written = {
        "sharing": pool.sharing,
        "gpuManagement": pool.gpu_management == "operator",
        "gpuAllocation": pool.gpu_allocation == "dra",
        "driver": pool.driver != "gke",
        "nodeImage": pool.node_image == "ubuntu",
    }
    for key, is_written in written.items():
        if is_written:
            yield Breach(
                f"{pool.machine_type} has a part of a GPU, which GKE serves by itself, on"
                " Container-Optimized OS, and nobody shares further; take this line out, or take"
                " g4-standard-48, which has a whole one",
                at=(key,),
            )


@POOL_GPUS.problem("rdma")
def rdma_on_ubuntu(gpus: PoolGpus) -> str | None:
    """GKE has RDMA on Container-Optimized OS only."""
    if gpus.has_rdma and gpus.pool.node_image == "ubuntu":
        return "RDMA on GKE needs Container-Optimized OS; take `nodeImage` out"
    return None


@POOL_GPUS.problem("sharing")
def shared_gpus_beside_claimed_nics(gpus: PoolGpus) -> str | None:
    """A pod on nodes whose NICs are handed out by DRA takes all GPUs and all NICs."""
    if gpus.has_rdma and gpus.pool.sharing and not gpus.pool.by_dra:
        return (
            "Google does not support shared GPUs on nodes whose NICs are handed out by DRA: a pod"
            " there takes all GPUs and all NICs; share the GPUs of another pool, or set `rdma:"
            " none`"
        )
    return None


@POOL_GPUS.problem("gpuManagement", rests_on=["gpuAllocation"])
def claimed_gpus_beside_a_device_plugin(gpus: PoolGpus) -> str | None:
    """A device plugin beside NVIDIA's DRA driver would hand out the same GPUs."""
    if not gpus.pool.by_dra or gpus.pool.gpu_management is None:
        return None
    owners = {"gke": "GKE's own", "operator": "the GPU Operator's"}
    return (
        f"{owners[gpus.pool.gpu_management]} device plugin would hand out the GPUs that NVIDIA's"
        " DRA driver hands out (gpuAllocation: dra), each to two pods; take one of the two lines"
        " out"
    )


@POOL_GPUS.problem("nodeImage", rests_on=["gpuAllocation"])
def claimed_gpus_on_ubuntu(gpus: PoolGpus) -> str | None:
    """Berth gives NVIDIA's DRA driver one path of the GPU driver for all nodes."""
    if gpus.pool.by_dra and gpus.pool.node_image == "ubuntu":
        return (
            "berth tells NVIDIA's DRA driver one place of the GPU driver, that of"
            " Container-Optimized OS; take this line out, or `gpuAllocation`"
        )
    return None


@POOL_GPUS.problem("driver", rests_on=["gpuAllocation"])
def claimed_gpus_with_the_operators_driver(gpus: PoolGpus) -> str | None:
    """The GPU Operator runs no daemons on nodes whose GPUs are claimed."""
    if gpus.pool.by_dra and gpus.pool.driver == "operator":
        return (
            "the GPU Operator has no daemons, and so installs no driver, on nodes whose GPUs are"
            " claimed (gpuAllocation: dra); use `driver: gke` for Google's installer, or"
            " `driver: preinstalled`"
        )
    return None


@POOL_GPUS.problem("gpuAllocation")
def claimed_gpus_of_an_nvlink_domain(gpus: PoolGpus) -> str | None:
    """Google's blueprint for machines of an NVLink domain counts their GPUs.

    Source: GoogleCloudPlatform/cluster-toolkit, examples/gke-a4x: the DRA driver's part for GPUs
    is off.
    """
    if gpus.pool.by_dra and gpus.machine.series.accelerator_topology:
        return (
            f"Google's blueprint for {gpus.pool.machine_type} counts its GPUs and claims only NICs"
            " and NVLink; take this line out"
        )
    return None


@POOL_GPUS.problem("gpuManagement")
def shared_gpus_left_to_gke(gpus: PoolGpus) -> str | None:
    """GKE's own device plugin does not read berth's sharing profiles."""
    pool = gpus.pool
    if gpus.on_existing_cluster or not gpus.counted:
        return None
    if pool.sharing and pool.gpu_management == "gke":
        return (
            "GKE's own device plugin does not read berth's sharing profiles; take this line out,"
            " and the GPU Operator serves the pool"
        )
    return None


@POOL_GPUS.problem("driver")
def driver_that_nobody_installs(gpus: PoolGpus) -> Iterator[Breach]:
    """The operator's driver and Google's installer are each for one node image, and one manager."""
    pool = gpus.pool
    if not gpus.counted:
        return
    if pool.driver == "operator" and pool.node_image == "cos":
        yield Breach(
            "the GPU Operator cannot install a driver on Container-Optimized OS; use"
            " `driver: gke`, or `nodeImage: ubuntu`"
        )
    if pool.driver == "gke" and pool.node_image == "ubuntu" and pool.by_operator:
        yield Breach(
            "Google's installer for a pool that the GPU Operator serves is for"
            " Container-Optimized OS; on Ubuntu use `driver: operator` or `driver: preinstalled`"
        )
    if pool.driver == "operator" and not pool.by_operator:
        yield Breach("the pool is left to GKE; set `gpuManagement: operator`, or `driver: gke`")


@POOL_GPUS.problem("driverVersion")
def driver_version_that_nobody_installs(gpus: PoolGpus) -> str | None:
    """Google's installer takes any version that the node image has, and GKE two words.

    Sources: GoogleCloudPlatform/container-engine-accelerators, nvidia-driver-installer/cos,
    daemonset-preloaded-latest.yaml (`install --version=latest`); cos.googlesource.com/cos/tools,
    src/cmd/cos_gpu_installer, which takes any other version as it is; and the provider's
    guest_accelerator of a node pool.
    """
    pool = gpus.pool
    version = pool.driver_version
    if not gpus.machine.gpus or version is None:
        return None
    if pool.driver == "preinstalled":
        return "with `driver: preinstalled` nobody installs one; take one of the two lines out"
    if pool.driver == "operator":
        return (
            "the GPU Operator installs the driver of its own chart here; take this line out, and"
            " write the version as `driver.version` in `operators.gpu.values`"
        )
    if pool.node_image == "ubuntu":
        if version == "default":
            return None
        return "only Container-Optimized OS has several drivers; on Ubuntu take this line out"
    if version not in ("default", "latest") and not pool.by_googles_installer:
        return (
            "GKE installs the driver here, and Google's provider knows no other versions for it"
            " than `default` and `latest`; write one of them, or `gpuManagement: operator`, where"
            " Google's installer takes a number"
        )
    return None


@POOL_GPUS.problem("driverVersion")
def driver_older_than_the_gpu(gpus: PoolGpus) -> str | None:
    """A GPU is known to drivers from some branch on (machines.yaml)."""
    version = gpus.pool.driver_version
    oldest = gpus.machine.gpu.oldest_driver
    if not gpus.machine.gpus or version in (None, "default", "latest"):
        return None
    if int(str(version).partition(".")[0]) >= oldest:
        return None
    accelerator = gpus.machine.gpu.accelerator
    return f"{version} does not know {accelerator}; write R{oldest} or newer as a number, or latest"


@POOL_GPUS.problem("secureBoot")
def secure_boot_with_an_unsigned_driver(gpus: PoolGpus) -> str | None:
    """Secure boot loads signed drivers only, and the GPU Operator signs none."""
    if gpus.counted and gpus.pool.secure_boot and gpus.pool.driver == "operator":
        return (
            "the GPU Operator builds a driver that nobody signed, and secure boot would not load"
            " it; take this line out, or leave the driver to GKE (driver: gke)"
        )
    return None


@POOL_GPUS.problem("sharing")
def profile_that_gke_does_not_share_by(gpus: PoolGpus) -> Iterator[Breach]:
    """On an existing cluster a profile may describe what GKE itself shares.

    Source: GoogleCloudPlatform/container-engine-accelerators, pkg/gpu/nvidia/gpusharing.
    """
    profile = gpus.profile
    by_gke = gpus.counted and gpus.pool.gpu_management == "gke" and gpus.on_existing_cluster
    if not by_gke or profile is None:
        return
    if profile.facts.resource != GPU_RESOURCE:
        yield Breach(
            f"GKE advertises what it shares as {GPU_RESOURCE}, and not as"
            f" {profile.facts.resource}; {profile.facts.counted_with} {gpus.pool.sharing!r}",
            rests_on=(gpus.profile_path,),
        )
    if profile.kind == "time-slicing" and not profile.facts.one_each:
        yield Breach(
            "a pod gets one share of GPUs that GKE itself shares; write"
            f" `failRequestsGreaterThanOne: true` in profile {gpus.pool.sharing!r}",
            rests_on=(gpus.profile_path,),
        )


@POOL_GPUS.problem("sharing")
def profile_that_does_not_fit(gpus: PoolGpus) -> Iterator[Breach]:
    """A pool's profile exists, and its mode is one that the machine type can have."""
    profile = gpus.profile
    by_claims = gpus.pool.by_dra and profile is not None and not gpus.claimable_parts
    if not gpus.machine.gpus or not gpus.pool.sharing or by_claims:
        return
    if profile is None:
        hint = did_you_mean(gpus.pool.sharing, gpus.environment.sharing) or "; `sharing:` has none"
        yield Breach(
            f"there is no sharing profile {gpus.pool.sharing!r}{hint}",
            rests_on=(gpus.profile_path,),
        )
    elif misfit := profile.problem(gpus.machine):
        yield Breach(misfit)


@POOL_GPUS.problem("gpuAllocation")
def counted_gpus_beside_claimed_ones(gpus: PoolGpus) -> str | None:
    """A pod cannot count GPUs and claim NICs in a cluster with NVIDIA's DRA driver."""
    claimed = [name for name, other in gpus.environment.pools.items() if other.by_dra]
    if not claimed or not gpus.counted or not gpus.has_rdma:
        return None
    return (
        f"GPUs of pool {claimed[0]!r} are claimed, and with NVIDIA's DRA driver in the cluster"
        " Kubernetes 1.36 starts no pod that counts its GPUs and claims its NICs, as workers do"
        " here; write `gpuAllocation: dra` for both pools, or for none"
    )


@POOL_GPUS.problem("rdma")
def parts_of_gpus_beside_nics(gpus: PoolGpus) -> str | None:
    """A claim pairs NICs with whole GPUs."""
    if gpus.pool.by_dra and gpus.claimable_parts and gpus.has_rdma:
        return (
            "a claim pairs NICs with whole GPUs, not with MIG instances; write `rdma: none`, or"
            " take `sharing` out"
        )
    return None


@POOL_GPUS.problem("sharing", rests_on=["gpuAllocation"])
def shared_gpus_that_are_claimed(gpus: PoolGpus) -> str | None:
    """A claim is for a whole GPU."""
    if gpus.pool.by_dra and gpus.profile is not None and not gpus.claimable_parts:
        return (
            "Google does not support shared GPUs (time-slicing, MPS, MIG) on nodes whose GPUs are"
            " claimed, and a claim is for a whole one; share the GPUs of another pool, or take"
            " `gpuAllocation` out"
        )
    return None
