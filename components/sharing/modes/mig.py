"""Mode `mig`: isolated instances in hardware."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.hardware.machines import Machine, mig_memory_gib
from berth.components.hardware.names import GKE_SIZE_LABEL, GPU, GPU_RESOURCE, MIG, MIG_LABEL
from berth.components.sharing.modes.facts import Facts
from berth.components.sharing.modes.mode import Mode


class Mig(Mode):
    """Instances of a GPU by NVIDIA's Multi-Instance GPU."""

    kind: Literal["mig"]
    """`mig`: hardware instances, isolated."""
    strategy: Literal["single", "mixed"]
    """`single` advertises instances as `nvidia.com/gpu`, `mixed` as `nvidia.com/mig-PROFILE`."""
    profile: Annotated[str, Field(examples=["1g.23gb"])]
    """The instance, for example `1g.23gb`; every GPU is cut into as many as it holds."""

    label: ClassVar[str] = MIG_LABEL
    label_change: ClassVar[tuple[str, str]] = (
        "the MIG layout",
        (
            "the MIG manager stops every pod with a GPU on them, and a Container-Optimized OS node"
            " restarts: work there is lost"
        ),
    )
    foreign: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("replicas", "renameByDefault", "failRequestsGreaterThanOne"),
        "replicas, renameByDefault and failRequestsGreaterThanOne belong to shares; a mig profile"
        " has none of them",
    )

    @property
    def facts(self) -> Facts:
        """Facts about the GPUs."""
        return Facts(
            unit=f"{self.profile} instance",
            words=f"MIG {self.profile}",
            divided="cut into",
            resource=f"nvidia.com/mig-{self.profile}" if self.strategy == "mixed" else GPU_RESOURCE,
            counted_with="write `strategy: single` in profile",
            scaling_risk=(
                "the GPUs of a new node are cut only after it has joined"
                " (https://github.com/NVIDIA/gpu-operator/issues/2670): pods that it was added for"
                f" may start on a whole GPU, or find none until somebody sets the label {MIG_LABEL}"
                " again"
            ),
            mig_strategy=self.strategy,
            labels={MIG_LABEL: f"all-{self.profile}"},
            device=("mig", MIG, f'device.attributes["{GPU}"].profile == "{self.profile}"'),
            claimable=True,
        )

    def problem(self, machine: Machine) -> str:
        """Return the reason why GPUs of this machine type cannot have the instances."""
        instances = machine.gpu.mig
        if not instances:
            return (
                f"{machine.gpu.product} ({machine.name}) has no MIG; share it by time-slicing"
                " or MPS"
            )
        if self.profile in instances:
            return ""
        return (
            f"{machine.gpu.product} has no MIG profile {self.profile}; it has"
            f" {', '.join(instances)}"
        )

    def conflict(self, pool: str, others: Mapping[str, Facts]) -> str:
        """Return the reason why a pool cannot have the strategy beside the modes of other pools."""
        first = next(name for name, facts in others.items() if facts.mig_strategy)
        if others[first].mig_strategy == self.strategy:
            return ""
        return (
            f"pools {' and '.join(sorted((first, pool)))} use MIG with different strategies, which"
            " is one setting for the cluster; make both single or both mixed"
        )

    def per_gpu(self, machine: Machine) -> int:
        """Return the number of instances of one GPU."""
        return machine.gpu.mig[self.profile]

    def memory_gib(self, machine: Machine) -> Decimal:
        """Return the memory of one instance."""
        del machine
        return Decimal(mig_memory_gib(self.profile))

    def gpu_unit(self, machine: Machine) -> GpuUnit:
        """Return what one instance is to a pod, in words for people."""
        return GpuUnit(
            machine.gpu.product,
            "mig",
            self.profile,
            self.per_gpu(machine),
            float(self.memory_gib(machine)),
        )

    @property
    def by_gke(self) -> dict[str, str]:
        """GKE's labels of nodes whose GPUs GKE itself cuts into these instances."""
        return {GKE_SIZE_LABEL: self.profile}

    def feature_labels(self, machine: Machine) -> dict[str, str]:
        """Return the labels that GPU feature discovery and the MIG manager give a node."""
        del machine
        return {"nvidia.com/mig.strategy": self.strategy, "nvidia.com/mig.config.state": "success"}
