"""Copies of collections: one list, the events of a watch, and a new list where it breaks off."""

import queue
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from berth.components.cluster import mirror as mirrors
from berth.components.cluster.api import PODS, RAY_CLUSTERS, ClusterApi, ClusterError, RefusedError
from berth.components.cluster.mirror import Mirror, Snapshot

LONG_SECONDS = 60.0


def pod(name: str, version: str = "1", **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "berth-bob", "name": name, "resourceVersion": version, **more},
        "spec": {},
    }


class Cluster:
    """A cluster whose watches yield events from a queue; an exception ends the watch."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.pods = list(pods)
        self.lists = 0
        self.watched: queue.Queue[str] = queue.Queue()
        self.fails: ClusterError | None = None
        self._events: queue.Queue[Any] = queue.Queue()

    def list(self, _path: str, **_query: str) -> tuple[list[dict[str, Any]], str]:
        self.lists += 1
        if self.fails:
            raise self.fails
        return self.pods, str(self.lists)

    def events(
        self, _path: str, version: str, _seconds: int, **_query: str
    ) -> Iterator[dict[str, Any]]:
        self.watched.put(version)
        while (event := self._events.get(timeout=LONG_SECONDS)) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def happens(self, kind: Any, item: dict[str, Any] | None = None) -> None:
        self._events.put({"type": kind, "object": item} if item else kind)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "_RETRY_SECONDS", 0)


def names(mirror: Mirror) -> list[str]:
    return sorted(item["metadata"]["name"] for item in mirror.list(PODS)[0])


def awaited(changed: threading.Event) -> None:
    assert changed.wait(LONG_SECONDS)
    changed.clear()


def test_a_collection_is_listed_once_and_follows_the_watch() -> None:
    cluster = Cluster(pod("head"), pod("worker"))
    mirror = Mirror(cast("ClusterApi", cluster))
    assert names(mirror) == ["head", "worker"]
    for kind, item, after in (
        ("ADDED", pod("second", "7"), ["head", "second", "worker"]),
        ("DELETED", pod("head", "8"), ["second", "worker"]),
    ):
        cluster.happens(kind, item)
        awaited(mirror.changed)
        assert names(mirror) == after
    assert cluster.lists == 1
    cluster.happens("BOOKMARK", pod("", "42"))
    cluster.happens(None)
    assert [cluster.watched.get(timeout=LONG_SECONDS) for _ in range(2)] == ["1", "42"], (
        "it goes on where it ended"
    )
    assert (names(mirror), cluster.lists) == (["second", "worker"], 1)
    mirror.stop()
    cluster.happens(None)


def test_a_forgotten_version_asks_for_a_new_list() -> None:
    cluster = Cluster(pod("head"))
    mirror = Mirror(cast("ClusterApi", cluster))
    assert names(mirror) == ["head"]
    cluster.pods = [pod("worker")]
    cluster.happens(RefusedError(410, {"message": "too old resource version"}))
    awaited(mirror.changed)
    assert (names(mirror), cluster.lists) == (["worker"], 2)
    mirror.stop()
    cluster.happens(None)


def test_a_server_that_is_away_is_an_error_and_not_an_old_answer() -> None:
    cluster = Cluster(pod("head"))
    mirror = Mirror(cast("ClusterApi", cluster))
    assert names(mirror) == ["head"]
    cluster.fails = ClusterError("away")
    cluster.happens(ClusterError("broken off"))
    awaited(mirror.changed)
    with pytest.raises(ClusterError, match="away"):
        mirror.list(PODS)
    mirror.stop()
    cluster.happens(None)


def test_copies_are_without_what_no_question_about_many_needs() -> None:
    fields = [{"manager": "kubelet"}]
    cluster = Cluster(pod("head", managedFields=fields))
    assert "managedFields" not in Snapshot(cast("ClusterApi", cluster)).list(PODS)[0][0]["metadata"]
    cluster.pods = [pod("bob", managedFields=fields)]
    found = Snapshot(cast("ClusterApi", cluster)).list(RAY_CLUSTERS)[0]
    assert found[0]["metadata"]["managedFields"] == fields, "they name who suspended it"
