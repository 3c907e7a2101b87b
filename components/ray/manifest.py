"""Manifests of a RayCluster: pure functions of its settings and its pools."""

import json

from berth.components.core.bounds import WorkerBounds
from berth.components.core.manifest import Manifest, unawaited
from berth.components.ray.complete_settings import RayClusterSettings, WorkerGroup
from berth.components.ray.pods import head_template, worker_template
from berth.components.ray.settings import AutoscalerShape, GcsFaultTolerance
from berth.components.ray.variables import entry_of
from berth.components.sharing import Pool, Pools

INTERNAL_LOAD_BALANCER = {"networking.gke.io/load-balancer-type": "Internal"}
"""GKE's annotation of a Service whose load balancer has an address of the VPC; without it the
address is public
(https://docs.cloud.google.com/kubernetes-engine/docs/concepts/service-load-balancer-parameters)."""

# KubeRay 1.6's names (kuberay v1.6.2, ray-operator/apis/ray/v1/raycluster_types.go).
_AUTH_MODES = {"token": "token", "none": "disabled"}


def ray_cluster(
    settings: RayClusterSettings, pools: Pools, namespace: str, labels: dict[str, str]
) -> Manifest:
    """Return a RayCluster of one head and groups of workers.

    The templates of the workers' claims (components/fabric/claims.py) must exist before the
    RayCluster.
    """
    head_pool = pools[settings.head.pool]
    spec: Manifest = {
        "rayVersion": settings.ray_version,
        # Without the mode KubeRay creates the token's Secret and does not use it.
        "authOptions": {"mode": _AUTH_MODES[settings.auth]},
        # An edit of the pods' template reaches the running pods; by default KubeRay would ignore
        # it.
        "upgradeStrategy": {"type": "Recreate"},
        "headGroupSpec": {
            "rayStartParams": _head_parameters(settings, head_pool),
            "template": head_template(settings, head_pool, labels),
        },
        "workerGroupSpecs": [
            _group(settings, group, pools[group.pool], labels) for group in settings.groups
        ],
    }
    if settings.autoscaled:
        spec["enableInTreeAutoscaling"] = True
        spec["autoscalerOptions"] = _autoscaler_options(settings)
    if settings.gcs_fault_tolerance:
        spec["gcsFaultToleranceOptions"] = _fault_tolerance(settings.gcs_fault_tolerance)
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": settings.name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


