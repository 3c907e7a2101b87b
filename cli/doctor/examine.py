"""All checks of a stack, side by side, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from berth.cli.check import check as check_settings
from berth.cli.console import ProblemsError
from berth.cli.doctor import (
    backend,
    cluster,
    gke,
    machines_in_use,
    networks,
    project,
    quotas,
    reservations,
    tools,
    zones,
)
from berth.cli.doctor.backend import Backend
from berth.cli.doctor.findings import Finding, Topic
from berth.cli.doctor.google import Google, GoogleError
from berth.cli.doctor.machines_in_use import Running
from berth.stacks.load import Environment
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.stack_file import shown, stack_path

SETTINGS, CREDENTIALS, REACH = Topic("settings"), Topic("credentials"), Topic("Google Cloud")

_AT_ONCE = 8


@dataclass(frozen=True)
class Examination:
    """What was found.

    Attributes:
        stack: the stack.
        kind: `environment` or `engineer`.
        findings: in the order in which things are needed.
        simulated: what plays Google Cloud, "" where it is the real one.
    """

    stack: str
    kind: str
    findings: list[Finding] = field(default_factory=list)
    simulated: str = ""

    @property
    def missing(self) -> list[Finding]:
        """What an update would fail for."""
        return [each for each in self.findings if each.state == "missing"]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "stack": self.stack,
            "kind": self.kind,
            "simulated": self.simulated,
            "fine": not self.missing,
            "findings": [each.as_json() for each in self.findings],
        }


def examine(stack: str) -> Examination:
    """Look at everything that a stack needs."""
    checked = check_settings(stack)
    if checked.lines:
        raise ProblemsError(stack, checked.lines)
    findings = [
        SETTINGS.fine(f"{shown(stack_path(stack))} is good"),
        *(SETTINGS.unchecked(line) for line in checked.warnings),
    ]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        if not isinstance(checked.loaded, Environment):
            return Examination(stack, "engineer", [*findings, *_engineer(pool, stack)])
        settings = checked.loaded.settings
        existing = settings.cluster.existing
        if existing:
            there = pool.submit(cluster.check_existing, stack, settings, existing)
            on_machine = _machine(pool, stack, auth_plugin=False)
            return Examination(stack, "environment", [*findings, *on_machine(), *there.result()])
        return _environment(pool, stack, settings, findings)


def _engineer(pool: ThreadPoolExecutor, stack: str) -> list[Finding]:
    # Whether the kubeconfig needs Google's credential plugin shows when it is used.
    there = pool.submit(cluster.check_environment, stack)
    return [*_machine(pool, stack, auth_plugin=False)(), *there.result()]


def _machine(pool: ThreadPoolExecutor, stack: str, *, auth_plugin: bool) -> Callable[[], list[Finding]]:
    """Programs and state, begun; called, it waits for them."""
    programs = pool.submit(tools.check, auth_plugin=auth_plugin)
    state = pool.submit(backend.check, stack)
    return lambda: [*programs.result(), *state.result().findings]


def _environment(
    pool: ThreadPoolExecutor, stack: str, settings: EnvironmentSettings, findings: list[Finding]
) -> Examination:
    programs, state = pool.submit(tools.check, auth_plugin=True), pool.submit(backend.check, stack)
    google, about = _connected(settings)
    checks = _checks(pool, stack, settings, state.result())
    if google is None or about[-1].state == "missing":
        rest = [topic.unchecked(f"not checked: see {about[-1].topic}") for topic, _ in checks]
    else:
        begun = [(topic, pool.submit(check, google)) for topic, check in checks]
        rest = [finding for topic, future in begun for finding in _outcome(topic, future)]
    everything = [*findings, *programs.result(), *state.result().findings, *about, *rest]
    return Examination(stack, "environment", _each_once(everything), google.simulated if google else "")


def _connected(settings: EnvironmentSettings) -> tuple[Google | None, list[Finding]]:
    """Google Cloud, if it can be asked; the last finding is missing where there is nothing more to ask."""
    name = settings.project or ""
    try:
        google = Google(name)
    except GoogleError as error:
        return None, [_no_access(error)]
    whose = f" ({google.account})" if google.account else ""
    found = [CREDENTIALS.fine(f"Google credentials are there, and work{whose}")]
    try:
        return google, [*found, project.check_project(google)]
    except GoogleError as error:
        if error.kind == "disabled":  # said with the other APIs; the rest can be asked
            return google, found
        if error.kind in ("credentials", "unreachable"):
            return google, [_no_access(error)]
        return google, [*found, project.no_project(name, error)]


def _no_access(error: GoogleError) -> Finding:
    return (REACH if error.kind == "unreachable" else CREDENTIALS).missing(error.problem, error.remedy)


Check = Callable[[Google], list[Finding]]


def _checks(
    pool: ThreadPoolExecutor, stack: str, settings: EnvironmentSettings, state: Backend
) -> list[tuple[Topic, Check]]:
    """What is asked of Google, by topic."""
    name = settings.cluster.name or stack
    key = bool(backend.marks_of(stack_path(stack)).get("secretsprovider"))
    needed = project.apis(bucket=bool(state.bucket), key=key)
    lock, listed = Lock(), list[Future[list[Running]]]()

    def machines(google: Google) -> list[Running] | None:
        """Listed once for all who ask; None where the caller may not list them."""
        with lock:
            if not listed:
                listed.append(pool.submit(machines_in_use.running, google, name))
        try:
            return listed[0].result()
        except GoogleError as error:
            if error.kind == "disabled":
                raise
            return None

    checks: list[tuple[Topic, Check]] = [
        (project.APIS, lambda google: project.check_apis(google, needed)),
        (project.PERMISSIONS, lambda google: project.check_permissions(google, settings)),
        (zones.TOPIC, lambda google: zones.check(google, settings)),
    ]
    if settings.network.existing:
        checks.append((networks.TOPIC, lambda google: networks.check(google, settings)))
    if any(pool.capacity.kind == "reservation" for pool in settings.pools.values()):
        checks.append((reservations.TOPIC, lambda google: reservations.check(google, settings, machines(google))))
    checks += [
        (quotas.TOPIC, lambda google: quotas.check(google, settings, machines(google))),
        (gke.TOPIC, lambda google: gke.check(google, settings, name)),
    ]
    if state.bucket:
        checks.append((backend.TOPIC, lambda google: backend.check_bucket(google, state.bucket)))
    if key:
        checks.append((backend.TOPIC, lambda google: backend.check_key(google, stack)))
    return checks


def _outcome(topic: Topic, future: Future[list[Finding]]) -> list[Finding]:
    try:
        return future.result()
    except GoogleError as error:
        # What is not enabled is said with the APIs, and mended there.
        return [topic.unchecked(f"not checked: {error.problem}", "" if error.kind == "disabled" else error.remedy)]


def _each_once(findings: Iterable[Finding]) -> list[Finding]:
    return list(dict.fromkeys(findings))
