"""Job that runs NVIDIA's sample vectorAdd on one GPU. Pure."""

from __future__ import annotations

from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.gke import tolerations
from berth.components.hardware import versions
from berth.components.hardware.names import POOL_LABEL
from berth.components.proof.checks import RUN_LABEL
from berth.components.sharing import Pool

NAMESPACE = "berth-verify"
"""Namespace of the Jobs, created by the first run that needs it."""

SUCCESS = "Test PASSED"
"""Line of the sample once it has compared the sums with its own."""

CONTAINER = "cuda-vector-add"

# Longer than berth waits, so that it still finds the pod and can say why that did not end.
_GRACE_SECONDS = 120
# The cluster cleans up after a run that was killed.
_KEPT_SECONDS = 600
# GKE's limit for the name of a pool
# (https://cloud.google.com/kubernetes-engine/docs/reference/rest); with it a Job's name just keeps
# Kubernetes' 63.
_POOL_NAME = 40
# The user of Ray's images. MPS serves one user at a time: as another user, the sample would wait
# until every berth on that GPU has ended (man nvidia-cuda-mps-control).
_USER = 1000


def namespace_manifest(run: str) -> Manifest:
    """Return the Jobs' namespace, in which pods with needless rights are refused."""
    labels = {**MANAGED_BY, RUN_LABEL: run, "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def job_name(pool: str, run: str) -> str:
    """Return the name of a Job, unique by run and pool."""
    return f"{CONTAINER}-{pool[:_POOL_NAME].rstrip('-')}-{run}"


def job_manifest(pool: Pool, resource: str, run: str, seconds: int, *, keep: bool) -> Manifest:
    """Return a Job that requests one GPU of a pool, or one share, and runs the sample once.

    Args:
        pool: a pool with GPUs.
        resource: the pool's resource name for GPUs.
        run: the run's id.
        seconds: how long berth waits for the Job.
        keep: whether the Job stays when it has ended.
    """
    labels = {**MANAGED_BY, RUN_LABEL: run}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(pool.name, run), "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": seconds + _GRACE_SECONDS,
            **({} if keep else {"ttlSecondsAfterFinished": _KEPT_SECONDS}),
            "template": {"metadata": {"labels": labels}, "spec": _pod(pool, resource)},
        },
    }


def _pod(pool: Pool, resource: str) -> dict[str, Any]:
    # Extended resources cannot be overcommitted; limits equal to requests keep the others from it
    # too.
    resources = {"cpu": "250m", "memory": "1Gi", resource: "1"}
    return {
        "restartPolicy": "Never",
        "nodeSelector": {POOL_LABEL: pool.name},
        "tolerations": tolerations(pool.settings),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": CONTAINER,
                "image": versions.CUDA_SAMPLE_IMAGE,
                "env": [
                    # GKE's device plugin mounts the driver there; the GPU Operator mounts nothing
                    # there.
                    {"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"},
                    # The driver cannot store what it compiles for a GPU that is newer than the
                    # image.
                    {"name": "CUDA_CACHE_DISABLE", "value": "1"},
                ],
                "resources": {"limits": resources, "requests": dict(resources)},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }
