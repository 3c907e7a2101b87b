"""Mark on a cluster: an update of a stack runs without checkpoints of its state.

A mark that outlives its update means that the update was killed, and that the state may lack what
the update did. Only then does berth compare the state with the cluster, and look for berths that
nobody knows.
"""

from __future__ import annotations

import hashlib
import json

from berth.components.cluster.api import ClusterApi
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.core.owner import ENVIRONMENT_LABEL, STACK_LABEL

_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_MANAGER = "berth-update"


def unrecorded_warning(stack: str) -> str:
    """Return the warning of an update that finds the mark of an earlier one."""
    return (
        f"an update of stack {stack} was killed, or still runs: Pulumi's state may lack what it did;"
        f" `berth up -s {stack}` compares the state with the cluster, and removes what is left over"
    )


def mark(api: ClusterApi, stack: str, environment: str) -> None:
    """Put the mark of a stack on the cluster.

    Raises:
        ClusterError: the request fails.
    """
    api.apply(_path(stack), json.dumps(_manifest(stack, environment)), _MANAGER)


def is_marked(api: ClusterApi, stack: str) -> bool:
    """Return whether the cluster has the mark of a stack.

    Raises:
        ClusterError: the request fails.
    """
    return api.get(_path(stack)) is not None


def unmark(api: ClusterApi, stack: str) -> None:
    """Take the mark of a stack off the cluster, where there is one.

    Raises:
        ClusterError: the request fails.
    """
    if found := api.get(_path(stack)):
        api.delete(_path(stack), found["metadata"]["uid"])


def _path(stack: str) -> str:
    return f"{_CONFIG_MAPS}/{_name(stack)}"


def _name(stack: str) -> str:
    """Return the name of the mark: stacks may have names that Kubernetes refuses."""
    return f"berth-update-{hashlib.sha256(stack.encode()).hexdigest()[:12]}"


def _manifest(stack: str, environment: str) -> Manifest:
    labels = {**MANAGED_BY, ENVIRONMENT_LABEL: environment, STACK_LABEL: stack}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _name(stack), "labels": labels},
        "data": {"meaning": f"an update of stack {stack} runs, or was killed before its state was written"},
    }
