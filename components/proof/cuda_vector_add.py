"""Job that runs NVIDIA's sample vectorAdd on one GPU."""

from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.gke import tolerations
from berth.components.hardware.names import POOL_LABEL
from berth.components.proof.checks import RUN_LABEL
from berth.components.sharing import Pool

NAMESPACE = "berth-verify"
"""Namespace of the Jobs, created by the first run that needs it."""

SUCCESS = "Test PASSED"
"""Line of the sample once it has compared the sums with its own."""

CONTAINER = "cuda-vector-add"

_RAY_USER = 1000
"""User of Ray's images. MPS serves one user at a time: as another user, the sample would wait until
every berth on that GPU has ended (man nvidia-cuda-mps-control)."""

_GRACE_SECONDS = 120
"""Longer than berth waits, so that it still finds the pod and can say why that did not end."""

_KEPT_SECONDS = 600
"""Time after which the cluster cleans up after a run that was killed."""

# GKE's limit for the name of a pool
# (https://cloud.google.com/kubernetes-engine/docs/reference/rest); with it a Job's name just keeps
# Kubernetes' 63.
_POOL_NAME = 40


def namespace_manifest(run: str) -> Manifest:
    """Return the Jobs' namespace, in which pods with needless rights are refused."""
    labels = {**MANAGED_BY, RUN_LABEL: run, "pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": NAMESPACE, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def job_name(pool: str, run: str, what: str = CONTAINER) -> str:
    """Return the name of a Job, unique by run and pool."""
    return f"{what}-{pool[:_POOL_NAME].rstrip('-')}-{run}"


def job_manifest(
    pool: Pool, image: str, resource: str, run: str, seconds: int, *, keep: bool
) -> Manifest:
    """Return a Job that requests one GPU of a pool, or one share, and runs the sample once.

    Args:
        pool: pool whose nodes the Job runs on.
        image: image of the sample.
        resource: name under which the pool's nodes offer GPUs.
        run: id of the run.
        seconds: how long berth waits for the Job.
        keep: whether the Job stays after its end.
    """
    labels = {**MANAGED_BY, RUN_LABEL: run}
    spec: dict[str, Any] = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": seconds + _GRACE_SECONDS,
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "nodeSelector": {POOL_LABEL: pool.name},
                "tolerations": tolerations(pool.settings),
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": _RAY_USER,
                    "runAsGroup": _RAY_USER,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [_container(image, resource)],
            },
        },
    }
    if not keep:
        spec["ttlSecondsAfterFinished"] = _KEPT_SECONDS
    metadata = {"name": job_name(pool.name, run), "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _container(image: str, resource: str) -> Manifest:
    resources = {"cpu": "250m", "memory": "1Gi", resource: "1"}
    return {
        "name": CONTAINER,
        "image": image,
        # Extended resources cannot be overcommitted; limits equal to requests keep the others from
        # it too.
        "resources": {"limits": resources, "requests": dict(resources)},
        "env": [
            # GKE's device plugin mounts the driver there; the GPU Operator mounts nothing there.
            {"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"},
            # The driver cannot store what it compiles for a GPU that is newer than the image.
            {"name": "CUDA_CACHE_DISABLE", "value": "1"},
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
