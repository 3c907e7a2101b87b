"""Pod that submits a RayJob; a berth's Pod Security and quotas refuse KubeRay's default."""

from __future__ import annotations

from typing import Any

from berth.components.core.manifest import Manifest
from berth.components.hardware.names import VISIBLE_DEVICES
from berth.components.isolation import RESTRICTED_CONTAINER

SUBMITTER = "ray-job-submitter"
"""Container whose log is the job's output."""

_COPIED = ("nodeSelector", "tolerations", "affinity", "imagePullSecrets", "priorityClassName", "securityContext")


def submitter_pod(head: dict[str, Any], labels: dict[str, str]) -> Manifest:
    """Return the template of a small pod with the image and nodes of a head, without a GPU."""
    container = head["containers"][0]
    spec = {
        **{key: head[key] for key in _COPIED if head.get(key)},
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [
            {
                "name": SUBMITTER,
                "image": container["image"],
                **({"imagePullPolicy": container["imagePullPolicy"]} if "imagePullPolicy" in container else {}),
                # NVIDIA's runtime reads a missing value as "all".
                "env": [{"name": VISIBLE_DEVICES, "value": "void"}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
                "securityContext": dict(RESTRICTED_CONTAINER),
            }
        ],
    }
    return {"metadata": {"labels": labels}, "spec": spec}
