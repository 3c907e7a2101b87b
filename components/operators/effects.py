"""What a change of a Helm release does.

For NVIDIA's GPU Operator: docs.nvidia.com/datacenter/cloud-native/gpu-operator, "Upgrading the NVIDIA GPU Operator" and "GPU
Driver Upgrades" (the driver of a node is reloaded once its GPU pods are evicted), "Time-Slicing GPUs in Kubernetes" (the
device plugin restarts for another config, running pods keep what they have), "GPU Operator with MIG".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.components.fabric import effects as fabric
from berth.components.hardware.names import CONFIG_LABEL, WHOLE_KEY
from berth.components.plan.effect import Effect, Level, sitting_on, where_somebody_works
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.paths import below
from berth.components.plan.plan import Step
from berth.components.sharing import KEEPS

_QUIET = (
    "timeout",
    "repositoryOpts",
    "checksum",
    "resourceNames",
    "description",
    "skipAwait",
    "atomic",
    "cleanupOnFail",
    "disableOpenapiValidation",
)
_CONFIG = "values.devicePlugin.config"


def of_release(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """The effects of a change of a Helm release."""
    if step.old is None:
        return []
    gpu_operator, gone = is_gpu_operator(step.old.inputs), step.operation in ("replace", "delete")
    changed = [each.path for each in step.properties if not any(below(each.path, prefix) for prefix in _QUIET)]
    if not changed and not gone:
        return []
    if _chart(step.old.inputs) in (fabric.DRANET, fabric.GPU_DRA):
        return fabric.of_driver(step, fleet, _chart(step.old.inputs))
    if gone:
        return [_gone(step, fleet, gpu_operator=gpu_operator)]
    if not gpu_operator:
        return (
            [Effect(Level.DISTURBS, f"release {step.name}: what it installs restarts where it changes")]
            if (not _is_kuberay(step.old.inputs))
            else [
                Effect(
                    Level.DISTURBS,
                    "the CRDs of KubeRay are brought up to date, and its operator restarts; RayClusters keep running, and none is made"
                    " or mended meanwhile",
                )
            ]
        )
    return _of_gpu_operator(step, fleet, changed)


def is_gpu_operator(inputs: Mapping[str, Any]) -> bool:
    """Whether a release is NVIDIA's GPU Operator, by its chart."""
    return _chart(inputs) == "gpu-operator"


def _is_kuberay(inputs: Mapping[str, Any]) -> bool:
    return _chart(inputs) == "kuberay-operator"


def _chart(inputs: Mapping[str, Any]) -> str:
    """The chart's name, whether it is given by name, as an OCI reference or as a folder."""
    return str(inputs.get("chart") or "").rstrip("/").rsplit("/", 1)[-1]


def _served(fleet: PlannedFleet) -> list[str]:
    """The pools that the GPU Operator serves; of a cluster that another made, those on which somebody has GPUs."""
    if not fleet.before:
        on = [usages for each in fleet.occupants for usages in each.on.items()]
        return sorted({pool for pool, usage in on if usage.gpus})
    return [name for name, pool in fleet.before.items() if pool.by_operator]


def _gone(step: Step, fleet: PlannedFleet, *, gpu_operator: bool) -> Effect:
    again = ", then installed anew" if step.operation == "replace" else ""
    if gpu_operator:
        sitting = sitting_on(fleet, _served(fleet))
        text = f"the GPU Operator is removed{again}: its nodes offer no GPUs, and lose a driver that it installed"
        return Effect(Level.DESTROYS, text, sitting)
    if step.old and _is_kuberay(step.old.inputs):
        text = f"the KubeRay operator is removed{again}: RayClusters keep running, and nobody makes, mends or ends their pods"
        return Effect(Level.DESTROYS, text)
    return Effect(Level.DESTROYS, f"release {step.name} is removed{again}, with everything that it installed")


def _of_gpu_operator(step: Step, fleet: PlannedFleet, changed: list[str]) -> list[Effect]:
    effects = []
    old, new = (state.inputs if state else {} for state in (step.old, step.new))
    served = _served(fleet)
    own_driver = bool(((new.get("values") or {}).get("driver") or {}).get("enabled"))
    driver = any(below(path, "values.driver") for path in changed)
    chart = any(below(path, prefix) for path in changed for prefix in ("version", "chart"))
    if driver or (chart and own_driver):
        sitting = sitting_on(fleet, served)
        why = "the driver changes" if driver else "another version of the GPU Operator brings its own driver"
        text = f"{why}: the GPU Operator evicts the GPU pods of one node after the other and reloads it"
        effects.append(Effect(where_somebody_works(fleet, sitting), text, sitting))
    if any(below(path, _CONFIG) for path in changed):
        effects += _of_configs(_plugin_configs(old), _plugin_configs(new), fleet)
    rest = [path for path in changed if not below(path, "values.driver") and not below(path, _CONFIG)]
    if rest:
        what = "another version of the GPU Operator" if chart else "other settings of the GPU Operator"
        text = f"{what}: its daemons restart on every node that it serves; {KEEPS}"
        effects.append(Effect(Level.DISTURBS, text, sitting_on(fleet, served)))
    return effects


def _plugin_configs(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    plugin = (inputs.get("values") or {}).get("devicePlugin") or {}
    return dict((plugin.get("config") or {}).get("data") or {})


def _of_configs(old: Mapping[str, Any], new: Mapping[str, Any], fleet: PlannedFleet) -> list[Effect]:
    """Pools whose nodes read another config than before."""
    effects = []
    for name in (name for name in _served(fleet) if name in fleet.before):
        key = fleet.before[name].labels.get(CONFIG_LABEL, WHOLE_KEY)
        if key in old and old[key] != new.get(key):
            text = f"pool {name}: sharing profile {key!r} changes; the device plugin restarts on its nodes; {KEEPS}"
            effects.append(Effect(Level.DISTURBS, text, sitting_on(fleet, [name])))
    if not effects:
        # The ConfigMap has another name, for the sake of a pool that is new or goes; nobody reads anything else in it.
        text = f"the device plugins read another ConfigMap and restart; {KEEPS}"
        effects.append(Effect(Level.DISTURBS, text, sitting_on(fleet, _served(fleet))))
    return effects
