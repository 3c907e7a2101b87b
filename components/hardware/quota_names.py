"""Quotas that a machine takes, under Google's names.

Sources: "Allocation quotas" (https://docs.cloud.google.com/compute/resource-usage):
accelerator-optimized machines need quota for their GPUs and none for CPUs, and GPUs count in their
region and in all regions; "GPU VMs and preemptible allocation quotas"
(https://docs.cloud.google.com/compute/docs/gpus/create-vm-with-gpus#preemptible-quotas): Spot and
flex-start take preemptible quota where the project has some, else the usual one; "Implement common
use cases" (https://docs.cloud.google.com/docs/quotas/implement-common-use-cases) for the ids of the
Cloud Quotas API, where the GPUs from H100 on are one quota with a family for each.
"""

from collections import Counter
from dataclasses import dataclass, replace

from berth.components.hardware.machines import GPUS, LOCAL_SSD_GB, Gpu, Machine

_BY_FAMILY = {gpu.quota for gpu in GPUS.values() if not gpu.own_quota}
_FAMILY_QUOTA = "GPUS_PER_GPU_FAMILY"

# "E2 and N1 count as CPUS"; the other families have a quota of their own.
_COMMON_CPUS = {"e2", "n1"}
_PREEMPTIBLE_KINDS = ("spot", "flex-start")
_PREEMPTIBLE = "PREEMPTIBLE_"


@dataclass(frozen=True, order=True)
class Quota:
    """Limit of Google Cloud."""

    metric: str
    """Compute Engine's name, such as `N2_CPUS`."""
    family: str = ""
    """GPU family, for a quota with a limit for each family."""
    everywhere: bool = False
    """Whether it counts in all regions together."""

    @property
    def id(self) -> str:
        """Id in the Cloud Quotas API: `N2-CPUS-per-project-region`."""
        return f"{self.metric.replace('_', '-')}-per-project" + (
            "" if self.everywhere else "-region"
        )

    @property
    def preemptible(self) -> bool:
        """Whether it is for Spot and flex-start only."""
        return self.metric.startswith(_PREEMPTIBLE)

    def __str__(self) -> str:
        return f"{self.family}_GPUS" if self.family else self.metric

    def dimensions(self, region: str) -> dict[str, str]:
        """Return the dimensions that identify this limit among those of the same id."""
        places = {} if self.everywhere else {"region": region}
        return places | ({"gpu_family": self.family} if self.family else {})


_PREEMPTIBLE_SSDS = Quota("PREEMPTIBLE_LOCAL_SSD_GB")
_SSDS = Quota("LOCAL_SSD_TOTAL_GB")


def usual_quota(quota: Quota) -> Quota:
    """Return the quota that Spot and flex-start take where the project has no preemptible one."""
    if quota == _PREEMPTIBLE_SSDS:
        return _SSDS
    name = quota.metric.removeprefix(_PREEMPTIBLE)
    gpu = name.removesuffix("_GPUS")
    if gpu in _BY_FAMILY:
        return Quota(_FAMILY_QUOTA, gpu)
    return replace(quota, metric=name)


def quotas_taken(machine: Machine, capacity: str, local_ssds: int = 0) -> Counter[Quota]:
    """Return the quotas that one machine takes, with the amounts.

    A machine that berth does not know takes none that can be told. Those of a reservation took
    theirs when it was made.

    Args:
        machine: machine type, with its GPUs.
        capacity: kind of capacity, such as `spot`.
        local_ssds: number of Local SSDs beside the machine type's own.
    """
    quotas = Counter[Quota]()
    if not machine.known or capacity == "reservation":
        return quotas
    is_preemptible = capacity in _PREEMPTIBLE_KINDS
    if machine.gpus:
        quotas[_gpu_quota(machine.gpu, is_preemptible=is_preemptible)] += machine.gpus
        quotas[Quota("GPUS_ALL_REGIONS", everywhere=True)] += machine.gpus
    if not machine.gpus or machine.series.attaches:
        quotas[_cpu_quota(machine, is_preemptible=is_preemptible)] += machine.vcpus
        quotas[Quota("CPUS_ALL_REGIONS", everywhere=True)] += machine.vcpus
    if local_ssds:
        quotas[_PREEMPTIBLE_SSDS if is_preemptible else _SSDS] += local_ssds * LOCAL_SSD_GB
    return quotas


def _gpu_quota(gpu: Gpu, *, is_preemptible: bool) -> Quota:
    if is_preemptible:
        return Quota(f"{_PREEMPTIBLE}{gpu.quota}_GPUS")
    return Quota(f"{gpu.quota}_GPUS") if gpu.own_quota else Quota(_FAMILY_QUOTA, gpu.quota)


def _cpu_quota(machine: Machine, *, is_preemptible: bool) -> Quota:
    if is_preemptible:
        return Quota(f"{_PREEMPTIBLE}CPUS")
    return Quota("CPUS" if machine.family in _COMMON_CPUS else f"{machine.family.upper()}_CPUS")
