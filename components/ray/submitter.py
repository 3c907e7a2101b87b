"""Pod that submits a RayJob; a berth's Pod Security and quotas refuse KubeRay's default."""

from typing import Any

from berth.components.core.manifest import Manifest, manifest_of
from berth.components.isolation import RESTRICTED_CONTAINER

SUBMITTER = "ray-job-submitter"
"""Container whose log is the job's output."""

_COPIED = ("nodeSelector", "tolerations", "affinity", "imagePullSecrets", "priorityClassName", "securityContext")


def submitter_pod(head: dict[str, Any], labels: dict[str, str]) -> Manifest:
    """Return the template of a small pod with the image and nodes of a head, without a GPU."""
    container = head["containers"][0]
    copied = {key: head.get(key) or None for key in _COPIED}
    image, policy = container["image"], container.get("imagePullPolicy")
    own = {"name": SUBMITTER, "image": image, "pull_policy": policy, "restricted": dict(RESTRICTED_CONTAINER)}
    return manifest_of(__file__, "submitter", labels=labels, **copied, **own)
