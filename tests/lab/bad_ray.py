"""RayClusters, RayJobs and RayServices that an engineer must not write, as changes of good ones."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tests.lab.bad_pods import OBJECTS, over

Object = dict[str, Any]

POOL = "cloud.google.com/gke-nodepool"
OTHER_POOL = "gold"
"""A pool that the berth's settings do not use."""


BAD_CLUSTERS: dict[str, tuple[str, Object]] = OBJECTS["clusters"]
GOOD_CLUSTERS: dict[str, Object] = OBJECTS["good clusters"]


def ray_objects(cluster: Object, name: str, change: Mapping[str, Any]) -> dict[str, Object]:
    """A RayJob, a RayService and a RayCronJob with a changed spec of a RayCluster, by kind."""
    spec = complete(over(copy.deepcopy(cluster["spec"]), change))
    job = {"entrypoint": "true", "submissionMode": "HTTPMode", "rayClusterSpec": spec}
    specs: dict[str, Object] = {
        "RayJob": job,
        "RayService": {"serveConfigV2": "applications: []", "rayClusterConfig": spec},
        "RayCronJob": {"schedule": "0 * * * *", "jobTemplate": job},
    }
    return {
        kind: {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": f"{name}-{kind.lower()}"}, "spec": of_kind}
        for kind, of_kind in specs.items()
    }


def complete(spec: Object) -> Object:
    """A spec whose further groups have what the API requires of the first one."""
    first, *further = spec["workerGroupSpecs"]
    return {**spec, "workerGroupSpecs": [first, *(over(copy.deepcopy(first), group) for group in further)]}
