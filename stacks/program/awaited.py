"""Resources that an update waits for, without Pulumi's SDK."""

from berth.components.berth import BerthInputs
from berth.components.ray import JobWait
from berth.components.ray import Wait as Goal
from berth.components.ray.live import Awaited, AwaitedKind


def awaited_of(inputs: BerthInputs) -> list[Awaited]:
    """Return the resources of a berth that an update waits for."""
    if inputs.part == "isolation":
        return []
    manifests = inputs.manifests
    goals: list[tuple[AwaitedKind, Goal | JobWait, str]] = [
        (inputs.workload.main_kind, inputs.workload.wait, manifests.main["metadata"]["name"]),
        *(
            ("RayJob", job.wait, manifests.jobs[job.name]["metadata"]["name"])
            for job in inputs.jobs
        ),
    ]
    namespace = manifests.namespace["metadata"]["name"]
    return [
        Awaited(kind, wait.until, (namespace, name), wait.timeout)
        for kind, wait, name in goals
        if wait.until != "submitted"
    ]
