"""RayClusters, RayJobs and RayServices that an engineer must not write, as changes of good ones."""

import copy
from collections.abc import Mapping
from typing import Any

from berth.components.isolation.priority import DEVELOPMENT
from tests.lab.bad_pods import OBJECTS, over

Object = dict[str, Any]

POOL = "cloud.google.com/gke-nodepool"
OTHER_POOL = "gold"
"""A pool that the berth's settings do not use."""


BAD_CLUSTERS: dict[str, tuple[str, Object]] = OBJECTS["clusters"]
BAD_RESTRICTED: dict[str, tuple[str, Object]] = OBJECTS["restricted clusters"]
BAD_METADATA: dict[str, tuple[str, Object]] = OBJECTS["metadata"]
GOOD_CLUSTERS: dict[str, Object] = OBJECTS["good clusters"]
KINDS = {
    "clusters": ("rayjob", "rayservice", "raycronjob"),
    "jobs": ("rayjob", "raycronjob"),
    "services": ("rayservice",),
}
"""Kinds that a table's changes can be of."""
BAD: dict[str, tuple[str, str]] = {
    f"{table}-{number}": (what, words)
    for table in KINDS
    for number, (what, (words, _)) in enumerate(OBJECTS[table].items())
}
"""Table and number of a change: what it would be, and words of its refusal."""


def bad_objects(cluster: Object) -> dict[str, Object]:
    """Objects with one bad change each, by number of the change and kind."""
    found: dict[str, Object] = {}
    for name, (what, _) in BAD.items():
        table = name.partition("-")[0]
        change = OBJECTS[table][what][1]
        changed, beside = (change, {}) if table == "clusters" else ({}, ranked(change))
        objects = ray_objects(cluster, f"bad-{name}", changed, beside)
        found |= {
            item["metadata"]["name"]: item
            for kind, item in objects.items()
            if kind.lower() in KINDS[table]
        }
    return found


def ranked(beside: Object) -> Object:
    """A change of a job whose submitter, if it has one, has the PriorityClass of berths."""
    if "submitterPodTemplate" not in beside:
        return beside
    ranks = {"submitterPodTemplate": {"spec": {"priorityClassName": DEVELOPMENT}}}
    return dict(over(ranks, beside))


def ray_objects(
    cluster: Object, name: str, change: Mapping[str, Any], beside: Mapping[str, Any] | None = None
) -> dict[str, Object]:
    """A RayJob, a RayService and a RayCronJob with a changed spec of a RayCluster, by kind.

    Args:
        cluster: the RayCluster.
        name: beginning of the objects' names.
        change: change of the spec of the RayCluster.
        beside: change of the job or service around it.
    """
    spec = complete(over(copy.deepcopy(cluster["spec"]), change))
    job = over(
        {"entrypoint": "true", "submissionMode": "HTTPMode", "rayClusterSpec": spec}, beside or {}
    )
    specs: dict[str, Object] = {
        "RayJob": job,
        "RayService": over(
            {"serveConfigV2": "applications: []", "rayClusterConfig": spec}, beside or {}
        ),
        "RayCronJob": {"schedule": "0 * * * *", "jobTemplate": job},
    }
    return {
        kind: {
            "apiVersion": "ray.io/v1",
            "kind": kind,
            "metadata": {"name": f"{name}-{kind.lower()}"},
            "spec": of_kind,
        }
        for kind, of_kind in specs.items()
    }


def complete(spec: Object) -> Object:
    """A spec whose further groups have what the API requires of the first one."""
    first, *further = spec["workerGroupSpecs"]
    return {
        **spec,
        "workerGroupSpecs": [first, *(over(copy.deepcopy(first), group) for group in further)],
    }
