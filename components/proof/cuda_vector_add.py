"""The Job that adds two vectors on one GPU, NVIDIA's sample for it: pure."""

from __future__ import annotations

from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.gke import tolerations
from berth.components.hardware import versions
from berth.components.hardware.names import POOL_LABEL
from berth.components.sharing import Pool

NAMESPACE = "berth-verify"
"""Where the Jobs run. Made by the first run that needs it."""

RUN_LABEL = "berth/verify-run"
"""On all that a run makes: its id."""

SUCCESS = "Test PASSED"
"""What the sample prints after it has compared the sums with its own."""

CONTAINER = "cuda-vector-add"

# Longer than berth waits itself: it must still find the pod, and tell why that did not end.
_GRACE_SECONDS = 120
# A run that was killed outright can't clean up: the cluster does, then.
_KEPT_SECONDS = 600
# GKE's limit for the name of a pool (https://cloud.google.com/kubernetes-engine/docs/reference/rest); with it a Job's
# name just keeps Kubernetes' 63.
_POOL_NAME = 40
# The user of Ray's images, and not root. MPS serves one user at a time: as another one the sample would wait for every
# berth on that GPU to end (man nvidia-cuda-mps-control).
_USER = 1000


def namespace_manifest(run: str) -> Manifest:
    """The namespace of the Jobs, in which the API server refuses pods with more rights than they need.

    Args:
        run: the run that makes it.
    """
    labels = {**MANAGED_BY, RUN_LABEL: run, "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def job_name(pool: str, run: str) -> str:
    """A name that no other run and no other pool has."""
    return f"{CONTAINER}-{pool[:_POOL_NAME].rstrip('-')}-{run}"


def job_manifest(pool: Pool, resource: str, run: str, seconds: int, *, keep: bool) -> Manifest:
    """A Job that asks for one of a pool's GPUs, or shares of them, and runs the sample there once.

    Args:
        pool: the pool; it must have GPUs.
        resource: the resource name under which it offers them.
        run: the run's id.
        seconds: how long berth waits for it.
        keep: it is to stay when it has ended.
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
    # Extended resources can't be overcommitted, and with limits equal to requests the rest isn't either.
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
                    # Where GKE's device plugin mounts the driver; with the GPU Operator there is nothing.
                    {"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"},
                    # There is nowhere to keep what the driver compiles for a GPU that is newer than the image.
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
