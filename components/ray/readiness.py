"""Waiting until RayClusters are ready, and saying which is not and why.

The wait is the program's and not the provider's (`pulumi.com/waitFor`), since a provider can only say that a condition
was not met in time, and since one watch serves a hundred clusters.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.ray.condition import Condition, Object, condition_of, reasons_not_ready

Key = tuple[str, str]
"""Namespace and name of a RayCluster."""

_API = ("ray.io", "v1", "rayclusters")
# A watch is asked to end after this many seconds, so that deadlines and a stop are noticed.
_WATCH_SECONDS = 5
_RETRY_SECONDS = 1.0


class ClusterUnreachableError(Exception):
    """The API server does not answer, or refuses; the text says which and why."""


@dataclass
class Wait:
    """One wait for some RayClusters.

    Attributes:
        kubeconfig: of their cluster, as text.
        selector: a label selector that finds them all.
        deadlines: seconds to wait for each.
        report: called with a cluster and its condition whenever that changes.
        stop: set it to end the wait early.
    """

    kubeconfig: str
    selector: str
    deadlines: Mapping[Key, float]
    report: Callable[[Key, Condition], None]
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> dict[Key, list[str]]:
        """Wait for all.

        Returns:
            Those that are not ready in time, with the reasons.

        Raises:
            ClusterUnreachableError: the API server could not be asked until the last deadline.
        """
        client = _Client(self.kubeconfig)
        start = time.monotonic()
        waiting = {key: start + seconds for key, seconds in self.deadlines.items()}
        seen: dict[Key, Condition] = {}
        failed: dict[Key, list[str]] = {}
        while waiting and not self.stop.is_set():
            try:
                clusters, version = client.find(self.selector)
                self._sort_out(clusters, waiting, seen)
                if waiting:
                    seconds = min(_WATCH_SECONDS, max(1, min(waiting.values()) - time.monotonic()))
                    for cluster in client.watch(self.selector, version, int(seconds)):
                        self._sort_out([cluster], waiting, seen)
                        if not waiting or self.stop.is_set():
                            break
            except ClusterUnreachableError:
                if time.monotonic() >= max(waiting.values()):
                    raise
                self.stop.wait(_RETRY_SECONDS)
            for key in [key for key, deadline in waiting.items() if time.monotonic() >= deadline]:
                del waiting[key]
                failed[key] = client.reasons(key)
        # What got ready while the reasons were looked up has none.
        return {key: reasons for key, reasons in failed.items() if reasons}

    def _sort_out(self, clusters: Iterable[Object], waiting: dict[Key, float], seen: dict[Key, Condition]) -> None:
        for cluster in clusters:
            key = (cluster["metadata"]["namespace"], cluster["metadata"]["name"])
            if key not in waiting:
                continue
            condition = condition_of(cluster)
            if condition != seen.get(key):
                seen[key] = condition
                self.report(key, condition)
            if condition.ready:
                del waiting[key]


class _Client:
    """The few calls that a wait needs."""

    def __init__(self, kubeconfig: str) -> None:
        # Imported here: only a wait needs it, and a preview or `berth check` doesn't wait.
        from kubernetes import client, config  # noqa: PLC0415

        self._api = config.new_client_from_config_dict(json.loads(kubeconfig))
        self._custom, self._core = client.CustomObjectsApi(self._api), client.CoreV1Api(self._api)

    def find(self, selector: str) -> tuple[list[Object], str]:
        found = self._call(self._custom.list_cluster_custom_object, *_API, label_selector=selector)
        return found["items"], found["metadata"]["resourceVersion"]

    def watch(self, selector: str, version: str, seconds: int) -> Iterable[Object]:
        from kubernetes import watch  # noqa: PLC0415
        from kubernetes.client import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        stream = watch.Watch().stream(
            self._custom.list_cluster_custom_object,
            *_API,
            label_selector=selector,
            resource_version=version,
            timeout_seconds=seconds,
        )
        try:
            for event in stream:
                if event["type"] in ("ADDED", "MODIFIED"):
                    yield event["object"]
        except (ApiException, HTTPError) as error:
            raise ClusterUnreachableError(str(error)) from None

    def reasons(self, key: Key) -> list[str]:
        namespace, name = key
        try:
            cluster = self._call(self._custom.get_namespaced_custom_object, *_API[:2], namespace, _API[2], name)
        except ClusterUnreachableError as error:
            return [str(error)]
        pods = self._call(self._core.list_namespaced_pod, namespace, label_selector=f"ray.io/cluster={name}")
        events = self._call(
            self._core.list_namespaced_event,
            namespace,
            field_selector=f"involvedObject.kind=RayCluster,involvedObject.name={name},type=Warning",
        )
        plain = self._api.sanitize_for_serialization
        return reasons_not_ready(cluster, plain(pods)["items"], plain(events)["items"])

    def _call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        from kubernetes.client import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            return function(*args, **kwargs, _request_timeout=30)
        except ApiException as error:
            raise ClusterUnreachableError(f"the API server refused: {error.status} {error.reason}") from None
        except HTTPError as error:
            raise ClusterUnreachableError(f"the API server does not answer: {error}") from None
