"""Taints of nodes, and the tolerations of pods for them. Pure."""

from collections.abc import Iterable, Mapping

from berth.components.cluster.api import Object


def untolerated(taints: Iterable[Mapping[str, str]], tolerations: Iterable[Object]) -> Mapping[str, str] | None:
    """Return the first taint that keeps a pod with these tolerations off a node, if any."""
    known = list(tolerations)
    for taint in taints:
        if taint.get("effect") != "PreferNoSchedule" and not any(_tolerates(entry, taint) for entry in known):
            return taint
    return None


def _tolerates(toleration: Object, taint: Mapping[str, str]) -> bool:
    return (
        toleration.get("effect") in (None, "", taint.get("effect"))
        and toleration.get("key") in (None, "", taint["key"])
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == (taint.get("value") or ""))
    )
