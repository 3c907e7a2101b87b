"""Operators and drivers on the cluster: settings, rules, effects of a change, the component.

The component imports pulumi, and is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

from berth.components.operators.dranet import DraNet, DraNetSettings
from berth.components.operators.driver_installer import DriverInstaller
from berth.components.operators.effects import daemon_set_effects, release_effects
from berth.components.operators.existing_operators import problems_of_existing_operators
from berth.components.operators.gib import Gib, GibSettings
from berth.components.operators.gpu_dra import GpuDra, GpuDraSettings
from berth.components.operators.gpu_operator import GpuOperator, GpuOperatorSettings
from berth.components.operators.kuberay import KubeRay, KubeRaySettings
from berth.components.operators.parts import Chart
from berth.components.operators.record import deployed_versions, pending_releases
from berth.components.operators.rules import problems, warnings
from berth.components.operators.settings import OPERATORS, OperatedSettings, OperatorsSettings
from berth.components.operators.site import Site

if TYPE_CHECKING:
    from berth.components.operators.installation import Installation

RULES = (problems,)
"""Rules of operators' settings that contradict each other, or that nothing would use."""

WARNINGS = (warnings,)
"""Rules of Helm values that change what berth sets."""


def __getattr__(name: str) -> Any:
    """Load the component when it is first used."""
    if name != "Installation":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from berth.components.operators.installation import Installation  # noqa: PLC0415

    return Installation
