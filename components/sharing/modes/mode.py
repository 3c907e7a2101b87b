"""Base of the sharing modes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

from pydantic import model_validator

from berth.components.core.settings import Settings
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.hardware.machines import Machine
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.sharing.modes.facts import Facts


@dataclass(frozen=True)
class Offer:
    """Devices that a node advertises."""

    resource: str
    """Resource name that pods ask for."""
    per_node: int
    """Number of them on a node."""
    memory_gib: Decimal
    """GPU memory behind one of them; isolated only with MIG, and bounded with MPS."""
    labels: dict[str, str] = field(default_factory=dict)
    """Feature labels of every node of the pool; none where GKE's own plugin serves it."""


class Mode(Settings):
    """A way to share GPUs: a member of the union `SharingProfile`, which `kind` selects."""

    kind: str

    label: ClassVar[str] = ""
    """Label of nodes whose change restarts more than the device plugin."""
    label_change: ClassVar[tuple[str, str]] = ("", "")
    """Noun for the choice that `label` makes, and effect of another choice on nodes in use."""
    strategy_label: ClassVar[str] = "none"
    """Value of the label that GPU feature discovery gives a node for the mode."""
    foreign: ClassVar[Mapping[str, str]] = {}
    """Reasons why keys of other modes do not belong here."""

    @model_validator(mode="before")
    @classmethod
    def _without_foreign_keys(cls, value: Any) -> Any:
        """Refuse keys of other modes, unless they are off, as older versions wrote them."""
        if not isinstance(value, dict):
            return value
        for key, reason in cls.foreign.items():
            if value.get(key) not in (None, False):
                raise ValueError(reason)
        return {key: given for key, given in value.items() if key not in cls.foreign}

    @property
    def facts(self) -> Facts:
        """Facts about the GPUs."""
        return Facts()

    def problem(self, machine: Machine) -> str:
        """Return the reason why a machine type cannot have the mode; empty if it can."""
        del machine
        return ""

    def conflict(self, pool: str, others: Mapping[str, Facts]) -> str:
        """Return the reason why a pool cannot have the mode beside those of all pools."""
        del pool, others
        return ""

    def per_gpu(self, machine: Machine) -> int:
        """Return the number of devices that one GPU becomes."""
        del machine
        return 1

    def memory_gib(self, machine: Machine) -> Decimal:
        """Return the GPU memory of one device."""
        return Decimal(machine.gpu.memory_gib) / self.per_gpu(machine)

    @property
    def by_gke(self) -> dict[str, str]:
        """GKE's labels of nodes whose GPUs GKE itself shares in this mode."""
        return {}

    def feature_labels(self, machine: Machine) -> dict[str, str]:
        """Return the labels that GPU feature discovery gives a node."""
        return {
            f"{GPU_RESOURCE}.count": str(machine.gpus),
            f"{GPU_RESOURCE}.replicas": str(self.per_gpu(machine)),
            f"{GPU_RESOURCE}.sharing-strategy": self.strategy_label,
        }

    def gpu_unit(self, machine: Machine) -> GpuUnit:
        """Return what one device of a node is to a pod, in words for people."""
        return GpuUnit(machine.gpu.product, memory_gib=machine.gpu.memory_gib)

    def offer(self, machine: Machine, *, by_operator: bool) -> Offer | None:
        """Return the devices of a node, with the operator's labels; None without GPUs."""
        if not machine.gpus:
            return None
        labels = self.feature_labels(machine) if by_operator else {}
        return Offer(
            self.facts.resource,
            machine.gpus * self.per_gpu(machine),
            self.memory_gib(machine),
            labels,
        )
