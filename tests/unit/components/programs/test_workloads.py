"""Decisions about all that makes pods in a berth's namespace: a table (workload_cases.yaml)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from berth.components.programs.workloads import (
    BerthInPass,
    Key,
    NamespaceDecision,
    NamespaceWorkload,
    Pod,
    namespace_decision,
    pod_of,
    workload_of,
)
from tests.unit.cases import over, table

CASES: dict[str, Any] = table(__file__, "workload_cases.yaml")
NIGHT = "22:05"


def at(clock: str) -> datetime:
    """A time of the day of the table."""
    return datetime.fromisoformat(f"2026-11-23T{clock}:00Z")


def key(text: str) -> Key:
    kind, _, name = text.partition("/")
    return kind, name


def berth(fields: dict[str, Any]) -> BerthInPass:
    given: dict[str, Any] = {"awake": False, "asleep": True, "due": "20:00"} | fields
    given.setdefault("until", given["due"])
    for name in given.keys() & {"idle", "grace"}:
        given[name] = timedelta(hours=given[name])
    for name in ("due", "until"):
        given[name] = at(given[name]) if given[name] else None
    return BerthInPass("alice", **given)


def thing(name: str, fields: dict[str, Any]) -> NamespaceWorkload:
    given = {"began": "09:00"} | fields
    times = {name: at(given[name]) for name in ("began", "ended", "changed") if name in given}
    return NamespaceWorkload(
        key(name), **given | times | {"owner": key(given["owner"]) if "owner" in given else None}
    )


def pod(name: str, fields: dict[str, str]) -> Pod:
    ends = at(fields["ends"]) if "ends" in fields else None
    return Pod(name, key(fields["owner"]) if "owner" in fields else None, at("09:00"), ends)


@pytest.mark.parametrize("what", CASES)
def test_what_is_beside_a_berth(what: str) -> None:
    case = CASES[what]
    things = [thing(name, fields) for name, fields in case["things"].items()]
    pods = [pod(name, fields) for name, fields in case.get("pods", {}).items()]
    verdict = namespace_decision(
        berth(case.get("berth", {})), things, pods, at(case.get("now", NIGHT))
    )
    outcome = {
        name: [key(text) for text in case["outcome"].get(name, [])] for name in ("suspend", "wake")
    }
    assert (list(verdict.suspend), list(verdict.wake)) == (outcome["suspend"], outcome["wake"])
    assert (list(verdict.left), verdict.closed) == (
        case["outcome"].get("left", []),
        "closed" in case["outcome"],
    )


def item(
    spec: dict[str, Any], status: dict[str, Any] | None = None, **metadata: Any
) -> dict[str, Any]:
    created = {"name": "x", "creationTimestamp": "2026-11-23T09:00:00Z"}
    return {"metadata": created | metadata, "spec": spec, "status": status or {}}


@pytest.mark.parametrize(("kind", "given", "fields"), table(__file__, "workload_objects.yaml"))
def test_what_an_object_says(kind: str, given: dict[str, Any], fields: dict[str, Any]) -> None:
    assert workload_of(kind, over({"metadata": item({})["metadata"]}, given)) == thing(
        f"{kind}/x", fields
    )


def test_what_has_finished_makes_no_pods() -> None:
    assert (
        workload_of("Job", item({}, {"conditions": [{"type": "Complete", "status": "True"}]}))
        is None
    )
    assert pod_of(item({}, {"phase": "Succeeded"})) is None
    ending = item({}, {"phase": "Running"}, deletionTimestamp="2026-11-23T10:00:00Z")
    assert pod_of(ending) == Pod("x", None, at("09:00"), at("10:00"))


def test_the_reason_of_closing_names_pods_up_to_a_number() -> None:
    assert NamespaceDecision().note == ""
    assert NamespaceDecision(closed=True).note == "something was started in it while it slept"
    assert NamespaceDecision(left=["a"]).note == "pod a does not end"
    assert (
        NamespaceDecision(left=["a", "b", "c", "d", "e"]).note
        == "pods a, b, c and 2 more do not end"
    )
