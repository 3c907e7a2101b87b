"""Waits on live objects, until ready or gone. An interrupt ends them within seconds.

A DaemonSet, a Deployment and a ResourceQuota are ready by their own status; the real plugin reads
the pods of the first two as well. Of the other kinds that berth registers, none is waited for.

Answers to (read): pulumi-kubernetes 4.29.0, provider/pkg/await/await.go and awaiters.go; the
    objects that it watches are real:
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.29.0/provider/pkg/await/awaiters.go
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.kubernetes import objects
from berth.lab.plugins.kubernetes.client import Cluster, NoMatchError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

Item = dict[str, Any]

_DEFAULT_SECONDS = 600.0

# Pause between two reads of an object whose watch ended early.
_PAUSE_SECONDS = 1.0


class NotReadyError(Exception):
    """Error: a wait did not end well.

    Attributes:
        live: the object as last seen.
        reasons: one text for each reason; the first is the summary.
    """

    def __init__(self, live: Item, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.live = live
        self.reasons = reasons


class Waits:
    """Waits against one cluster."""

    def __init__(self, cluster: Cluster, canceled: threading.Event, status: Callable[[str, str], None]) -> None:
        self._cluster = cluster
        self._canceled = canceled
        self._status = status

    def until_ready(self, urn: str, desired: Item, live: Item, timeout: float) -> Item:
        """Return the object once it is ready.

        Raises:
            NotReadyError: the object is not ready in time, can never be, or the user interrupted.
        """
        pending = _PENDING.get((str(desired.get("apiVersion")), str(desired.get("kind"))))
        if pending is None or objects.annotation(desired, objects.SKIP_AWAIT).lower() == "true":
            return live
        shown = ""
        for state in self._states(live, timeout):
            if state is None:
                raise NotReadyError(live, ["the object was deleted while it was waited for"])
            live, message = state, pending(state)
            if not message:
                return live
            if failed := _failure(live):
                raise NotReadyError(live, [failed])
            if message != shown:
                self._status(urn, message)
                shown = message
        raise self._too_late(live, f"'{objects.name_of(live)}' timed out waiting to be Ready", *unmet(live))

    def until_gone(self, urn: str, live: Item, timeout: float) -> None:
        """Return once the object is gone, or another one has its name.

        Raises:
            NotReadyError: the object is still there when time is up or the user interrupts.
        """
        shown = finalizers = ""
        for state in self._states(live, timeout):
            if state is None:
                return
            live = state
            finalizers = ", ".join(live["metadata"].get("finalizers") or [])
            message = f"Waiting for finalizers: {finalizers}" if finalizers else "Resource scheduled for deletion"
            if message != shown:
                self._status(urn, message)
                shown = message
        held = [f"finalizers might be preventing deletion ({finalizers})"] if finalizers else []
        raise self._too_late(live, "timed out waiting for the condition", *held)

    def _too_late(self, live: Item, *reasons: str) -> NotReadyError:
        if self._canceled.is_set():
            return NotReadyError(live, [f'Resource operation was cancelled for "{objects.name_of(live)}"'])
        return NotReadyError(live, list(reasons))

    def _states(self, live: Item, timeout: float) -> Iterator[Item | None]:
        """Yield the object as given, and its later states as they come; None once it is gone."""
        deadline = time.monotonic() + (timeout or _DEFAULT_SECONDS)
        version, kind, identity = live["apiVersion"], live["kind"], live["metadata"].get("uid")
        namespace, name = objects.namespace_of(live), objects.name_of(live)
        try:
            path = self._cluster.resource(version, kind).path(namespace)
        except NoMatchError:
            yield None
            return
        state: Item | None = live
        while True:
            if state is None or state["metadata"].get("uid") != identity:
                yield None
                return
            yield state
            yield from self._cluster.watch(path, name, state["metadata"]["resourceVersion"], deadline)
            left = deadline - time.monotonic()
            if left <= 0 or self._canceled.wait(min(_PAUSE_SECONDS, left)):
                return
            state = self._cluster.get(version, kind, namespace, name)


def unmet(item: Item) -> list[str]:
    """Return the messages of an object's conditions that are not true."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return [
        f"[{entry.get('reason')}] {entry['message']}"
        for entry in conditions
        if entry.get("message") and entry.get("status") != "True"
    ]


def _failure(item: Item) -> str:
    """Return why an object can never become ready; "" while it can."""
    for entry in (item.get("status") or {}).get("conditions") or []:
        if entry.get("type") == "Progressing" and entry.get("reason") == "ProgressDeadlineExceeded":
            return f"[{entry['reason']}] {entry.get('message', '')}"
    return ""


def _is_behind(item: Item) -> bool:
    """Return whether the controller has not seen the object's spec yet."""
    return bool((item.get("status") or {}).get("observedGeneration", 0) < item["metadata"].get("generation", 1))


def deployment(item: Item) -> str:
    """Return what a Deployment waits for; "" once it is rolled out."""
    status, replicas = item.get("status") or {}, (item.get("spec") or {}).get("replicas", 1)
    if _is_behind(item):
        return "Waiting for app ReplicaSet be marked available"
    if all(status.get(key, 0) == replicas for key in ("updatedReplicas", "availableReplicas", "replicas")):
        return ""
    available = status.get("availableReplicas", 0)
    return f"Waiting for app ReplicaSet be marked available ({available}/{replicas} Pods available)"


def daemon_set(item: Item) -> str:
    """Return what a DaemonSet waits for; "" once it is rolled out."""
    status = item.get("status") or {}
    nodes, available = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
    if not _is_behind(item) and status.get("updatedNumberScheduled", 0) == nodes == available:
        return ""
    return f"Waiting for DaemonSet to roll out ({available}/{nodes} available)"


def resource_quota(item: Item) -> str:
    """Return what a ResourceQuota waits for; "" once the controller counts what it limits."""
    limits, counted = ((item.get(part) or {}).get("hard") for part in ("spec", "status"))
    return "" if limits == counted else "Waiting for the usage of the quota"


_PENDING: dict[tuple[str, str], Callable[[Item], str]] = {
    ("apps/v1", "DaemonSet"): daemon_set,
    ("apps/v1", "Deployment"): deployment,
    ("v1", "ResourceQuota"): resource_quota,
}
