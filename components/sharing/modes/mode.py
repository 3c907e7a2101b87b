"""Base of the sharing modes: the facts that berth asks of each, with the answers for whole GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from berth.components.core.settings import Settings
from berth.components.hardware.facts import Machine
from berth.components.hardware.names import GPU, GPU_RESOURCE


@dataclass(frozen=True)
class Offer:
    """Devices that a node advertises.

    Attributes:
        resource: resource name that pods ask for.
        per_node: number of them on a node.
        memory_gib: GPU memory behind one of them; isolated only with MIG, and bounded with MPS.
        labels: feature labels of every node of the pool; none where GKE's own plugin serves it.
    """

    resource: str
    per_node: int
    memory_gib: Decimal
    labels: dict[str, str] = field(default_factory=dict)


class Mode(Settings):
    """A way to share GPUs: a member of the union `SharingProfile`, which `kind` selects."""

    kind: str

    shared: ClassVar[bool] = True
    """Whether one GPU serves several pods."""
    divided: ClassVar[str] = "shared by"
    """Verb for the number of devices of one GPU: "8 GPUs, each shared by 4"."""
    label: ClassVar[str] = ""
    """Label of nodes, beside that of the device plugin's config, by which a node takes the mode."""
    label_chooses: ClassVar[str] = ""
    """Noun for the choice that `label` makes."""
    label_effect: ClassVar[str] = ""
    """Effect of another value of `label` on nodes in use."""
    memory_note: ClassVar[str] = ""
    """Isolation of GPU memory, as the end of a warning about too little of it."""
    scaling_risk: ClassVar[str] = ""
    """Reason why pods may find no GPU on a node that the autoscaler has just added."""
    claimable: ClassVar[bool] = False
    """Whether NVIDIA's DRA driver serves it on nodes that berth does not create."""
    claim_name: ClassVar[str] = "gpu"
    """Name of a claim's request for devices."""
    device_class: ClassVar[str] = GPU
    """Device class of the devices in a claim."""
    foreign: ClassVar[Mapping[str, str]] = {}
    """Reasons why keys of other modes do not belong here."""

    @model_validator(mode="before")
    @classmethod
    def _without_foreign_keys(cls, value: Any) -> Any:
        """Refuse keys of other modes; switched off they are accepted, as older versions wrote them."""
        if not isinstance(value, dict):
            return value
        for key in value.keys() & cls.foreign.keys():
            if value[key] not in (None, False):
                raise ValueError(cls.foreign[key])
        return {key: given for key, given in value.items() if key not in cls.foreign}

    @property
    def unit(self) -> str:
        """Noun for one advertised device."""
        return "share"

    @property
    def words(self) -> str:
        """Short description for tables, with the most important property; empty for whole GPUs."""
        return ""

    @property
    def resource(self) -> str:
        """Resource under which the devices are advertised."""
        return GPU_RESOURCE

    @property
    def counted_with(self) -> str:
        """Edit of the profile with which nodes advertise nvidia.com/gpu, where they do not."""
        return ""

    @property
    def one_each(self) -> str:
        """Reason why a pod gets one device at most; empty where it may ask for more."""
        return ""

    @property
    def mig_strategy(self) -> Literal["single", "mixed"] | None:
        """MIG strategy, of which a cluster has one; None for modes without MIG."""
        return None

    @property
    def selector(self) -> str:
        """CEL expression that selects the devices among those of `device_class`."""
        return ""

    @property
    def node_labels(self) -> dict[str, str]:
        """Labels of nodes beside that of the device plugin's config."""
        return {}

    def problem(self, machine: Machine) -> str:
        """Return the reason why GPUs of this machine type cannot have the mode; empty if they can."""
        del machine
        return ""

    def conflict(self, pool: str, others: Mapping[str, Mode]) -> str:
        """Return the reason why a pool cannot have the mode beside the modes of other pools.

        Args:
            pool: name of the pool.
            others: modes of all pools that the GPU Operator serves, by the pool's name.
        """
        del pool, others
        return ""

    def per_gpu(self, machine: Machine) -> int:
        """Return the number of devices that one GPU becomes."""
        del machine
        return 1

    def memory_gib(self, machine: Machine) -> Decimal:
        """Return the GPU memory of one device."""
        return Decimal(machine.gpu.memory_gib) / self.per_gpu(machine)

    def feature_labels(self, machine: Machine) -> dict[str, str]:
        """Return the labels that GPU feature discovery gives a node."""
        return {
            "nvidia.com/gpu.count": str(machine.gpus),
            "nvidia.com/gpu.replicas": str(self.per_gpu(machine)),
            "nvidia.com/gpu.sharing-strategy": self.kind,
        }

    def plugin_sharing(self) -> dict[str, Any]:
        """Return the section `sharing` of the device plugin's config; empty for none."""
        return {}

    def offer(self, machine: Machine, *, by_operator: bool) -> Offer | None:
        """Return the devices that a node advertises; None for a machine type without GPUs.

        Args:
            machine: a machine type that can have the mode.
            by_operator: whether the GPU Operator serves the node, and sets feature labels.
        """
        if not machine.gpus:
            return None
        labels = self.feature_labels(machine) if by_operator else {}
        return Offer(self.resource, machine.gpus * self.per_gpu(machine), self.memory_gib(machine), labels)
