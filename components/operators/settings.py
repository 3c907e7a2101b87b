"""The registry of operators: their settings, their order, and effects of a change of one."""

from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import Annotated, Any

from pydantic import Field

from berth.components.core import fast_yaml
from berth.components.core.settings import Settings
from berth.components.operators.dranet import DraNet, DraNetSettings
from berth.components.operators.driver_installer import DriverInstaller
from berth.components.operators.gib import Gib, GibSettings
from berth.components.operators.gpu_dra import GpuDra, GpuDraSettings
from berth.components.operators.gpu_operator import GpuOperator, GpuOperatorSettings
from berth.components.operators.kuberay import KubeRay, KubeRaySettings
from berth.components.operators.operator import Operator, Site
from berth.components.plan.effect import Effect, Level
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.paths import below
from berth.components.plan.plan import Step
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

_QUIET: list[str] = fast_yaml.load_beside(__file__, "words.yaml")["quiet"]
"""Inputs of a release whose change restarts nothing."""


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

    def of(self, operator: type[Operator[Any]]) -> Any:
        """Return the settings of an operator; None for one that has none."""
        return getattr(self, operator.setting) if operator.setting else None

    def on(self, site: Site) -> Iterator[Operator[Any]]:
        """Yield the operators to install on a cluster, each after those that it needs."""
        needs = {operator: operator.needs for operator in OPERATORS}
        for operator in TopologicalSorter(needs).static_order():
            if found := operator.on(self.of(operator), site):
                yield found


class OperatedSettings(SharingSettings):
    """A GKE cluster with shared GPUs, and the operators on it."""

    operators: Annotated[OperatorsSettings, Field(examples=[{"kuberay": {"source": "addon"}}])] = (
        OperatorsSettings()
    )

    @property
    def ray_addon(self) -> bool | None:
        """Whether GKE's own Ray operator is on; None leaves it as it is."""
        return {"addon": True, "chart": False}.get(self.operators.kuberay.source)


def of_release(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a Helm release."""
    removed = step.operation in ("replace", "delete")
    changed = [
        change.path
        for change in step.properties
        if not any(below(change.path, quiet) for quiet in _QUIET)
    ]
    if not changed and not removed:
        return []
    # The name alone, for an OCI reference and for a folder too.
    chart = str(step.before.get("chart") or "").rstrip("/").rsplit("/", 1)[-1]
    for operator in OPERATORS:
        if operator.release == chart:
            return operator.effects(step, fleet, changed)
    if not removed:
        return [
            Effect(
                Level.DISTURBS, f"release {step.name}: what it installs restarts where it changes"
            )
        ]
    again = ", then installed again" if step.operation == "replace" else ""
    return [
        Effect(
            Level.DESTROYS,
            f"release {step.name} is removed{again}, with everything that it installed",
        )
    ]


def of_daemon_set(step: Step, fleet: PlannedFleet) -> list[Effect] | None:
    """Return the effects of a change of an operator's DaemonSet; None for another DaemonSet."""
    name = (step.before.get("metadata") or {}).get("name")
    for operator in OPERATORS:
        if operator.daemon_set and str(name).startswith(operator.daemon_set):
            return operator.effects(step, fleet, [change.path for change in step.properties])
    return None
