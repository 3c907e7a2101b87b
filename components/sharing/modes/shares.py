"""Modes in which the device plugin advertises each GPU several times: `time-slicing` and `mps`."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.hardware.machines import Machine
from berth.components.hardware.names import GKE_SHARES_LABEL, GKE_STRATEGY_LABEL, GPU_RESOURCE
from berth.components.sharing.modes.facts import Facts
from berth.components.sharing.modes.mode import Mode


class Shares(Mode):
    """Shares of a GPU (https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus)."""

    replicas: Annotated[int, Field(examples=[4], strict=True, ge=2, le=64)]
    """Number of pods that share one GPU."""
    rename_by_default: bool = False
    """Advertise `nvidia.com/gpu.shared` instead of `nvidia.com/gpu`."""

    section: ClassVar[str]
    """Key of the mode in the device plugin's config."""
    gke_strategy: ClassVar[str]
    """GKE's word for the mode."""
    divides_memory: ClassVar[bool] = False
    """Whether each share has a limit of GPU memory."""
    memory_note: ClassVar[str] = ""
    """Isolation of GPU memory, as the end of a warning about too little of it."""
    foreign: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("strategy", "profile"),
        "strategy and profile belong to MIG; a profile of shares has neither",
    )

    def facts_of_shares(self, words: str, *, one_each: str = "", **plugin: bool) -> Facts:
        """Return the facts about shares: their words, why a pod gets one, flags of the plugin."""
        renamed = {"renameByDefault": True} if self.rename_by_default else {}
        resources = [{"name": GPU_RESOURCE, "replicas": self.replicas}]
        return Facts(
            unit="share",
            words=words,
            divided="shared by",
            resource=f"{GPU_RESOURCE}.shared" if self.rename_by_default else GPU_RESOURCE,
            counted_with="take `renameByDefault` out of profile",
            one_each=one_each,
            memory_note=self.memory_note,
            plugin={self.section: {**renamed, **plugin, "resources": resources}},
        )

    @property
    def by_gke(self) -> dict[str, str]:
        """GKE's labels of nodes whose GPUs GKE itself shares in this mode."""
        return {GKE_STRATEGY_LABEL: self.gke_strategy, GKE_SHARES_LABEL: str(self.replicas)}

    def per_gpu(self, machine: Machine) -> int:
        """Return the number of shares of one GPU."""
        del machine
        return self.replicas

    def gpu_unit(self, machine: Machine) -> GpuUnit:
        """Return what one share is to a pod, in words for people."""
        return GpuUnit(
            machine.gpu.product,
            "share",
            per_gpu=self.replicas,
            memory_gib=float(
                self.memory_gib(machine) if self.divides_memory else machine.gpu.memory_gib
            ),
            memory_is_shared=not self.divides_memory,
        )


class TimeSlicing(Shares):
    """Time slices of a GPU, without isolation of memory or faults."""

    kind: Literal["time-slicing"]
    """`time-slicing`: pods take turns, without isolation of memory or faults."""
    fail_requests_greater_than_one: bool = False
    """Refuse pods that ask for more than one share, since two shares are no more compute."""

    section: ClassVar[str] = "timeSlicing"
    gke_strategy: ClassVar[str] = "time-sharing"
    strategy_label: ClassVar[str] = "time-slicing"
    memory_note: ClassVar[str] = (
        "; time-slicing does not isolate memory, so one pod can make its neighbors fail with"
        " out-of-memory errors"
    )

    @property
    def facts(self) -> Facts:
        """Facts about the GPUs."""
        words = f"time-slicing × {self.replicas}, memory not isolated"
        key = "failRequestsGreaterThanOne"
        if not self.fail_requests_greater_than_one:
            return self.facts_of_shares(words)
        return self.facts_of_shares(words, one_each=key, **{key: True})


class Mps(Shares):
    """Shares of a GPU by NVIDIA's Multi-Process Service."""

    kind: Literal["mps"]
    """`mps`: pods run at once, each with a share of memory."""

    section: ClassVar[str] = "mps"
    gke_strategy: ClassVar[str] = "mps"
    strategy_label: ClassVar[str] = "mps"
    divides_memory: ClassVar[bool] = True
    memory_note: ClassVar[str] = "; MPS refuses allocations beyond the share"
    foreign: ClassVar[Mapping[str, str]] = {
        "failRequestsGreaterThanOne": (
            "failRequestsGreaterThanOne belongs to time-slicing; MPS always refuses such requests"
        ),
        **dict.fromkeys(
            ("strategy", "profile"),
            "MPS does not work on MIG instances (NVIDIA's device plugin refuses it); choose mps"
            " or mig",
        ),
    }

    @property
    def facts(self) -> Facts:
        """Facts about the GPUs."""
        return self.facts_of_shares(f"MPS × {self.replicas}", one_each="MPS gives a pod one share")

    def conflict(self, pool: str, others: Mapping[str, Facts]) -> str:
        """Return the reason why a pool cannot have MPS beside the modes of other pools.

        The operator passes the cluster's MIG strategy to every device plugin as a variable, which
        overrides the plugin's own config. The plugin exits with MPS and strategy mixed
        (k8s-device-plugin v0.20.0, cmd/nvidia-device-plugin/main.go).
        """
        del pool
        mixed = next(
            (name for name, facts in others.items() if facts.mig_strategy == "mixed"), None
        )
        if mixed is None:
            return ""
        return (
            f"pool {mixed!r} has MIG with strategy mixed, which is one setting for the cluster, and"
            " NVIDIA's device plugin does not start with it where GPUs are shared by MPS; use"
            " strategy single there, or time-slicing here"
        )
