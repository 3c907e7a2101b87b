"""Verdicts on the evidence of an all-reduce. Pure."""

from dataclasses import dataclass
from itertools import chain

from berth.components.proof.checks import Check, Verdict
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.evidence import FabricEvidence
from berth.components.proof.fabric.nccl_log import ProcessLog, Transport, parse_log, transport_of
from berth.components.proof.fabric.process_verdicts import (
    judge_environment,
    judge_locked_memory,
    judge_nccl_versions,
    judge_program,
    judge_rays_collective,
    judge_sums,
)
from berth.components.proof.fabric.threshold import Threshold
from berth.components.proof.fabric.transport_verdicts import (
    judge_algorithm,
    judge_bandwidth,
    judge_traffic,
    judge_transport,
    judge_used_nics,
)

AFTER_PROGRAM = (
    "all-reduce",
    "environment",
    "locked memory",
    "sums",
    "transport",
    "NICs used",
    "traffic",
    "algorithm",
    "bandwidth",
    "NCCL versions",
    "Ray's collective",
)
"""Checks that need the program to run, in order."""


@dataclass(frozen=True)
class Findings:
    """Verdicts on the evidence, in the order of `AFTER_PROGRAM`, and NCCL's parsed logs."""

    checks: list[Check]
    transport: Transport | None = None
    logs: tuple[ProcessLog, ...] = ()


def without_evidence(verdict: Verdict, reason: str) -> list[Check]:
    """Return the checks of a program that was not run, or that failed and left no evidence."""
    why = "the all-reduce left no evidence" if verdict == "fail" else "the all-reduce was not run"
    first, *others = AFTER_PROGRAM
    return [Check(first, verdict, reason), *(Check(name, "skipped", why) for name in others)]


def judge_evidence(evidence: FabricEvidence, expected: Expected, threshold: Threshold) -> Findings:
    """Return the verdicts on the program's evidence."""
    logs: dict[str, list[ProcessLog]] = {}
    for rank in evidence.ranks:
        logs.setdefault(rank.pod, []).append(parse_log(rank.log))
    every = tuple(chain.from_iterable(logs.values()))
    transport = transport_of(logs) if evidence.by_nccl else None
    judged = (
        judge_program(evidence),
        judge_environment(evidence, expected, every),
        judge_locked_memory(evidence, expected),
        judge_sums(evidence),
        judge_transport(evidence, expected, transport, every),
        judge_used_nics(evidence, expected, transport),
        judge_traffic(evidence),
        judge_algorithm(evidence, every),
        judge_bandwidth(evidence, threshold),
        judge_nccl_versions(evidence, every),
        judge_rays_collective(evidence),
    )
    checks = [
        Check(name, verdict, text)
        for name, (verdict, text) in zip(AFTER_PROGRAM, judged, strict=True)
    ]
    return Findings(checks, transport, every)
