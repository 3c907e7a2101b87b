"""Operators and drivers on the cluster: settings, rules, values, effects of a change, and the components.

The components import pulumi, and are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from berth.components.operators.dranet import DraNetInputs, DraNetSettings
from berth.components.operators.driver_installer import DriverInstallerInputs
from berth.components.operators.effects import of_daemon_set, of_release
from berth.components.operators.gib import GibInputs, GibSettings
from berth.components.operators.gpu_dra import GpuDraInputs, GpuDraSettings
from berth.components.operators.gpu_operator import GpuOperatorInputs, GpuOperatorSettings
from berth.components.operators.kuberay import KubeRayInputs, KubeRaySettings
from berth.components.operators.operator import Site
from berth.components.operators.rules import problems
from berth.components.operators.settings import OPERATORS, OperatedSettings, OperatorsSettings

if TYPE_CHECKING:
    from berth.components.operators.components import (
        DraNet,
        DriverInstaller,
        Gib,
        GpuDra,
        GpuOperator,
        Installation,
        KubeRay,
    )

__all__ = [
    "OPERATORS",
    "DraNet",
    "DraNetInputs",
    "DraNetSettings",
    "DriverInstaller",
    "DriverInstallerInputs",
    "Gib",
    "GibInputs",
    "GibSettings",
    "GpuDra",
    "GpuDraInputs",
    "GpuDraSettings",
    "GpuOperator",
    "GpuOperatorInputs",
    "GpuOperatorSettings",
    "Installation",
    "KubeRay",
    "KubeRayInputs",
    "KubeRaySettings",
    "OperatedSettings",
    "OperatorsSettings",
    "Site",
    "of_daemon_set",
    "of_release",
    "problems",
]


def __getattr__(name: str) -> Any:
    """Load a component when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.components"), name)