def dashboard_service(
    settings: RayClusterSettings, namespace: str, labels: dict[str, str]
) -> Manifest | None:
    """Return the load balancer of a head; None if the dashboard is private.

    KubeRay never changes the Service that it creates for the head (kuberay v1.6.2,
    reconcileHeadService), so a `serviceType` that is changed back would leave the load balancer in
    place. The port of Ray's control store (6379) stays inside the cluster.
    """
    if settings.dashboard == "private":
        return None
    metadata: Manifest = {
        "name": f"{settings.name}-dashboard",
        "namespace": namespace,
        "labels": labels,
    }
    if settings.dashboard == "internal":
        metadata["annotations"] = INTERNAL_LOAD_BALANCER
    spec = {
        "type": "LoadBalancer",
        # A client keeps its address, which the NetworkPolicy names: by another node it would have
        # that node's, and Dataplane V2 takes nodes for no address at all.
        "externalTrafficPolicy": "Local",
        "selector": {"ray.io/cluster": settings.name, "ray.io/node-type": "head"},
        "ports": [
            {"name": "dashboard", "port": 8265, "targetPort": 8265},
            {"name": "client", "port": 10001, "targetPort": 10001},
        ],
    }
    # The Service has endpoints once the head runs; a stack waits for the RayCluster instead.
    return unawaited({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


def _group(
    settings: RayClusterSettings, group: WorkerGroup, pool: Pool, labels: dict[str, str]
) -> Manifest:
    spec: Manifest = {
        "groupName": group.name,
        **_replicas(group),
        "rayStartParams": _worker_parameters(group, pool),
        "template": worker_template(settings, group, pool, labels),
    }
    idle_timeout = _idle_timeout_seconds(group)
    if group.is_named and idle_timeout is not None:
        spec["idleTimeoutSeconds"] = idle_timeout
    if group.labels:
        spec["labels"] = group.labels
    return spec


def _fault_tolerance(settings: GcsFaultTolerance) -> Manifest:
    """Return KubeRay's options for a control store in Redis."""
    options: Manifest = {"redisAddress": settings.redis}
    if settings.password:
        options["redisPassword"] = entry_of(settings.password)
    if settings.storage_namespace:
        options["externalStorageNamespace"] = settings.storage_namespace
    return options


def _autoscaler_options(settings: RayClusterSettings) -> Manifest:
    """Return KubeRay's options for Ray's autoscaler."""
    options: Manifest = {"version": "v2"}
    # The timeout of the only group is the RayCluster's.
    (only_group, *_) = settings.groups
    idle_timeout = _idle_timeout_seconds(only_group)
    if not only_group.is_named and idle_timeout is not None:
        options["idleTimeoutSeconds"] = idle_timeout
    amounts = settings.autoscaler.model_dump()
    # KubeRay's own amounts are left out: with them every head of a berth that exists would restart.
    if amounts != AutoscalerShape().model_dump():
        options["resources"] = {"limits": amounts, "requests": amounts}
    return options


def _idle_timeout_seconds(group: WorkerGroup) -> int | None:
    """Return the idle time after which a worker goes, in seconds; None for Ray's own."""
    return group.workers.idle_timeout_seconds if isinstance(group.workers, WorkerBounds) else None


def _replicas(group: WorkerGroup) -> dict[str, int]:
    """Return a group's number of workers, and its bounds."""
    workers = group.workers
    if isinstance(workers, int):
        # With the autoscaler of another group, a maximum of 1 would let it add a worker to a group
        # of none. A RayCluster of one group has always had it.
        most = workers if group.is_named else max(workers, 1)
        return {"replicas": workers, "minReplicas": workers, "maxReplicas": most}
    bounds = {"minReplicas": workers.min, "maxReplicas": workers.max}
    # Where groups come and go, the engine cannot ignore the autoscaler's number of replicas
    # (workload.py): KubeRay takes the minimum for a number that is left out.
    if group.is_named and workers.at_start == workers.min:
        return bounds
    return {"replicas": workers.at_start, **bounds}


def _head_parameters(settings: RayClusterSettings, pool: Pool) -> dict[str, str]:
    """Return parameters of `ray start` in the head.

    They have the cores and GPUs that Ray counts, and shares of GPUs, which KubeRay would not find.
    """
    head = settings.head
    parameters = {"dashboard-host": "0.0.0.0"}  # noqa: S104 - in the pod
    if head.ray_cpus is not None:
        parameters["num-cpus"] = str(head.ray_cpus)
    if head.ray_gpus is not None:
        parameters["num-gpus"] = str(head.ray_gpus)
    elif head.gpus and pool.shared:
        parameters["num-gpus"] = str(head.gpus)
    return parameters


def _worker_parameters(worker: WorkerGroup, pool: Pool) -> dict[str, str]:
    """Return parameters of `ray start` in a worker: resources that KubeRay would not find.

    KubeRay counts resources whose name ends in `gpu`, and some MIG names (kuberay v1.6.2,
    ray-operator/controllers/ray/common/pod.go), but neither `nvidia.com/gpu.shared` nor claims. So
    the count is explicit for everything but whole GPUs that are counted.

    Custom resources are a JSON object in quotes, for the shell that runs KubeRay's command line;
    Ray's autoscaler drops the first and the last character (https://github.com/ray-project/ray,
    python/ray/autoscaler/_private/kuberay/autoscaling_config.py).
    """
    parameters: dict[str, str] = {}
    if worker.ray_gpus is not None:
        parameters["num-gpus"] = str(worker.ray_gpus)
    elif worker.gpus and (pool.shared or pool.settings.by_dra):
        parameters["num-gpus"] = str(worker.gpus)
    if worker.ray_resources:
        parameters["resources"] = f"'{json.dumps(worker.ray_resources, sort_keys=True)}'"
    return parameters
