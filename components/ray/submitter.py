"""Pod that submits a job to Ray: small, with the image and nodes of the job's head."""

from berth.components.core.manifest import Manifest
from berth.components.hardware.names import VISIBLE_DEVICES
from berth.components.isolation import RESTRICTED_CONTAINER

SUBMITTER = "ray-job-submitter"
"""Container whose log is the job's output."""

_COPIED = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "imagePullSecrets",
    "priorityClassName",
    "securityContext",
)
"""Fields of a head's pod that the submitter has too."""


def submitter_pod(head: Manifest, labels: dict[str, str]) -> Manifest:
    """Return the template of a small pod with the image and nodes of a head, without a GPU.

    A berth's Pod Security and quotas refuse KubeRay's default.

    Args:
        head: spec of the head's pod.
        labels: labels of the job's objects.
    """
    ray_container = head["containers"][0]
    container: Manifest = {
        "name": SUBMITTER,
        "image": ray_container["image"],
        # NVIDIA's runtime reads a missing value as "all".
        "env": [{"name": VISIBLE_DEVICES, "value": "void"}],
        "resources": {
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "100m", "memory": "256Mi"},
        },
        "securityContext": dict(RESTRICTED_CONTAINER),
    }
    if ray_container.get("imagePullPolicy"):
        container["imagePullPolicy"] = ray_container["imagePullPolicy"]
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [container],
    }
    for field in _COPIED:
        if head.get(field):
            spec[field] = head[field]
    return {"metadata": {"labels": labels}, "spec": spec}
