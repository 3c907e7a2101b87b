"""Small plans, event by event, as the engine would tell them."""

import copy
from typing import Any

from berth.components.hardware.names import POOL_LABEL
from berth.components.plan.effect import Effect
from berth.components.plan.plan import Event, plan_of
from berth.stacks.preview.report import PreviewContext, Report, report_of

Inputs = dict[str, Any]

POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"
RAY = "kubernetes:ray.io/v1:RayCluster"
RELEASE = "kubernetes:helm.sh/v3:Release"


def pool(name: str = "train", **config: Any) -> Inputs:
    """Inputs of a node pool: two A4 nodes."""
    return {
        "name": name,
        "nodeCount": 2,
        "nodeConfig": {"machineType": "a4-highgpu-8g", "labels": {}, "taints": [], **config},
    }


def ray(name: str, pool: str = "train", gpus: int = 8, workers: int = 2, **spec: Any) -> Inputs:
    """Manifest of an engineer's RayCluster whose head is on pool `cpu`."""
    template = {
        "nodeSelector": {POOL_LABEL: pool},
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}],
    }
    return {
        "metadata": {
            "name": name,
            "namespace": f"berth-{name}",
            "labels": {"berth/engineer": name, "berth/stack": "prod", "berth/environment": "prod"},
        },
        "spec": {
            "upgradeStrategy": {"type": "Recreate"},
            "headGroupSpec": {
                "template": {"spec": {"nodeSelector": {POOL_LABEL: "cpu"}, "containers": []}}
            },
            "workerGroupSpecs": [
                {"replicas": workers, "maxReplicas": workers, "template": {"spec": template}}
            ],
            **spec,
        },
    }


def edited(inputs: Inputs, **changes: Any) -> Inputs:
    """A copy with other values; a key with dots in it leads deeper."""
    new = copy.deepcopy(inputs)
    for path, value in changes.items():
        *way, last = path.split("__")
        target: Any = new
        for part in way:
            target = target[int(part)] if part.isdigit() else target[part]
        if value is None:
            target.pop(last)
        else:
            target[last] = value
    return new


def event(
    operation: str,
    of_type: str,
    name: str,
    old: Inputs | None,
    new: Inputs | None,
    old_outputs: Inputs | None = None,
    custom: bool = True,  # noqa: FBT002
    **more: Any,
) -> Event:
    """One step of the engine."""

    def state(inputs: Inputs | None, outputs: Inputs | None = None) -> dict[str, Any] | None:
        known = {"type": of_type, "custom": custom, "inputs": inputs, "outputs": outputs or {}}
        return None if inputs is None else known

    urn = f"urn:pulumi:prod::berth::{of_type}::{name}"
    step = {
        "op": operation,
        "urn": urn,
        "type": of_type,
        "old": state(old, old_outputs),
        "new": state(new),
        **more,
    }
    return {"resourcePreEvent": {"metadata": step}}


def same(of_type: str, name: str, inputs: Inputs) -> Event:
    """An unchanged resource."""
    return event("same", of_type, name, inputs, inputs)


def report(
    *events: Event, live: list[Inputs] | None = None, asked: bool = True, not_asked: str = ""
) -> Report:
    """Return the report of a plan; by default the cluster was asked, and has nothing else."""
    there = (live or []) if asked else None
    return report_of(
        plan_of(events), PreviewContext("prod", "environment", live=there, not_asked=not_asked)
    )


def effects(*events: Event, live: list[Inputs] | None = None) -> list[Effect]:
    """Return the effects of a plan."""
    return [effect for change in report(*events, live=live).changes for effect in change.effects]


def texts_of(found: list[Effect]) -> list[tuple[str, str]]:
    """Levels and texts."""
    return [(effect.level.word, effect.text) for effect in found]


def who(found: list[Effect]) -> list[list[str]]:
    """Return those who are affected, effect by effect."""
    return [[str(reached) for reached in effect.sitting] for effect in found]
