"""State and taints of nodes. Pure."""

from collections.abc import Iterable, Mapping

from berth.components.cluster.api import Object
from berth.components.cluster.object_fields import annotations_of, is_true


def is_ready(node: Object) -> bool:
    """Return whether a node's kubelet takes pods."""
    return is_true(node, "Ready")


def is_simulated(node: Object) -> bool:
    """Return whether KWOK plays a node, so that its containers never run."""
    return "kwok.x-k8s.io/node" in annotations_of(node)


def untolerated_taint(
    taints: Iterable[Mapping[str, str]], tolerations: Iterable[Object]
) -> Mapping[str, str] | None:
    """Return the first taint that keeps a pod with these tolerations off a node, if any."""
    of_pod = list(tolerations)
    for taint in taints:
        if taint.get("effect") == "PreferNoSchedule":
            continue
        if not any(_tolerates(toleration, taint) for toleration in of_pod):
            return taint
    return None


def _tolerates(toleration: Object, taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    same_value = toleration.get("value", "") == (taint.get("value") or "")
    return toleration.get("operator") == "Exists" or same_value
