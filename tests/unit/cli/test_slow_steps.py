"""`berth up` says what takes long: since when, for what, and how to stop."""

from collections.abc import Iterator
from typing import Any

import pytest

from berth.cli.pulumi.update import progress
from berth.cli.pulumi.update.progress import Progress
from berth.cli.pulumi.update.slow import SlowSteps
from berth.cli.pulumi.update.tracker import Tracker
from berth.components.plan.plan import Event, plan_of
from berth.stacks.preview.report import PreviewContext, Report, report_of
from tests.lab.project import eventually
from tests.unit.components.plan.plans import POOL, RAY, event, pool, ray

MINUTE = 60.0


class Watch:
    """Clock that a test sets, in minutes."""

    def __init__(self) -> None:
        self.minutes = 0.0

    def __call__(self) -> float:
        return self.minutes * MINUTE


def planned(*events: Event) -> Report:
    return report_of(plan_of(events), PreviewContext("fleet", "environment"))


def ended(begun: Event, kind: str = "resOutputsEvent") -> dict[str, Any]:
    return {kind: begun["resourcePreEvent"]}


POOL_BEGUN = event("create", POOL, "train", None, pool())
RAY_BEGUN = event("update", RAY, "alice", ray("alice"), ray("alice", workers=3))


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def steps(watch: Watch) -> SlowSteps:
    return SlowSteps(watch, planned(POOL_BEGUN, RAY_BEGUN).changes)


def said(steps: SlowSteps, watch: Watch, minutes: Iterator[int] | range) -> list[tuple[int, str]]:
    """Minute and first words of each line."""
    found = []
    for minute in minutes:
        watch.minutes = minute
        found += [(minute, line.partition(";")[0]) for line in steps.due()]
    return found


def test_a_step_is_said_after_two_minutes_and_when_its_time_has_doubled(
    steps: SlowSteps, watch: Watch
) -> None:
    steps.see(POOL_BEGUN)
    lines = said(steps, watch, range(40))
    assert [minute for minute, _ in lines] == [2, 4, 8, 16, 32]
    assert lines[2][1].endswith("node pool train: creating for 8 min")


@pytest.mark.parametrize("kind", ["resOutputsEvent", "resOpFailedEvent"])
def test_a_step_that_has_ended_is_not_said(steps: SlowSteps, watch: Watch, kind: str) -> None:
    steps.see(POOL_BEGUN)
    watch.minutes = 1
    steps.see(RAY_BEGUN)
    steps.see(ended(POOL_BEGUN, kind))
    ((minute, line),) = said(steps, watch, range(2, 4))
    assert minute == 3
    assert line.endswith("RayCluster alice: changing for 2 min")


def test_only_a_pools_line_says_what_its_silence_may_mean(steps: SlowSteps, watch: Watch) -> None:
    steps.see(POOL_BEGUN)
    steps.see(RAY_BEGUN)
    watch.minutes = 2
    of_pool, of_ray_cluster = steps.due()
    assert "gcloud container operations list" in of_pool
    assert "full reservation" in of_pool
    assert "gcloud" not in of_ray_cluster


def test_what_is_not_of_the_plan_is_not_said(steps: SlowSteps, watch: Watch) -> None:
    steps.see({"resourcePreEvent": {"metadata": {"op": "create", "urn": "urn:x::other"}}})
    steps.see(event("same", POOL, "train", pool(), pool()))
    watch.minutes = 60
    assert steps.due() == []


def test_an_update_says_it_without_an_event_and_how_to_stop_once(
    watch: Watch,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "_LOOK_SECONDS", 0.01)
    tracker = Tracker(planned(POOL_BEGUN), watch)
    display = Progress(tracker, "berth up -s fleet")
    printed: list[str] = []

    def shows(text: str) -> bool:
        printed.append(capsys.readouterr().err)
        return text in " ".join("".join(printed).split())

    with display.shown():
        display.see(POOL_BEGUN)
        watch.minutes = 3
        eventually(lambda: shows("creating for 3 min"), "the step is said")
        watch.minutes = 6
        eventually(lambda: shows("creating for 6 min"), "the step is said again")
    text = " ".join("".join(printed).split())
    assert text.count("a second Ctrl-C ends the update at once") == 1
    assert "then go on with: berth up -s fleet" in text
