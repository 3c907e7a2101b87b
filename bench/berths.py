"""Berths without pods, whose number costs little: RayClusters that KubeRay leaves alone.

`managedBy` names another controller, which Kueue's MultiKueue has it for, so that whoever made them
writes their status. They stand for berths where only the number counts: for lists and for waiting.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from berth.components.cluster.api import NAMESPACES, RAY_CLUSTERS, ClusterApi, in_namespace
from berth.components.cluster.object_fields import ObjectKey
from berth.components.core.owner import ENVIRONMENT_LABEL, OWNER_LABELS, STACK_LABEL
from berth.components.hardware.names import POOL_LABEL
from berth.components.programs.keeper import CLOSING

_AT_ONCE = 8

_POD = {
    "spec": {"nodeSelector": {POOL_LABEL: "cpu"}, "containers": [{"name": "ray", "image": "ray"}]}
}
_WORKER = {
    "groupName": "workers",
    "replicas": 1,
    "minReplicas": 1,
    "maxReplicas": 1,
    "rayStartParams": {},
}
_SHORT = {
    "headGroupSpec": {"rayStartParams": {}, "template": _POD},
    "workerGroupSpecs": [{**_WORKER, "template": _POD}],
}


class Berths:
    """Berths of engineers that no update has created.

    Attributes:
        api: the cluster.
        keys: namespaces and names of the RayClusters.
    """

    def __init__(
        self,
        api: ClusterApi,
        environment: str,
        stack: str,
        count: int,
        spec: dict[str, Any] | None = None,
    ) -> None:
        """Create them: engineers STACK-0, STACK-1 and so on of a stack.

        Args:
            api: the cluster.
            environment: name of the environment.
            stack: name of the stack.
            count: number of berths.
            spec: spec of a live RayCluster, for objects of its size; None for a short one.
        """
        self.api = api
        self._spec = spec or _SHORT
        self.keys: Sequence[ObjectKey] = [
            (f"berth-{stack}-{number}", f"{stack}-{number}") for number in range(count)
        ]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(
                pool.map(
                    lambda key: self._create(
                        key, {ENVIRONMENT_LABEL: environment, STACK_LABEL: stack}
                    ),
                    self.keys,
                )
            )

    def _create(self, key: ObjectKey, labels: dict[str, str]) -> None:
        namespace, name = key
        labels |= {OWNER_LABELS["engineer"]: name}
        # The keeper looks after berths with an end.
        metadata = {"name": namespace, "labels": labels, "annotations": {"berth/expires": "30d"}}
        self.api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": CLOSING, "namespace": namespace},
        }
        self.api.create(in_namespace(namespace, "/api/v1/resourcequotas"), quota)
        self.api.create(in_namespace(namespace, RAY_CLUSTERS), self._ray_cluster(key, labels))

    def _ray_cluster(self, key: ObjectKey, labels: dict[str, str]) -> dict[str, Any]:
        metadata = {"name": key[1], "namespace": key[0], "labels": labels}
        spec = self._spec | {"managedBy": "kueue.x-k8s.io/multikueue", "suspend": True}
        return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}

    def are_suspended(self) -> None:
        """Write statuses of suspended RayClusters, which are ready without pods."""
        status = {"status": {"state": "suspended", "observedGeneration": 1}}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            paths = [
                f"{in_namespace(namespace, RAY_CLUSTERS)}/{name}/status"
                for namespace, name in self.keys
            ]
            list(pool.map(lambda path: self.api.patch(path, status, "bench"), paths))
