"""Waits on live objects: until ready, until gone. On watches, not on polling; an interrupt ends them within seconds.

Answers to (read): pulumi-kubernetes 4.29.0, provider/pkg/await/await.go; the objects that it watches are real:
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.29.0/provider/pkg/await/await.go
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from berth.lab.plugins.kubernetes import objects, readiness
from berth.lab.plugins.kubernetes.client import ApiError, Cluster, NoMatchError, Resource

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from berth.lab.plugins.kubernetes.readiness import Condition, Item

_DEFAULT_SECONDS = 600.0

# Between two looks at an object whose watch ended early.
_PAUSE_SECONDS = 1.0


class NotReadyError(Exception):
    """A wait that did not end well.

    Attributes:
        live: the object as last seen.
        reasons: why, one text each; the first says it all.
    """

    def __init__(self, live: Item, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.live = live
        self.reasons = reasons


def seconds_of(timeout: float, wanted: Item) -> float:
    """How long to wait: the resource's own `customTimeouts`, else its annotation, else ten minutes."""
    text = objects.annotation(wanted, objects.TIMEOUT_SECONDS)
    return timeout or (float(text) if text.isdigit() else _DEFAULT_SECONDS)


class Waits:
    """Waits against one cluster.

    Args:
        cluster: where the objects are.
        cancelled: set when the user interrupts.
        status: shows a line beside the resource.
    """

    def __init__(self, cluster: Cluster, cancelled: threading.Event, status: Callable[[str, str], None]) -> None:
        self._cluster = cluster
        self._cancelled = cancelled
        self._status = status

    def until_ready(self, urn: str, wanted: Item, live: Item, timeout: float) -> Item:
        """The object once it is ready.

        Args:
            urn: the resource, for the lines shown meanwhile.
            wanted: the object as the program wants it, with the annotations that say what to wait for.
            live: the object as the server has just given it.
            timeout: seconds, or 0 for the annotation's or the default.

        Raises:
            NotReadyError: it did not become ready in time, can never, or the user interrupted.
            ProviderError: `pulumi.com/waitFor` cannot be understood.
        """
        condition = readiness.condition_of(wanted)
        if condition is None:
            return live
        shown = ""
        for state in self._states(live, time.monotonic() + seconds_of(timeout, wanted)):
            if state is None:
                raise NotReadyError(live, ["the object was deleted while it was waited for"])
            live = state
            ready, message = self._judge(condition, live)
            if message and message != shown:
                self._status(urn, message)
                shown = message
            if ready:
                return live
        if self._cancelled.is_set():
            raise NotReadyError(live, [f'Resource operation was cancelled for "{objects.name_of(live)}"'])
        raise NotReadyError(live, _timed_out(wanted, live))

    def until_gone(self, urn: str, wanted: Item, live: Item, timeout: float) -> None:
        """Return once the object is gone, or another one has its name.

        Raises:
            NotReadyError: it is still there when time is up or the user interrupts.
        """
        shown = ""
        for state in self._states(live, time.monotonic() + seconds_of(timeout, wanted)):
            if state is None:
                return
            live = state
            finalizers = ", ".join((live.get("metadata") or {}).get("finalizers") or [])
            message = f"Waiting for finalizers: {finalizers}" if finalizers else "Resource scheduled for deletion"
            if message != shown:
                self._status(urn, message)
                shown = message
        if self._cancelled.is_set():
            raise NotReadyError(live, [f'Resource operation was cancelled for "{objects.name_of(live)}"'])
        finalizers = ", ".join((live.get("metadata") or {}).get("finalizers") or [])
        held = [f"finalizers might be preventing deletion ({finalizers})"] if finalizers else []
        raise NotReadyError(live, ["timed out waiting for the condition", *held])

    def _judge(self, condition: Condition, live: Item) -> tuple[bool, str]:
        try:
            return condition(live)
        except readiness.FailedError as error:
            raise NotReadyError(live, [str(error)]) from error

    def _states(self, live: Item, deadline: float) -> Iterator[Item | None]:
        """The object's states as they come; None once it is gone."""
        try:
            resource: Resource = self._cluster.resource(live["apiVersion"], live["kind"])
        except NoMatchError:
            yield None
            return
        namespace, name = objects.namespace_of(live), objects.name_of(live)
        identity = live["metadata"].get("uid")
        while True:
            try:
                state = self._cluster.request("GET", resource.path(namespace, name))
            except ApiError as error:
                if not error.not_found:
                    raise
                yield None
                return
            if state["metadata"].get("uid") != identity:
                yield None
                return
            yield state
            version = state["metadata"]["resourceVersion"]
            for later in self._cluster.watch(resource.path(namespace), name, version, deadline):
                if later.pop("deletedByWatch", False):
                    yield None
                    return
                yield later
            left = deadline - time.monotonic()
            if left <= 0 or self._cancelled.wait(min(_PAUSE_SECONDS, left)):
                return


def _timed_out(wanted: Item, live: Item) -> list[str]:
    if objects.annotation(wanted, objects.WAIT_FOR):
        return ["timed out waiting for the condition"]
    return [f"'{objects.name_of(live)}' timed out waiting to be Ready", *readiness.unmet(live)]
