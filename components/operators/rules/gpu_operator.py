"""Rules of the GPU Operator's Helm values: with some, pods get GPUs that they do not request.

Source: NVIDIA/nvidia-container-toolkit v1.20.0, internal/config/image/cuda_image.go.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from berth.components.core.rules import Breach, Rules
from berth.components.hardware.versions import fault_of_container_toolkit
from berth.components.operators.gpu_operator import GpuOperatorSettings

GPU_OPERATOR = Rules[GpuOperatorSettings](GpuOperatorSettings)
"""Rules of the GPU Operator's settings."""

_VARIABLES = {
    "toolkit": (
        "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED",
        "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS",
        "NVIDIA_RUNTIME_SET_AS_DEFAULT",
    ),
    "devicePlugin": ("DEVICE_LIST_STRATEGY",),
}
"""Variables that decide which pods get GPUs of a node, by the daemon that reads them."""


@GPU_OPERATOR.problem("values.cdi")
def gpus_without_cdi(settings: GpuOperatorSettings) -> str | None:
    """With CDI, containerd gives a container the GPUs that the device plugin allocates."""
    if _cdi(settings) is not None:
        return None
    return (
        "without CDI the device plugin names GPUs by NVIDIA_VISIBLE_DEVICES, by which any pod"
        " could take those of others; take it out"
    )


@GPU_OPERATOR.problem("values.cdi.nriPluginEnabled")
def gpus_by_an_annotation(settings: GpuOperatorSettings) -> str | None:
    """NVIDIA's NRI plugin gives a pod the GPUs that its annotation names."""
    if not (_cdi(settings) or {}).get("nriPluginEnabled"):
        return None
    return "lets a pod of any namespace take GPUs by an annotation, past quotas; take it out"


@GPU_OPERATOR.problem("values.toolkit", "values.devicePlugin")
def daemon_that_is_not_a_mapping(settings: GpuOperatorSettings) -> Iterator[Breach]:
    """The chart reads a mapping."""
    for daemon in _VARIABLES:
        if not isinstance(_values_of(settings, daemon), Mapping):
            yield Breach(
                f"is not a mapping; write {daemon}: {{env: [{{name: NAME, value: TEXT}}]}}",
                at=("values", daemon),
            )


@GPU_OPERATOR.problem("values.toolkit.version")
def toolkit_that_lets_containers_escape(settings: GpuOperatorSettings) -> str | None:
    """The chart takes another version of the container toolkit than the operator's own."""
    toolkit = _values_of(settings, "toolkit")
    version = str(toolkit.get("version", "")) if isinstance(toolkit, Mapping) else ""
    fault = fault_of_container_toolkit(version)
    return f"{version} {fault}, or take it out" if fault else None


@GPU_OPERATOR.problem("values.toolkit.env", "values.devicePlugin.env")
def variables_that_are_not_a_list(settings: GpuOperatorSettings) -> Iterator[Breach]:
    """The chart reads a list of names and values."""
    for daemon in _VARIABLES:
        if _variable_names(settings, daemon) is None:
            yield Breach(
                "is not a list of variables; write [{name: NAME, value: TEXT}]",
                at=("values", daemon, "env"),
            )


@GPU_OPERATOR.problem("values.toolkit.env.*", "values.devicePlugin.env.*")
def variable_that_hands_out_gpus(settings: GpuOperatorSettings) -> Iterator[Breach]:
    """Berth sets the variables by which pods get the GPUs of a node."""
    for daemon, variables in _VARIABLES.items():
        for position, name in enumerate(_variable_names(settings, daemon) or ()):
            if name in variables:
                yield Breach(
                    f"{name} decides which pods get GPUs of a node, and berth sets it; take it out",
                    at=("values", daemon, "env", position),
                )


def _values_of(settings: GpuOperatorSettings, part: str) -> Any:
    return (settings.values or {}).get(part, {})


def _cdi(settings: GpuOperatorSettings) -> Mapping[str, Any] | None:
    """Return the values of CDI; None where it is off."""
    values = _values_of(settings, "cdi")
    if isinstance(values, Mapping) and values.get("enabled", True):
        return values
    return None


def _variable_names(settings: GpuOperatorSettings, daemon: str) -> list[Any] | None:
    """Return the names of a daemon's variables; None where they are not a list of variables."""
    values = _values_of(settings, daemon)
    if not isinstance(values, Mapping):
        return []
    variables = values.get("env", [])
    if not isinstance(variables, list):
        return None
    names = []
    for variable in variables:
        if not isinstance(variable, Mapping) or "name" not in variable:
            return None
        names.append(variable["name"])
    return names
