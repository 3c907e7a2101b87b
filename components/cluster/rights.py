"""Rights of the user of a connection, as the API server answers."""

from berth.components.cluster.api import ClusterApi

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

Right = tuple[str, str, str]
"""Verb, API group and resource: `create`, `batch`, `cronjobs`."""


def has_right(api: ClusterApi, right: Right, namespace: str = "") -> bool:
    """Return whether the user of a connection has a right, in a namespace or in all."""
    verb, group, resource = right
    resource, _, part = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": part,
        "namespace": namespace,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                key: value for key, value in attributes.items() if value or key == "group"
            }
        },
    }
    return bool((api.create(_REVIEWS, review).get("status") or {}).get("allowed"))
