"""Manifest of a RayService: a pure function of its settings and its RayCluster."""

import copy

import yaml

from berth.components.core.manifest import Manifest, short_hash
from berth.components.isolation import SERVE_PORT
from berth.components.ray.kuberay_form import spec_for_kuberay
from berth.components.ray.service_code import with_code, with_python_path
from berth.components.ray.service_settings import RayServiceSettings

RAY_CLUSTER_CONFIG = "spec.rayClusterConfig"
"""Path of the RayCluster's spec in a RayService."""

CLUSTER_CONFIG = "berth/cluster-config"
"""Annotation of a RayService's head with the fingerprint of the cluster's configuration."""


def ray_service(service: RayServiceSettings, cluster: Manifest) -> Manifest:
    """Return a RayService: applications of Ray Serve on a RayCluster of their own."""
    settings = service.settings
    serve_config = with_python_path(settings.serve_config, service.files)
    strategy = "NewCluster" if settings.upgrade_strategy == "NewCluster" else "None"
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": dict(cluster["metadata"]),
        "spec": {
            "serveConfigV2": yaml.safe_dump(serve_config),
            "upgradeStrategy": {"type": strategy},
            "rayClusterConfig": _cluster_config(service, cluster),
        },
    }


def with_fingerprint(service: Manifest) -> Manifest:
    """Return a complete RayService with the fingerprint of its cluster's configuration.

    KubeRay compares clusters without numbers of workers and tolerations, and would ignore an edit
    of these (kuberay v1.6.2, ray-operator/controllers/ray/rayservice_controller.go,
    isClusterSpecHashEqual).
    """
    config = copy.deepcopy(service["spec"]["rayClusterConfig"])
    metadata = config["headGroupSpec"]["template"]["metadata"]
    metadata["annotations"] = {
        **metadata.get("annotations", {}),
        CLUSTER_CONFIG: short_hash(config),
    }
    return {**service, "spec": {**service["spec"], "rayClusterConfig": config}}


def _cluster_config(service: RayServiceSettings, cluster: Manifest) -> Manifest:
    """Return the spec of a RayCluster whose pods serve requests and have the service's code."""
    config = spec_for_kuberay(cluster)
    head = config["headGroupSpec"]
    if service.cluster.workers_at_most:
        # The head restarts lost replicas, so that replicas on the head would be lost with it
        # (https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/rayservice-high-availability.html).
        head["rayStartParams"].setdefault("num-cpus", "0")
    for group in (head, *config["workerGroupSpecs"]):
        group["template"] = with_code(group["template"], service.files)
    # Without this port KubeRay creates no Service for requests if a head lists ports (kuberay
    # v1.6.2, BuildServeService).
    head["template"]["spec"]["containers"][0]["ports"].append(
        {"name": "serve", "containerPort": SERVE_PORT}
    )
    return config
