from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import kopf
import pytest

from berth.lab.devices import operators
from berth.lab.devices.kuberay import Launch
from berth.lab.devices.operators import ADD_ON, Operators
from berth.lab.home import Home
from berth.lab.plugins.gcp.store import Record, Store

from .test_kuberay import deployment

CHART = "kuberay-system/kuberay-operator"
CLUSTER = "projects/p/locations/us-central1-b/clusters/fleet"


class Runners:
    """Which operators run, by who asked for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.running: dict[str, Launch | None] = {}
        self.said: list[tuple[str, str]] = []
        outer = self

        class Runner:
            def __init__(self, home: Home, name: str) -> None:
                del home
                self.name = name

            def want(self, launch: Launch | None) -> None:
                outer.running[self.name] = launch

            async def close(self) -> None:
                outer.running.pop(self.name, None)

        def warn(body: object, *, reason: str, message: str) -> None:
            del body
            self.said.append((reason, message))

        monkeypatch.setattr(operators, "OperatorRunner", Runner)
        monkeypatch.setattr(kopf, "warn", warn)


@pytest.fixture
def runners(monkeypatch: pytest.MonkeyPatch) -> Runners:
    return Runners(monkeypatch)


def run(story: Coroutine[Any, Any, None]) -> None:
    # asyncio.run would leave the thread without a loop, which Pulumi's mocks need in the tests after these.
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(story)
    finally:
        loop.close()


def chart() -> Any:
    return kopf.Body(deployment())


def add_on(store: Store, *, enabled: bool) -> None:
    config = {"addonsConfig": {"rayOperatorConfigs": [{"enabled": enabled}]}}
    store.put(Record(CLUSTER, {"name": "fleet"} | config))


def test_the_add_on_runs_an_operator_without_a_chart(tmp_path: Path, runners: Runners) -> None:
    store = Store(tmp_path / "cloud")
    found = Operators(Home(tmp_path), store)

    async def story() -> None:
        await found.look()
        assert runners.running == {}
        add_on(store, enabled=True)
        await found.look()
        assert list(runners.running) == [ADD_ON]
        add_on(store, enabled=False)
        await found.look()
        assert runners.running == {}

    run(story())


def test_of_an_add_on_and_a_chart_one_runs_and_the_other_is_told(tmp_path: Path, runners: Runners) -> None:
    store = Store(tmp_path / "cloud")
    found = Operators(Home(tmp_path), store)

    async def story() -> None:
        await found.deployment("ADDED", chart())
        assert list(runners.running) == [CHART]
        add_on(store, enabled=True)
        await found.look()
        assert list(runners.running) == [ADD_ON]
        await found.deployment("MODIFIED", chart())
        assert list(runners.running) == [ADD_ON]
        store.remove(CLUSTER)
        await found.look()
        assert list(runners.running) == [CHART]
        await found.close()
        assert runners.running == {}

    run(story())
    assert [reason for reason, _ in runners.said] == ["OperatorNotNeeded"]
    assert "two would undo each other's work" in runners.said[0][1]


def test_a_chart_that_comes_while_the_add_on_is_on_is_not_run(tmp_path: Path, runners: Runners) -> None:
    store = Store(tmp_path / "cloud")
    found = Operators(Home(tmp_path), store)

    async def story() -> None:
        add_on(store, enabled=True)
        await found.deployment("ADDED", chart())
        assert runners.running == {}
        await found.deployment("DELETED", chart())
        await found.look()
        assert list(runners.running) == [ADD_ON]

    run(story())
