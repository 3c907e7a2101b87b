"""Job that runs NVIDIA's sample vectorAdd on one GPU."""

from __future__ import annotations

from pathlib import Path

from berth.components.core import fast_yaml
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

# Longer than berth waits, so that it still finds the pod and can say why that did not end.
_GRACE_SECONDS = 120
# The cluster cleans up after a run that was killed.
_KEPT_SECONDS = 600
# GKE's limit for the name of a pool
# (https://cloud.google.com/kubernetes-engine/docs/reference/rest); with it a Job's name just keeps
# Kubernetes' 63.
_POOL_NAME = 40


def namespace_manifest(run: str) -> Manifest:
    """Return the Jobs' namespace, in which pods with needless rights are refused."""
    labels = {**MANAGED_BY, RUN_LABEL: run, "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def job_name(pool: str, run: str, what: str = CONTAINER) -> str:
    """Return the name of a Job, unique by run and pool."""
    return f"{what}-{pool[:_POOL_NAME].rstrip('-')}-{run}"


def job_manifest(pool: Pool, image: str, resource: str, run: str, seconds: int, *, keep: bool) -> Manifest:
    """Return a Job that requests one GPU of a pool, or one share, and runs the sample once.

    Args:
        pool: a pool with GPUs.
        image: image with the sample.
        resource: the pool's resource name for GPUs.
        run: the run's id.
        seconds: how long berth waits for the Job.
        keep: whether the Job stays when it has ended.
    """
    labels = {**MANAGED_BY, RUN_LABEL: run}
    # Extended resources cannot be overcommitted; limits equal to requests keep the others from it
    # too.
    resources = {"cpu": "250m", "memory": "1Gi", resource: "1"}
    job: Manifest = fast_yaml.read(Path(__file__).with_name("cuda-vector-add.yaml"))
    job["metadata"] = {"name": job_name(pool.name, run), "namespace": NAMESPACE, "labels": labels}
    job["spec"]["activeDeadlineSeconds"] = seconds + _GRACE_SECONDS
    if not keep:
        job["spec"]["ttlSecondsAfterFinished"] = _KEPT_SECONDS
    template = job["spec"]["template"]
    template["metadata"] = {"labels": labels}
    template["spec"] |= {"nodeSelector": {POOL_LABEL: pool.name}, "tolerations": tolerations(pool.settings)}
    template["spec"]["containers"][0] |= {
        "image": image,
        "resources": {"limits": resources, "requests": dict(resources)},
    }
    return job
