"""Effects of an update of the GPU Operator's release: on drivers, device plugins and other daemons.

Sources: docs.nvidia.com/datacenter/cloud-native/gpu-operator, "Upgrading the NVIDIA GPU Operator"
and "GPU Driver Upgrades" (the driver of a node is reloaded once its GPU pods are evicted),
"Time-Slicing GPUs in Kubernetes" (the device plugin restarts for another config, running pods keep
what they have), "GPU Operator with MIG".
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from berth.components.hardware.names import CONFIG_LABEL, WHOLE_KEY
from berth.components.operators.parts import Values
from berth.components.plan.effect import Effect, Level, sitting_on, where_somebody_works
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.paths import below
from berth.components.plan.plan import Step
from berth.components.sharing import KEEPS, config_changes

_CONFIG = "values.devicePlugin.config"
_DRIVER = "values.driver"


def update_effects(
    step: Step, fleet: PlannedFleet, changed: Sequence[str], served: Sequence[str]
) -> list[Effect]:
    """Return the effects of an update.

    Args:
        step: update of the release.
        fleet: pools and RayClusters of the plan.
        changed: paths of the inputs that change.
        served: names of the pools that the operator serves.
    """
    return [
        *_effects_on_drivers(step, fleet, changed, served),
        *_effects_on_device_plugins(step, fleet, changed, served),
        *_effects_on_other_daemons(fleet, changed, served),
    ]


def plugin_config(values: Values) -> Mapping[str, Any]:
    """Return the device plugin's config in Helm values."""
    return dict((values.get("devicePlugin") or {}).get("config") or {})


def _effects_on_drivers(
    step: Step, fleet: PlannedFleet, changed: Sequence[str], served: Sequence[str]
) -> Iterator[Effect]:
    """Yield the reload of the driver, which the operator may have installed."""
    driver = (step.after.get("values") or {}).get("driver") or {}
    if any(below(path, _DRIVER) for path in changed):
        why = "the driver changes"
    elif _is_other_version(changed) and driver.get("enabled"):
        why = "another version of the GPU Operator brings its own driver"
    else:
        return
    text = f"{why}: the GPU Operator evicts the GPU pods of one node after the other and reloads it"
    sitting = sitting_on(fleet, served)
    yield Effect(where_somebody_works(fleet, sitting), text, sitting)


def _effects_on_device_plugins(
    step: Step, fleet: PlannedFleet, changed: Sequence[str], served: Sequence[str]
) -> Iterator[Effect]:
    """Yield the effects on pools whose nodes read another config than before."""
    if not any(below(path, _CONFIG) for path in changed):
        return
    old = plugin_config(step.before.get("values") or {})
    new = plugin_config(step.after.get("values") or {})
    keys = {
        name: pool.labels.get(CONFIG_LABEL, WHOLE_KEY)
        for name, pool in fleet.before.items()
        if name in served
    }
    texts = config_changes(old, new, keys)
    for name, text in texts.items():
        yield Effect(Level.DISTURBS, text, sitting_on(fleet, [name]))
    if not texts:
        # The ConfigMap has another name because of a pool that is new or goes; no node reads
        # anything else in it.
        text = f"the device plugins read another ConfigMap and restart; {KEEPS}"
        yield Effect(Level.DISTURBS, text, sitting_on(fleet, served))


def _effects_on_other_daemons(
    fleet: PlannedFleet, changed: Sequence[str], served: Sequence[str]
) -> Iterator[Effect]:
    others = [path for path in changed if not below(path, _DRIVER) and not below(path, _CONFIG)]
    if not others:
        return
    what = "another version" if _is_other_version(changed) else "other settings"
    text = f"{what} of the GPU Operator: its daemons restart on every node that it serves; {KEEPS}"
    yield Effect(Level.DISTURBS, text, sitting_on(fleet, served))


def _is_other_version(changed: Sequence[str]) -> bool:
    return any(below(path, "version") or below(path, "chart") for path in changed)
