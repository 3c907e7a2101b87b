"""Mode `mig`: isolated instances in hardware."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Literal

from berth.components.core.nearest import did_you_mean
from berth.components.hardware.facts import Machine, mig_memory_gib
from berth.components.hardware.names import GPU, GPU_RESOURCE, MIG, MIG_LABEL
from berth.components.sharing.modes.mode import Mode


class Mig(Mode):
    """Instances of a GPU by NVIDIA's Multi-Instance GPU."""

    kind: Literal["mig"]
    """`mig`: hardware instances, isolated."""
    strategy: Literal["single", "mixed"]
    """`single` advertises instances as `nvidia.com/gpu`, `mixed` as `nvidia.com/mig-PROFILE`."""
    profile: str
    """The instance, for example `1g.23gb`; every GPU is cut into as many as it holds."""

    divided: ClassVar[str] = "cut into"
    label: ClassVar[str] = MIG_LABEL
    label_chooses: ClassVar[str] = "the MIG layout"
    label_effect: ClassVar[str] = (
        "the MIG manager stops every pod with a GPU on them, and a Container-Optimized OS node restarts: work there is"
        " lost"
    )
    scaling_risk: ClassVar[str] = (
        "the GPUs of a new node are cut only after it has joined (https://github.com/NVIDIA/gpu-operator/issues/2670):"
        " pods that it was added for may start on a whole GPU, or find none until somebody sets the label"
        f" {MIG_LABEL} again"
    )
    claimable: ClassVar[bool] = True
    claim_name: ClassVar[str] = "mig"
    device_class: ClassVar[str] = MIG
    foreign: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("replicas", "renameByDefault", "failRequestsGreaterThanOne"),
        "replicas, renameByDefault and failRequestsGreaterThanOne belong to shares; a mig profile has none of them",
    )

    @property
    def unit(self) -> str:
        """Noun for one advertised device."""
        return f"{self.profile} instance"

    @property
    def words(self) -> str:
        """Short description for tables."""
        return f"MIG {self.profile}"

    @property
    def resource(self) -> str:
        """Resource under which the instances are advertised."""
        return f"nvidia.com/mig-{self.profile}" if self.strategy == "mixed" else GPU_RESOURCE

    @property
    def counted_with(self) -> str:
        """Edit of the profile with which nodes advertise nvidia.com/gpu, where they do not."""
        return "write `strategy: single` in profile" if self.strategy == "mixed" else ""

    @property
    def mig_strategy(self) -> Literal["single", "mixed"]:
        """MIG strategy, of which a cluster has one."""
        return self.strategy

    @property
    def selector(self) -> str:
        """CEL expression that selects instances of the profile."""
        return f'device.attributes["{GPU}"].profile == "{self.profile}"'

    @property
    def node_labels(self) -> dict[str, str]:
        """Labels of nodes beside that of the device plugin's config."""
        return {MIG_LABEL: f"all-{self.profile}"}

    def problem(self, machine: Machine) -> str:
        """Return the reason why GPUs of this machine type cannot have the instances."""
        instances = machine.gpu.mig
        if not instances:
            return f"{machine.gpu.product} ({machine.name}) has no MIG; share it by time-slicing or MPS"
        if self.profile in instances:
            return ""
        return (
            f"{machine.gpu.product} has no MIG profile {self.profile}{did_you_mean(self.profile, instances)};"
            f" it has {', '.join(instances)}"
        )

    def conflict(self, pool: str, others: Mapping[str, Mode]) -> str:
        """Return the reason why a pool cannot have the strategy beside the modes of other pools."""
        first = next(name for name, mode in others.items() if mode.mig_strategy)
        if others[first].mig_strategy == self.strategy:
            return ""
        return (
            f"pools {' and '.join(sorted((first, pool)))} use MIG with different strategies, which is one setting for"
            " the cluster; make both single or both mixed"
        )

    def per_gpu(self, machine: Machine) -> int:
        """Return the number of instances of one GPU."""
        return machine.gpu.mig[self.profile]

    def memory_gib(self, machine: Machine) -> Decimal:
        """Return the memory of one instance."""
        del machine
        return Decimal(mig_memory_gib(self.profile))

    def feature_labels(self, machine: Machine) -> dict[str, str]:
        """Return the labels that GPU feature discovery and the MIG manager give a node."""
        del machine
        return {"nvidia.com/mig.strategy": self.strategy, "nvidia.com/mig.config.state": "success"}
