"""Checks of the rights that an update of a stack needs in a cluster."""

from collections.abc import Iterable
from typing import Any

from berth.cli.verbs.doctor.findings import CLUSTER, DoctorFinding
from berth.cli.verbs.doctor.kubernetes.registered import WouldFailError, registered_types
from berth.components.cluster.api import ClusterApi
from berth.components.cluster.rights import Right, has_right
from berth.components.core.errors import BerthError
from berth.components.core.words import plural

_BY_CHARTS: tuple[Right, ...] = (
    ("create", "", "secrets"),
    ("create", "", "serviceaccounts"),
    ("create", "", "services"),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("create", "apps", "daemonsets"),
    ("create", "apps", "deployments"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    ("create", "rbac.authorization.k8s.io", "clusterroles"),
    ("create", "rbac.authorization.k8s.io", "rolebindings"),
    ("create", "rbac.authorization.k8s.io", "roles"),
)
"""Rights that Helm needs for the operators' charts and for its own records."""

_TO_WAIT: tuple[Right, ...] = (
    ("list", "", "events"),
    ("list", "", "nodes"),
    ("list", "", "pods"),
    ("watch", "ray.io", "rayclusters"),
)
"""Rights to wait until RayClusters are ready, and to tell why one is not."""


def rights_for(types: Iterable[str]) -> list[Right]:
    """Return the rights that an update needs on a cluster.

    Args:
        types: Pulumi's types of the objects that it creates, such as
            `kubernetes:batch/v1:CronJob`.
    """
    rights = set(_TO_WAIT)
    for registered in types:
        _, group_version, kind = registered.split(":")
        group = group_version.partition("/")[0]
        if group == "helm.sh":
            rights.update(_BY_CHARTS)
        else:
            rights.add(("create", "" if group == "core" else group, plural(kind.lower())))
    return sorted(rights)


def check_rights(
    api: ClusterApi, stack: str, outputs: dict[str, Any] | None, remedy: str
) -> DoctorFinding:
    """Check the rights of an update of a stack.

    Args:
        api: the stack's cluster.
        stack: name of the stack.
        outputs: outputs of the environment's stack, for an engineer's own stack.
        remedy: who or what gives the rights.
    """
    try:
        rights = rights_for(registered_types(stack, outputs))
    except WouldFailError as error:
        return CLUSTER.missing(str(error), "")
    except BerthError as error:
        return CLUSTER.unchecked(f"your rights in the cluster could not be checked: {error}")
    lacking = [f"{right[0]} {right[2]}" for right in rights if not has_right(api, right)]
    if lacking:
        return CLUSTER.missing(f"in the cluster you may not {', '.join(lacking)}", remedy)
    return CLUSTER.fine("you have the rights in the cluster that an update needs")
