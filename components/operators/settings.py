"""The registry of operators, with their settings and the order in which they are installed."""

from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import Annotated, Any

from pydantic import Field

from berth.components.core.settings import Settings
from berth.components.operators.dranet import DraNet, DraNetSettings
from berth.components.operators.driver_installer import DriverInstaller
from berth.components.operators.gib import Gib, GibSettings
from berth.components.operators.gpu_dra import GpuDra, GpuDraSettings
from berth.components.operators.gpu_operator import GpuOperator, GpuOperatorSettings
from berth.components.operators.kuberay import KubeRay, KubeRaySettings
from berth.components.operators.operator import Operator
from berth.components.operators.site import Site
from berth.components.sharing import SharingSettings

OPERATORS: tuple[type[Operator[Any]], ...] = (
    KubeRay,
    DriverInstaller,
    GpuOperator,
    DraNet,
    GpuDra,
    Gib,
)
"""Operators in the order in which previews show them."""


class OperatorsSettings(Settings):
    """Operators and drivers on the cluster, beside those that GKE brings."""

    kuberay: Annotated[KubeRaySettings, Field(examples=[{"source": "addon"}])] = KubeRaySettings()
    gpu: Annotated[GpuOperatorSettings, Field(examples=[{"dcgmExporter": True}])] = (
        GpuOperatorSettings()
    )
    dranet: Annotated[DraNetSettings, Field(examples=[{"nodeSelector": {"team": "research"}}])] = (
        DraNetSettings()
    )
    gpu_dra: Annotated[GpuDraSettings, Field(examples=[{"source": "present"}])] = GpuDraSettings()
    gib: Annotated[GibSettings, Field(examples=[{"source": "present"}])] = GibSettings()

    @classmethod
    def key_of(cls, operator: Operator[Any] | type[Operator[Any]]) -> str:
        """Return the key of an operator's settings, as in YAML."""
        return cls.model_fields[operator.setting].alias or operator.setting

    def of(self, operator: type[Operator[Any]]) -> Any:
        """Return the settings of an operator; None for one that has none."""
        return getattr(self, operator.setting) if operator.setting else None

    def on(self, site: Site) -> Iterator[Operator[Any]]:
        """Yield the operators to install on a cluster, each after those that it needs."""
        needs = {operator: operator.needs for operator in OPERATORS}
        for operator in TopologicalSorter(needs).static_order():
            installed = operator.on(self.of(operator), site)
            if installed:
                yield installed


class OperatedSettings(SharingSettings):
    """A GKE cluster with shared GPUs, and the operators on it."""

    operators: Annotated[OperatorsSettings, Field(examples=[{"kuberay": {"source": "addon"}}])] = (
        OperatorsSettings()
    )

    @property
    def ray_addon(self) -> bool | None:
        """Whether GKE's own Ray operator is on; None leaves it as it is."""
        return {"addon": True, "chart": False}.get(self.operators.kuberay.source)
