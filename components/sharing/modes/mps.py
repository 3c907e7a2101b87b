"""Mode `mps`: pods run on a GPU at once, each with a share of its memory."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from berth.components.sharing.modes.mode import Facts
from berth.components.sharing.modes.shares import Shares


class Mps(Shares):
    """Shares of a GPU by NVIDIA's Multi-Process Service."""

    kind: Literal["mps"]
    """`mps`: pods run at once, each with a share of memory."""

    section: ClassVar[str] = "mps"
    gke_strategy: ClassVar[str] = "mps"
    strategy_label: ClassVar[str] = "mps"
    memory_note: ClassVar[str] = "; MPS refuses allocations beyond the share"
    foreign: ClassVar[Mapping[str, str]] = {
        "failRequestsGreaterThanOne": "failRequestsGreaterThanOne belongs to time-slicing;"
        " MPS always refuses such requests",
        **dict.fromkeys(
            ("strategy", "profile"),
            "MPS does not work on MIG instances (NVIDIA's device plugin refuses it); choose mps or mig",
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
        mixed = next((name for name, facts in others.items() if facts.mig_strategy == "mixed"), None)
        if mixed is None:
            return ""
        return (
            f"pool {mixed!r} has MIG with strategy mixed, which is one setting for the cluster, and NVIDIA's device"
            " plugin does not start with it where GPUs are shared by MPS; use strategy single there, or"
            " time-slicing here"
        )
