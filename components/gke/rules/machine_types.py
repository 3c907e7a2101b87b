"""Rules of what a pool says of its machine type: attached GPUs, and capacity for pods.

Source: "GPU machine types", N1 (https://docs.cloud.google.com/compute/docs/gpus), and the machine
types of GKE's autoscaler.
"""

from berth.components.core.rules import Rules
from berth.components.core.words import names_in_words
from berth.components.gke.pool_settings import PoolSettings

MACHINE_TYPES = Rules[PoolSettings](PoolSettings)
"""Rules of the machine type of every pool, of existing clusters too."""


@MACHINE_TYPES.problem("gpus")
def gpus_of_a_machine_type_with_its_own(pool: PoolSettings) -> str | None:
    """Google attaches GPUs to few machine types; the others have theirs, or none."""
    if pool.gpus and pool.machine.known and not pool.machine.series.attaches:
        return f"{pool.machine.name} says by itself which GPUs a node has; take this line out"
    return None


@MACHINE_TYPES.problem("gpus")
def gpus_that_google_does_not_attach(pool: PoolSettings) -> str | None:
    """Google attaches certain GPUs, by certain numbers, to machines of a certain size."""
    machine = pool.machine
    gpus = pool.gpus
    if gpus is None or not machine.gpus or not machine.series.attaches:
        return None
    most_vcpus = machine.series.attaches.get(machine.gpu.accelerator)
    if not most_vcpus:
        kinds = names_in_words(machine.series.attaches, "or")
        return f"Google attaches {kinds} to {machine.name}, not {gpus.type}"
    if machine.gpus not in most_vcpus:
        counts = names_in_words(most_vcpus, "or")
        return f"Google attaches {counts} {gpus.type} to a node, not {gpus.count}"
    most = most_vcpus[machine.gpus]
    if machine.vcpus > most:
        return (
            f"{gpus.count} × {gpus.type} go with {most} vCPUs at most, and {machine.name} has"
            f" {machine.vcpus}; take a smaller machine type, or more GPUs"
        )
    return None


@MACHINE_TYPES.problem("allocatable")
def allocatable_of_a_known_machine_type(pool: PoolSettings) -> str | None:
    """Berth counts CPU and memory for pods itself for machine types that it knows."""
    if pool.allocatable and pool.machine.known:
        return f"berth knows what GKE leaves to pods on {pool.machine.name}; take this line out"
    return None
