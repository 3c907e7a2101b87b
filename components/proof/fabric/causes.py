"""Likely causes of a failed fabric proof, from the table in causes.yaml."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from berth.components.core import fast_yaml
from berth.components.fabric import HOST_LIBRARIES
from berth.components.proof.checks import Check
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.evidence import Evidence
from berth.components.proof.fabric.verdicts import Findings

# Checks with one likely cause, under their own names in the table.
_SIMPLE = (
    "pairs",
    "scheduling",
    "environment",
    "locked memory",
    "NCCL versions",
    "sums",
    "Ray's collective",
)
_PROBLEMS = ("busy", "missing", "no-torch", "died", "timeout", "error")


@dataclass(frozen=True)
class Cause:
    """Likely cause with its remedy, and a command that shows whether it is so."""

    text: str
    look: str


def causes_of(
    checks: Sequence[Check],
    expected: Expected,
    namespace: str,
    evidence: Evidence | None,
    findings: Findings | None,
) -> list[Cause]:
    """Return the likely causes of failed checks, the likeliest first.

    Earlier causes explain later ones: a cluster without claims cannot use gIB, and one on TCP is
        slow.
    """
    wrong = {check.name for check in checks if check.verdict == "fail"}
    logs = findings.logs if findings else ()
    no_plugin = next((text for log in logs for text in log.no_plugin), "")
    tuner = next((text for log in logs for text in log.tuner_problems), "")
    symptoms = [*_symptoms(wrong, expected, evidence, findings, tuner)]
    if not symptoms:
        return []
    names = {
        "cluster": expected.cluster,
        "namespace": namespace,
        "why_no_nics": expected.why_no_nics,
        "libraries": HOST_LIBRARIES,
        "reason": f" ({no_plugin})" if no_plugin else "",
        "tuner": tuner,
    }
    for command, text in fast_yaml.load_beside(__file__, "commands.yaml").items():
        names[command] = text.format(**names)
    table = fast_yaml.load_beside(__file__)
    return [
        Cause(entry["text"].format(**names), entry["look"].format(**names))
        for symptom in symptoms
        for entry in table[symptom]
    ]


def _symptoms(
    wrong: set[str],
    expected: Expected,
    evidence: Evidence | None,
    findings: Findings | None,
    tuner: str,
) -> Iterator[str]:
    """Yield the table's keys, in the order of the report."""
    if "claims" in wrong:
        yield "claims" if expected.nics else "no NICs"
    yield from (name for name in _SIMPLE if name in wrong)
    # What gIB's config checker ends, it explains.
    if "all-reduce" in wrong and "environment" not in wrong:
        kind = evidence.problem.kind if evidence and evidence.problem else ""
        yield f"program {kind if kind in _PROBLEMS else 'unfinished'}"
    if "transport" in wrong and "claims" not in wrong:
        way = findings.transport.way if findings and findings.transport else "gloo"
        yield f"transport {way if way in ('tcp', 'other plugin', 'staged', 'gloo') else 'unknown'}"
    if "NICs used" in wrong and "claims" not in wrong:
        yield "few NICs over gloo" if evidence and evidence.backend == "gloo" else "few NICs"
    if tuner:
        yield "tuner"
    if "bandwidth" in wrong and not wrong & {"claims", "transport", "NICs used"}:
        yield "slow"
