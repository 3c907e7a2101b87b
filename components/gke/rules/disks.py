"""Rules of the disks of nodes that berth creates: boot disks, Local SSDs, disks with images."""

from berth.components.core.rules import Rules
from berth.components.core.words import names_in_words
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.rules.pool import EnvironmentPool
from berth.components.gke.versions import parse_gke_version

CREATED_DISKS = Rules[PoolSettings](PoolSettings)
"""Rules of the disks of a pool that berth creates."""

CREATED_BOOT_DISKS = Rules[EnvironmentPool](PoolSettings)
"""Rules of the boot disks of a pool that berth creates, on its cluster."""

_SMALLEST_NEW_BOOT_DISK = 15
_LARGER_BOOT_DISKS_SINCE = parse_gke_version("1.36.3-gke.1480000")


@CREATED_BOOT_DISKS.problem("diskSizeGb", rests_on=["environment.cluster.version"])
def boot_disk_smaller_than_the_version_takes(pool: EnvironmentPool) -> str | None:
    """Newer versions of GKE take boot disks of 15 GB and more; older ones 12 (pool_settings.py).

    Source: discovery document of the API container v1, revision 20261027, NodeConfig.diskSizeGb.
    """
    version = pool.environment.cluster.version
    if pool.settings.disk_size_gb >= _SMALLEST_NEW_BOOT_DISK or version is None:
        return None
    if not parse_gke_version(version).at_least(_LARGER_BOOT_DISKS_SINCE):
        return None
    return (
        f"GKE {version} takes boot disks of {_SMALLEST_NEW_BOOT_DISK} GB and more; write"
        f" diskSizeGb: {_SMALLEST_NEW_BOOT_DISK} or more"
    )


@CREATED_BOOT_DISKS.warning("diskSizeGb")
def boot_disk_that_upgrades_outgrow(pool: EnvironmentPool) -> str | None:
    """GKE upgrades nodes to versions that take boot disks of 15 GB and more."""
    size = pool.settings.disk_size_gb
    if size >= _SMALLEST_NEW_BOOT_DISK or boot_disk_smaller_than_the_version_takes(pool):
        return None
    return (
        f"{size} GB is too small from GKE {_LARGER_BOOT_DISKS_SINCE} on, which the release channel"
        f" may have already; write diskSizeGb: {_SMALLEST_NEW_BOOT_DISK} or more"
    )


@CREATED_DISKS.problem("diskType")
def boot_disk_that_the_machine_does_not_take(pool: PoolSettings) -> str | None:
    """A series boots from certain types of disks (machines.yaml)."""
    disks = pool.machine.series.boot_disks
    if not pool.machine.known or pool.disk_type is None or pool.disk_type in disks:
        return None
    allowed = names_in_words(disks, "or")
    return f"{pool.machine.name} cannot boot from {pool.disk_type}, but from {allowed}"


@CREATED_DISKS.problem("localSsds.count")
def other_number_of_local_ssds(pool: PoolSettings) -> str | None:
    """A machine type has a number of Local SSDs, or a choice of numbers (machines.yaml)."""
    machine = pool.machine
    if not machine.known or pool.local_ssds is None:
        return None
    count = pool.local_ssds.count
    if machine.local_ssds and count not in (None, machine.local_ssds):
        return (
            f"{machine.name} comes with {machine.local_ssds} Local SSDs, all of them or none of the"
            " machine; take `count` out"
        )
    if machine.local_ssds or not machine.local_ssd_choices:
        return None
    choices = names_in_words(machine.local_ssd_choices, "or")
    if count is None:
        return f"is required: {machine.name} has as many Local SSDs as are asked for, {choices}"
    if count and count not in machine.local_ssd_choices:
        return f"{machine.name} has {choices} Local SSDs or none, not {count}"
    return None


@CREATED_DISKS.problem("localSsds")
def local_ssds_of_a_machine_without_any(pool: PoolSettings) -> str | None:
    """Many machine types have no Local SSDs (machines.yaml)."""
    machine = pool.machine
    if not machine.known or pool.local_ssds is None or pool.local_ssds.count == 0:
        return None
    if machine.local_ssds or machine.local_ssd_choices:
        return None
    return f"{machine.name} has no Local SSDs; take this line out"


@CREATED_DISKS.problem("imageStreaming")
def image_disks_without_streaming(pool: PoolSettings) -> str | None:
    """Nodes read disks with images by image streaming."""
    if pool.image_streaming is False and pool.image_disks:
        return (
            "`imageDisks` needs image streaming, by which nodes read the disks; take this line out"
        )
    return None
