"""Score of a plan after an update."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from berth.cli.pulumi.update.score import ObservedCluster, observed_clusters, score_of
from berth.components.cluster.api import PODS, RAY_CLUSTERS, ClusterApi, ClusterError
from berth.components.plan.effect import Effect, Level, Sitting
from berth.components.plan.plan import plan_of
from berth.stacks.preview.report import (
    ComponentChanges,
    PreviewContext,
    Report,
    ResourceChange,
    report_of,
)
from tests.unit.cases import table
from tests.unit.components.plan.test_waits import GUEST, NEW, POOLS


def plan(level: str, names: Sequence[str]) -> Report:
    """A plan that reaches some RayClusters, and replaces a pool."""
    sitting = [
        Sitting("berth", name, f"berth-{name}", name, "fleet", 2, 0, shares=False, gpus_in_words="")
        for name in names
    ]
    all_go = not level.startswith("may ")
    effects = [
        Effect(Level[level.removeprefix("may ").upper()], "restarts", sitting, all_go=all_go)
    ]
    change = ResourceChange(
        "x", "x", "x", "", "urn::x", "x", "replace", Level.DESTROYS, effects, ()
    )
    return replace(
        report_of(plan_of([]), PreviewContext("fleet", "environment")),
        parts=[ComponentChanges("x", [change])],
    )


def clusters(pods: Mapping[str, str | None]) -> dict[tuple[str, str], ObservedCluster]:
    """RayClusters by name: their pods, a letter each; None for a suspended one."""
    return {
        (f"berth-{name}", name): ObservedCluster(frozenset(letters or ""), moving=letters is None)
        for name, letters in pods.items()
    }


@pytest.mark.parametrize(
    ("level", "foreseen", "before", "after", "done", "right", "says"), table(__file__, "score.yaml")
)
def test_a_plan_is_compared_with_what_was_seen(
    level: str,
    foreseen: list[str],
    before: dict[str, str],
    after: dict[str, str],
    done: dict[str, str],
    right: int,
    says: str,
) -> None:
    score = score_of(plan(level, foreseen), done, clusters(before), clusters(after))
    assert (score.right, str(score)) == (right, says)


def test_workers_that_come_and_go_show_that_a_foreseen_loss_happened() -> None:
    key = ("berth-ann", "ann")
    was = ObservedCluster(frozenset("h"), moving=False, scaled=frozenset("w"))
    for scaled, right in (frozenset("x"), 1), (frozenset("wx"), 0):
        score = score_of(
            plan("destroys", ["ann"]),
            {"urn::x": "replace"},
            {key: was},
            {key: replace(was, scaled=scaled)},
        )
        assert (score.right, len(score.false_alarms)) == (right, 1 - right)


@pytest.mark.parametrize(("before", "after", "says"), table(__file__, "score_waiting.yaml"))
def test_who_waits_is_compared(
    before: dict[str, int], after: dict[str, int | None], says: str
) -> None:
    report = report_of(
        plan_of([NEW]), PreviewContext("prod", "environment", live=[GUEST], pools=POOLS)
    )
    was, now = (
        {
            (f"berth-{name}", name): ObservedCluster(
                frozenset("a"), moving=pods is None, waiting=pods or 0
            )
            for name, pods in ({"ann": 0, "eve": 0} | found).items()
        }
        for found in (before, after)
    )
    score = score_of(report, {}, was, now)
    assert says in str(score)
    assert bool(str(score)) == bool(says)
    assert score.waiting == [name for name, pods in after.items() if pods]


@pytest.mark.parametrize(
    ("spec", "observed", "moving"),
    [({}, 2, False), ({"suspend": True}, 2, True), ({}, 1, True), ({}, None, True)],
)
def test_a_raycluster_that_kuberay_has_yet_to_look_at_is_not_judged(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], observed: int | None, *, moving: bool
) -> None:
    """An update with `wait: {until: submitted}` ends before KubeRay has seen its edit."""
    metadata = {"namespace": "berth-ann", "name": "ann", "generation": 2}
    item = {
        "metadata": metadata,
        "spec": spec,
        "status": {"observedGeneration": observed} if observed else {},
    }
    pod = {"metadata": {"namespace": "berth-ann", "uid": "a", "labels": {"ray.io/cluster": "ann"}}}
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waiting, starting = (
        pod | {"status": {"conditions": conditions}} for conditions in ([full], [])
    )
    lists = {RAY_CLUSTERS: [item], PODS: [waiting, starting]}
    monkeypatch.setattr(ClusterApi, "list", lambda _, path, **_query: (lists[path], ""))
    monkeypatch.setattr(ClusterApi, "metadata", lambda *_, **_query: [pod])
    assert observed_clusters(object.__new__(ClusterApi)) == {
        ("berth-ann", "ann"): ObservedCluster(frozenset("a"), moving, waiting=1)
    }


def test_a_cluster_that_does_not_answer_gives_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **_query: str) -> None:
        raise ClusterError("no answer")

    monkeypatch.setattr(ClusterApi, "list", away)
    api = object.__new__(ClusterApi)
    assert observed_clusters(api) is None
