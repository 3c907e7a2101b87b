"""Job that runs NVIDIA's sample vectorAdd on one GPU."""

from berth.components.core.manifest import MANAGED_BY, Manifest, manifest_of
from berth.components.gke import tolerations
from berth.components.hardware.names import POOL_LABEL
from berth.components.proof.checks import RUN_LABEL
from berth.components.sharing import Pool

NAMESPACE = "berth-verify"
"""Namespace of the Jobs, created by the first run that needs it."""

SUCCESS = "Test PASSED"
"""Line of the sample once it has compared the sums with its own."""

CONTAINER = "cuda-vector-add"

_GRACE_SECONDS = 120
_KEPT_SECONDS = 600
# GKE's limit for the name of a pool
# (https://cloud.google.com/kubernetes-engine/docs/reference/rest); with it a Job's name just keeps
# Kubernetes' 63.
_POOL_NAME = 40


def namespace_manifest(run: str) -> Manifest:
    """Return the Jobs' namespace, in which pods with needless rights are refused."""
    labels = {**MANAGED_BY, RUN_LABEL: run, "pod-security.kubernetes.io/enforce": "restricted"}
    return manifest_of(__file__, "namespace", name=NAMESPACE, labels=labels)


def job_name(pool: str, run: str, what: str = CONTAINER) -> str:
    """Return the name of a Job, unique by run and pool."""
    return f"{what}-{pool[:_POOL_NAME].rstrip('-')}-{run}"


def job_manifest(
    pool: Pool, image: str, resource: str, run: str, seconds: int, *, keep: bool
) -> Manifest:
    """Return a Job that requests one GPU of a pool, or one share, and runs the sample once."""
    resources = {"cpu": "250m", "memory": "1Gi", resource: "1"}
    return manifest_of(
        __file__,
        "cuda_vector_add",
        name=job_name(pool.name, run),
        namespace=NAMESPACE,
        labels={**MANAGED_BY, RUN_LABEL: run},
        deadline=seconds + _GRACE_SECONDS,
        kept=None if keep else _KEPT_SECONDS,
        node_selector={POOL_LABEL: pool.name},
        tolerations=tolerations(pool.settings),
        image=image,
        limits=resources,
        requests=dict(resources),
    )
