from collections.abc import Iterator
from typing import Any

import pytest

from berth.components.cluster.api import ClusterApi, RefusedError
from berth.lab.api import POLICIES, Api

Object = dict[str, Any]
NOT_SERVED: tuple[list[Object], str] = ([], "")


class Cluster(ClusterApi):
    """A cluster that answers lists in order; a watch yields the events since a version."""

    def __init__(
        self, *answers: tuple[list[Object], str] | RefusedError, events: dict[str, list[Object]]
    ) -> None:
        self._answers = list(answers)
        self._events = events

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        assert (path, query) == (POLICIES, {})
        answer = self._answers.pop(0)
        if isinstance(answer, RefusedError):
            raise answer
        return answer

    def events(self, path: str, version: str, seconds: int, **query: str) -> Iterator[Object]:
        assert (path, query, seconds > 0) == (POLICIES, {}, True)
        yield from self._events[version]


class EndError(Exception):
    pass


def test_objects_are_seen_although_their_kind_comes_goes_and_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 4:
            raise EndError

    monkeypatch.setattr("berth.lab.api.time.sleep", wait)
    first = {"metadata": {"uid": "1"}}
    second = {"metadata": {"uid": "2"}}
    cluster = Cluster(
        NOT_SERVED,
        ([], "5"),
        NOT_SERVED,
        RefusedError(500, {"message": "starting"}),
        ([second], "9"),
        NOT_SERVED,
        events={
            "5": [{"type": "ADDED", "object": first}, {"type": "DELETED", "object": first}],
            "9": [],
        },
    )
    found: list[tuple[Object | None, bool]] = []
    with pytest.raises(EndError):
        found.extend(Api(cluster).follow(POLICIES))
    unseen = (None, True)
    assert found == [unseen, (first, False), (first, True), unseen, unseen, (second, False), unseen]
    assert len(waits) == 4
