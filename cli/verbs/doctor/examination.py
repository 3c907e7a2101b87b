"""Examination of a stack: everything that an update of the stack needs."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from berth.cli.repository.check import check_stack
from berth.cli.shell.console import ProblemsError
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.cli.verbs.doctor.google_cloud.checks import check_google_cloud, connect
from berth.cli.verbs.doctor.kubernetes.clusters import (
    check_environment,
    check_existing,
    check_own,
    check_unknown,
)
from berth.cli.verbs.doctor.programs import check_programs
from berth.cli.verbs.doctor.state import check_state
from berth.components.core.project import shown_path
from berth.stacks.files.stack_file import stack_path
from berth.stacks.load.stack import Environment

SETTINGS = Topic("settings")

_AT_ONCE = 8


@dataclass(frozen=True)
class Examination:
    """Result of all checks.

    Attributes:
        stack: name of the stack.
        kind: what the stack creates.
        findings: findings in the order in which an update needs things.
        simulated: name of the simulation of Google Cloud; empty for Google Cloud itself.
    """

    stack: str
    kind: Literal["environment", "engineer"]
    findings: list[DoctorFinding] = field(default_factory=list)
    simulated: str = ""

    @property
    def missing(self) -> list[DoctorFinding]:
        """Findings for which an update would fail."""
        return [finding for finding in self.findings if finding.state == "missing"]

    def as_json(self) -> dict[str, Any]:
        """Return the result for programs."""
        return {
            "stack": self.stack,
            "kind": self.kind,
            "simulated": self.simulated,
            "fine": not self.missing,
            "findings": list(map(asdict, self.findings)),
        }


def examine_stack(stack: str) -> Examination:
    """Check everything that an update of a stack needs.

    Raises:
        ProblemsError: the settings are wrong.
    """
    checked = check_stack(stack)
    if checked.lines:
        raise ProblemsError(stack, checked.lines)
    findings = [SETTINGS.fine(f"{shown_path(stack_path(stack))} is valid")]
    findings += [SETTINGS.unchecked(line) for line in checked.warnings]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        if isinstance(checked.loaded, Environment):
            return _examine_environment(pool, checked.loaded, findings)
        return _examine_engineer(pool, stack, findings)


def _examine_engineer(
    pool: ThreadPoolExecutor, stack: str, findings: list[DoctorFinding]
) -> Examination:
    programs = pool.submit(check_programs, auth_plugin=False)
    state = pool.submit(check_state, stack)
    environment = pool.submit(check_environment, stack)
    findings += programs.result()
    findings += state.result()[1]
    findings += environment.result()
    return Examination(stack, "engineer", list(dict.fromkeys(findings)))


def _examine_environment(
    pool: ThreadPoolExecutor, loaded: Environment, findings: list[DoctorFinding]
) -> Examination:
    stack = loaded.stack
    existing = loaded.settings.cluster.existing
    # Whether a given kubeconfig needs Google's credential plugin shows when it is used.
    programs = pool.submit(check_programs, auth_plugin=existing is None)
    state = pool.submit(check_state, stack)
    if existing:
        cluster = pool.submit(check_existing, loaded, existing)
    else:
        cluster = pool.submit(check_own, stack, loaded.berths)
    unknown = pool.submit(check_unknown, stack)
    connection = pool.submit(connect, loaded.settings.project or "") if not existing else None
    findings += programs.result()
    bucket, of_state = state.result()
    findings += of_state
    simulated = ""
    if connection:
        google, of_connection = connection.result()
        findings += of_connection
        findings += check_google_cloud(pool, loaded, bucket, google, of_connection[-1])
        simulated = google.simulated if google else ""
    findings += cluster.result()
    findings += unknown.result()
    return Examination(stack, "environment", list(dict.fromkeys(findings)), simulated)
