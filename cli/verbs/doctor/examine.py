"""Examination of a stack: its checks, run side by side, and their findings for people."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group
from rich.text import Text

from berth.cli.repository.check import check_stack as check_settings
from berth.cli.shell.console import ProblemsError
from berth.cli.verbs.doctor import capacity, cluster, machine, place, project
from berth.cli.verbs.doctor.capacity import Running
from berth.cli.verbs.doctor.findings import Finding, State, Topic
from berth.cli.verbs.doctor.google import Google, GoogleError
from berth.components.core.project import shown_path
from berth.components.core.words import counted, is_or_are
from berth.stacks.files.stack_file import pulumi_keys, stack_path
from berth.stacks.load.stack import Environment
from berth.stacks.settings.environment import EnvironmentSettings

SETTINGS, CREDENTIALS, REACH = Topic("settings"), Topic("credentials"), Topic("Google Cloud")

_AT_ONCE = 8


@dataclass(frozen=True)
class Examination:
    """Result of all checks."""

    stack: str
    kind: str
    """`environment` or `engineer`."""
    findings: list[Finding] = field(default_factory=list)
    """Findings in the order in which an update needs things."""
    simulated: str = ""
    """Name of the simulation of Google Cloud; "" for the real one."""

    @property
    def missing(self) -> list[Finding]:
        """Findings for which an update would fail."""
        return [finding for finding in self.findings if finding.state == "missing"]

    def as_json(self) -> dict[str, Any]:
        """Return the result for programs."""
        facts = {
            "stack": self.stack,
            "kind": self.kind,
            "simulated": self.simulated,
            "fine": not self.missing,
        }
        return {**facts, "findings": list(map(asdict, self.findings))}


def examine(stack: str) -> Examination:
    """Check everything that an update of a stack needs."""
    checked = check_settings(stack)
    if checked.lines:
        raise ProblemsError(stack, checked.lines)
    findings = [
        SETTINGS.found("valid", file=shown_path(stack_path(stack))),
        *(SETTINGS.unchecked(line) for line in checked.warnings),
    ]
    loaded = checked.loaded
    of_environment = isinstance(loaded, Environment)
    existing = loaded.settings.cluster.existing if isinstance(loaded, Environment) else None
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # Whether a given kubeconfig needs Google's credential plugin shows when it is used.
        programs = pool.submit(machine.check_programs, auth_plugin=of_environment and not existing)
        state = pool.submit(machine.check_state, stack)
        if not isinstance(loaded, Environment):
            on_cluster = [pool.submit(cluster.check_environment, stack)]
        elif existing:
            on_cluster = [pool.submit(cluster.check_existing, loaded, existing)]
        else:
            on_cluster = [pool.submit(cluster.check_own, stack, loaded.berths)]
        simulated, of_google = "", list[Finding]()
        if isinstance(loaded, Environment):
            on_cluster.append(pool.submit(cluster.check_unknown, stack))
            if not existing:
                simulated, of_google = _on_google(pool, loaded, state)
        findings += [*programs.result(), *state.result()[1], *of_google]
        findings += [finding for part in on_cluster for finding in part.result()]
    kind = "environment" if of_environment else "engineer"
    return Examination(stack, kind, list(dict.fromkeys(findings)), simulated)


def _on_google(
    pool: ThreadPoolExecutor, loaded: Environment, state: Future[tuple[str, list[Finding]]]
) -> tuple[str, list[Finding]]:
    """Return the name of the simulation, "" for none, and the findings about Google Cloud."""
    stack, settings = loaded.stack, loaded.settings
    google, about = _connected(settings)
    checks = _checks(stack, settings, state.result()[0])
    if google is None or about[-1].state == "missing":
        rest = [topic.unchecked(f"not checked: see {about[-1].topic}") for topic, _ in checks]
    else:
        machines = pool.submit(capacity.running, google, settings.cluster.name or stack)
        begun = [pool.submit(_outcome, topic, check, google, machines) for topic, check in checks]
        rest = [finding for future in begun for finding in future.result()]
    return google.simulated if google else "", [*about, *rest]


def _connected(settings: EnvironmentSettings) -> tuple[Google | None, list[Finding]]:
    """Return Google Cloud, or None; the last finding is `missing` if nothing more can be asked."""
    name = settings.project or ""
    try:
        google = Google(name)
    except GoogleError as error:
        return None, [_no_access(error)]
    account = f" ({google.account})" if google.account else ""
    found = [CREDENTIALS.found("work", account=account)]
    try:
        return google, [*found, project.check_project(google)]
    except GoogleError as error:
        if error.kind == "disabled":  # reported with the other APIs; the rest can be asked
            return google, found
        if error.kind in ("credentials", "unreachable"):
            return google, [_no_access(error)]
        return google, [*found, project.no_project(name, error)]


def _no_access(error: GoogleError) -> Finding:
    return (REACH if error.kind == "unreachable" else CREDENTIALS).missing(
        error.problem, error.remedy
    )


Check = Callable[[Google, Future[list[Running]]], Iterable[Finding]]


def _checks(stack: str, settings: EnvironmentSettings, bucket: str) -> list[tuple[Topic, Check]]:
    provider = pulumi_keys(stack).get("secretsprovider", "")
    needed = project.apis(settings, bucket=bool(bucket), key=provider.startswith(machine.KMS))
    reserved = any(pool.capacity.kind == "reservation" for pool in settings.pools.values())
    checks: list[tuple[Topic, Check, object]] = [
        (project.APIS, lambda google, _: project.check_apis(google, needed), True),
        (project.PERMISSIONS, lambda google, _: project.check_permissions(google, settings), True),
        (place.MACHINES, lambda google, _: place.check_zones(google, settings), True),
        (
            place.NETWORKS,
            lambda google, _: place.check_networks(google, settings),
            settings.network.existing,
        ),
        (
            capacity.RESERVATIONS,
            lambda google, all_: capacity.check_reservations(google, settings, _known(all_)),
            reserved,
        ),
        (
            capacity.QUOTA,
            lambda google, all_: capacity.check_quotas(google, settings, _known(all_)),
            True,
        ),
        (
            place.GKE,
            lambda google, _: place.check_gke(google, settings, settings.cluster.name or stack),
            True,
        ),
        (machine.STATE, lambda google, _: [machine.check_bucket(google, bucket)], bucket),
        (machine.STATE, lambda google, _: [machine.check_key(google, provider)], provider),
    ]
    return [(topic, check) for topic, check, applies in checks if applies]


def _known(machines: Future[list[Running]]) -> list[Running] | None:
    """Return the machines that run in the project; None without the right to list them."""
    try:
        return machines.result()
    except GoogleError as error:
        if error.kind == "disabled":
            raise
        return None


def _outcome(
    topic: Topic, check: Check, google: Google, machines: Future[list[Running]]
) -> list[Finding]:
    try:
        return list(check(google, machines))
    except GoogleError as error:
        # A disabled API is reported with the APIs.
        return [
            topic.unchecked(
                f"not checked: {error.problem}", "" if error.kind == "disabled" else error.remedy
            )
        ]


_MARKS: dict[State, tuple[str, str]] = {
    "fine": ("✓", "green"),
    "warning": ("!", "yellow"),
    "missing": ("✗", "bold red"),
    "unchecked": ("–", "yellow"),
}


def lines(examination: Examination) -> Group:
    """Return the findings of a stack, and a last line that sums them up."""
    head = (
        [Text(f"Google Cloud is simulated by {examination.simulated}.", "yellow")]
        if examination.simulated
        else []
    )
    width = max(len(finding.topic) for finding in examination.findings)
    rows = [line for finding in examination.findings for line in _entry(finding, width + 4)]
    return Group(*head, *rows, _sum(examination))


def _entry(finding: Finding, column: int) -> Iterator[Text]:
    """Yield a finding's text beside the topic, and its commands below, each unbroken, to paste."""
    mark, style = _MARKS[finding.state]
    yield Text.assemble((mark, style), " ", (finding.topic.ljust(column - 2), "bold"), finding.text)
    for line in finding.remedy.split("\n") if finding.remedy else []:
        yield Text(f"{' ' * column}{line}", "cyan", no_wrap=True, overflow="ignore")


def _sum(examination: Examination) -> Text:
    unchecked = sum(finding.state == "unchecked" for finding in examination.findings)
    rest = f"; {unchecked} not checked" if unchecked else ""
    missing = len(examination.missing)
    if missing:
        return Text(
            f"{counted(missing, 'thing')} {is_or_are(missing)} missing{rest};"
            f" run the commands, then: berth doctor -s {examination.stack}",
            "bold",
        )
    return Text(f"nothing is missing{rest}", "bold")
