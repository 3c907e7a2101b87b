"""Pod that submits a job to Ray: small, with the image and nodes of the job's head."""

from berth.components.core.manifest import Manifest, manifest_of
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
    container = head["containers"][0]
    return manifest_of(
        __file__,
        "submitter",
        labels=labels,
        name=SUBMITTER,
        image=container["image"],
        pull_policy=container.get("imagePullPolicy"),
        restricted=dict(RESTRICTED_CONTAINER),
        **{field: head.get(field) or None for field in _COPIED},
    )
