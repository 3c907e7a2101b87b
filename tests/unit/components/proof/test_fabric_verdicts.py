from dataclasses import replace
from typing import Any

import pytest

from berth.components.hardware.machines import MACHINES
from berth.components.proof.checks import Check
from berth.components.proof.fabric.causes import causes_of
from berth.components.proof.fabric.evidence import FabricEvidence
from berth.components.proof.fabric.threshold import Threshold, threshold_of
from berth.components.proof.fabric.transport_verdicts import least_traffic
from berth.components.proof.fabric.verdicts import (
    AFTER_PROGRAM,
    judge_evidence,
    without_evidence,
)
from tests.unit.cases import over, says, table
from tests.unit.components.proof.fabric_evidence import EXPECTED, PODS, raw

A4 = MACHINES["a4-highgpu-8g"]
THRESHOLD = threshold_of(A4, 2, None)
GOOD = dict.fromkeys(AFTER_PROGRAM, "pass")
CASES = table(__file__, "verdicts.yaml")


def judged(
    case: str | None = "good",
    threshold: Threshold = THRESHOLD,
    edit: dict[str, Any] | None = None,
    *,
    sourced: bool = False,
) -> Any:
    """Findings on the evidence of a case, and their causes in order."""
    evidence = FabricEvidence.model_validate(over(raw(case), edit or {}))
    expected = replace(EXPECTED, sourced=sourced)
    found = judge_evidence(evidence, expected, threshold)
    return found, [
        cause.text for cause in causes_of(found.checks, expected, "berth-train", evidence, found)
    ]


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str) -> None:
    case = CASES[name]
    machine, nics, least = case.get("threshold", [A4.name, 2, None])
    found, causes = judged(
        case["log"],
        threshold_of(MACHINES[machine], nics, least),
        case.get("edit"),
        sourced="sourced" in case,
    )
    checks = {check.name: check for check in found.checks}
    assert {name: check.verdict for name, check in checks.items()} == GOOD | case["verdicts"]
    for check, words in case.get("evidence", {}).items():
        assert says(checks[check].evidence, words), checks[check].evidence
    assert "causes" not in case or bool(causes) == bool(case["causes"])
    assert all(map(says, causes, case.get("causes", []))), causes


def test_the_least_traffic_is_what_two_pods_must_exchange() -> None:
    evidence = FabricEvidence.model_validate(raw(None))
    assert least_traffic(evidence) == 2 * 10 * (2**20 + 2**28 + 2**30)


@pytest.mark.parametrize(("kind", "cause"), table(__file__, "fabric_verdicts.yaml"))
def test_what_stops_the_program_is_told_with_its_cause(kind: str, cause: str) -> None:
    nothing: dict[str, Any] = {
        "seed": None,
        "sweep": [],
        "operations": {},
        "traffic": {},
        "logs": [],
    }
    nothing["ray_collective"] = None
    problem = {"stage": "placing", "kind": kind, "text": "it is so"}
    evidence = FabricEvidence.model_validate(raw(problem=problem, **nothing))
    found = judge_evidence(evidence, EXPECTED, THRESHOLD)
    checks = {check.name: check for check in found.checks}
    assert (checks["all-reduce"].verdict, checks["all-reduce"].evidence) == ("fail", "it is so")
    assert checks["sums"].verdict == "skipped"
    assert "pass" not in {check.verdict for check in found.checks}
    first = causes_of(found.checks, EXPECTED, "berth-train", evidence, found)[0]
    assert first.text.startswith(cause)


def test_the_threshold_of_a_whole_a4_node() -> None:
    assert threshold_of(A4, 8, None).bus == 280
    assert threshold_of(MACHINES["a3-ultragpu-8g"], 8, None).bus == 280


def test_rdma_devices_of_other_pods_are_not_counted() -> None:
    foreign = {"rdma": {"mlx5_7": {"sent": 10**12, "received": 10**12, "interface": ""}}}
    found, _ = judged(edit={"traffic": dict.fromkeys(PODS, foreign)})
    assert found.checks == judged()[0].checks


def test_where_nothing_ran_nothing_passes() -> None:
    assert {check.verdict for check in without_evidence("skipped", "no workers")} == {"skipped"}
    assert [check.verdict for check in without_evidence("simulated", "")][:2] == [
        "simulated",
        "skipped",
    ]
    assert [check.verdict for check in without_evidence("fail", "gone")][:2] == ["fail", "skipped"]
    assert [check.name for check in without_evidence("skipped", "")] == list(AFTER_PROGRAM)


@pytest.mark.parametrize("name", ["claims", "pairs", "scheduling", *AFTER_PROGRAM])
def test_every_failed_check_has_causes_with_commands(name: str) -> None:
    causes = causes_of([Check(name, "fail", "")], EXPECTED, "berth-train", None, None)
    # The bandwidth's causes are the traffic's, and every algorithm passes.
    assert bool(causes) == (name not in ("traffic", "algorithm"))
    for cause in causes:
        assert cause.text
        assert cause.look
