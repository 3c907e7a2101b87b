"""The pod that submits a RayJob: pure. KubeRay's own default is refused by Pod Security `restricted`, and by the berths' quotas."""

from __future__ import annotations

from typing import Any

from berth.components.core.manifest import Manifest
from berth.components.isolation import RESTRICTED_CONTAINER

SUBMITTER = "ray-job-submitter"
"""The container whose log is the job's output."""

_ALIKE = ("nodeSelector", "tolerations", "affinity", "imagePullSecrets", "priorityClassName", "securityContext")


def submitter_pod(head: dict[str, Any], labels: dict[str, str]) -> Manifest:
    """The template of a small pod beside a head: of the same image, on the same nodes, without a GPU.

    Args:
        head: the spec of the head's pod.
        labels: labels of the pod.
    """
    container = head["containers"][0]
    spec = {
        **{key: head[key] for key in _ALIKE if head.get(key)},
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [
            {
                "name": SUBMITTER,
                "image": container["image"],
                **({"imagePullPolicy": container["imagePullPolicy"]} if "imagePullPolicy" in container else {}),
                # Where it is unset NVIDIA's runtime takes it for "all".
                "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi"},
                    "requests": {"cpu": "100m", "memory": "256Mi"},
                },
                "securityContext": dict(RESTRICTED_CONTAINER),
            }
        ],
    }
    return {"metadata": {"labels": labels}, "spec": spec}
