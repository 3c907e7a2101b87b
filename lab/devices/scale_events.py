"""What GKE's autoscaler says on the pods that wait: that a pool grows for them, that it could not, or that none would help.

The texts are those of the cluster autoscaler (kubernetes/autoscaler, processors/status/eventing_scale_up_processor.go)
and of GKE's own addition for failed scale-ups.

Answers to (read): kubernetes-sigs/cluster-autoscaler at 33c3f97b,
    pkg/processors/status/eventing_scale_up_processor.go (TriggeredScaleUp, NotTriggerScaleUp) and
    pkg/core/scaleup/orchestrator/skippedreasons.go:
    https://github.com/kubernetes-sigs/cluster-autoscaler/blob/33c3f97bf2749b1385d9223f1f8856fe345011f7/pkg/processors/status/eventing_scale_up_processor.go
Answers to (believed): the text of GKE's own event FailedScaleUp, as users of GKE quote it in public; no source or
    page of Google's has it. A GKE pool without machines would settle it.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.lab.devices.autoscaler import Object, Place, fits, why_not
from berth.lab.plugins.gcp.nodes import group_name
from berth.lab.plugins.gcp.pools import Pool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berth.lab.plugins.gcp.fleet import Fleet
    from berth.lab.plugins.gcp.store import Record

# The autoscaler would say it at each look; this is as often as kubectl can show a difference.
_AGAIN_SECONDS = 60.0


@dataclass(frozen=True)
class Grown:
    """A pool that got larger.

    Attributes:
        pool: the pool.
        zone: where.
        before: nodes in that zone before.
        after: nodes in that zone now.
    """

    pool: Record
    zone: str
    before: int
    after: int


class ScaleEvents:
    """Writes the events of one lab, each once until it is old.

    Args:
        fleet: the lab's API server.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._said: dict[tuple[str, str], tuple[str, float]] = {}

    def triggered(self, pods: Iterable[Object], grown: Grown) -> None:
        """A pool grows for these pods."""
        for pod in pods:
            self._say(pod, "Normal", "TriggeredScaleUp", scale_up(grown))

    def unplaced(self, pod: Object, further: list[Place], dry: list[tuple[Place, str]]) -> None:
        """No node comes for a pod.

        Args:
            pod: the pod.
            further: what one more node would be, where there are machines.
            dry: the same where there are none, with what is short.
        """
        failed = [(place.zone, short_of) for place, short_of in dry if fits(pod, place)]
        if failed:
            self._say(pod, "Warning", "FailedScaleUp", failure(failed))
            return
        reasons = [why_not(pod, place) for place in [*further, *(place for place, _ in dry)]]
        self._say(pod, "Normal", "NotTriggerScaleUp", no_scale_up(filter(None, reasons)))

    def forget_all_but(self, pods: Iterable[Object]) -> None:
        """Pods that no longer wait are not spoken of again."""
        waiting = {str(pod["metadata"]["uid"]) for pod in pods}
        self._said = {key: said for key, said in self._said.items() if key[0] in waiting}

    def _say(self, pod: Object, kind: str, reason: str, message: str) -> None:
        key, now = (str(pod["metadata"]["uid"]), reason), time.monotonic()
        text, when = self._said.get(key, ("", 0.0))
        if text == message and now - when < _AGAIN_SECONDS:
            return
        # What was said for another reason is out of date: it is said anew should it be so again.
        self._said = {other: said for other, said in self._said.items() if other[0] != key[0]}
        self._said[key] = (message, now)
        self._fleet.event(pod, kind, reason, message)


def failure(failed: Iterable[tuple[str, str]]) -> str:
    """Of zones that have no machines, each with what is short."""
    zones, reasons = (list(dict.fromkeys(words)) for words in zip(*failed, strict=True))
    return (
        f"Node scale up in zones {', '.join(zones)} associated with this pod failed: {', '.join(reasons)}. Pod is at "
        "risk of not being scheduled."
    )


def no_scale_up(reasons: Iterable[str]) -> str:
    """Of pools whose further nodes would not help, each with the reason."""
    counted = [f"{count} {reason}" for reason, count in Counter(reasons).items()]
    return f"pod didn't trigger scale-up: {', '.join(counted)}".rstrip(": ")


def scale_up(grown: Grown) -> str:
    """Of a pool that grows."""
    bounds = Pool(grown.pool.inputs).bounds
    group = (
        f"https://www.googleapis.com/compute/v1/projects/{grown.pool.project}/zones/{grown.zone}/instanceGroups/"
        f"{group_name(grown.pool, grown.zone)}-grp"
    )
    most = bounds.most if bounds is not None else grown.after
    return f"pod triggered scale-up: [{{{group} {grown.before}->{grown.after} (max: {most})}}]"
