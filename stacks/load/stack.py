"""Load of a stack: from its config to settings that are checked, resolved and judged, once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pydantic import ValidationError

from berth.components.berth import BerthInputs
from berth.components.core.errors import BadInputError
from berth.components.core.manifest import Manifest
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem
from berth.components.core.project import path_of_setting
from berth.components.core.validation import problems_of_validation
from berth.components.core.words import counted
from berth.components.hardware.names import ResourceApi
from berth.components.isolation import IsolationSettings
from berth.components.ray import RayClusterSettings, RayJobSettings
from berth.stacks.files import manifest_file, stack_file
from berth.stacks.files.stack_file import NAMESPACE, StackFile
from berth.stacks.load import service_code
from berth.stacks.load.reported import with_reported_sizes
from berth.stacks.load.valid_rest import STAND_IN_NAME, valid_rest, without_paths, without_reported
from berth.stacks.policies.settings import Judgment, judge_engineer, judge_environment
from berth.stacks.settings.contract import EnvironmentContract, contract_of
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_engineer, resolve_environment
from berth.stacks.settings.resolved import Resolved
from berth.stacks.settings.rules.names import BERTH_NAMES, STACKS, NameOrStack, name_problems
from berth.stacks.settings.rules.own_stack import OWN_STACKS

KINDS: dict[str, type[EnvironmentSettings | EngineerSettings]] = {
    "environment": EnvironmentSettings,
    "engineer": EngineerSettings,
}
"""Kinds of stack, by the key under which their settings stand."""


class SettingsError(BadInputError):
    """Settings with problems; `lines` has one line for each, with its place in the file."""

    def __init__(self, stack: str, problems: Sequence[Problem], file: StackFile | None) -> None:
        line_of = {
            problem: (file.line(problem.path) if file else None) or 0 for problem in problems
        }
        self.stack = stack
        self.file = file
        self.problems = sorted(problems, key=lambda problem: line_of[problem])
        self.kind = next((kind for kind in KINDS if file and kind in file.settings), None)
        self.lines = [located(problem, file) for problem in self.problems]
        found = f"{counted(len(problems), 'problem')} in its settings"
        super().__init__("\n".join([f"stack {stack}: {found}; nothing was changed", *self.lines]))


def located(problem: Problem, file: StackFile | None) -> str:
    """Return a problem as a line: place in the file, setting, what is wrong."""
    place = ""
    if file is not None:
        line = file.line(problem.path)
        place = f"{file.shown_path}:{line}: " if line else f"{file.shown_path}: "
    return f"{place}{problem}"


@dataclass(frozen=True)
class Judged:
    """Stack that is resolved and held to policies."""

    stack: str
    file: StackFile | None
    resolved: Resolved
    judgment: Judgment

    @property
    def warnings(self) -> list[Problem]:
        """Settings that work, but probably not as intended."""
        return [*self.resolved.warnings, *self.judgment.warnings]


@dataclass(frozen=True)
class Environment(Judged):
    """Environment: its settings, and all that is derived from them before the engine runs."""

    kind: ClassVar = "environment"
    settings: EnvironmentSettings
    berths: Sequence[BerthInputs]
    """Inputs of everything that has a RayCluster, with the manifests."""
    manifests: Mapping[str, Sequence[Manifest]] = field(default_factory=dict)
    """Objects of the files that the settings name, by the operator that they install."""

    def contract(self, resource_api: ResourceApi = "v1") -> EnvironmentContract:
        """Return what the environment's stack tells engineers' stacks."""
        return contract_of(self.settings, self.stack, self.resolved, resource_api)


@dataclass(frozen=True)
class EngineerBerth(Judged):
    """Berth of an engineer's own stack on its environment, with its manifests, judged."""

    kind: ClassVar = "engineer"
    contract: EnvironmentContract
    berth: BerthInputs


@dataclass(frozen=True)
class EngineerStack:
    """Engineer's own stack, before its environment is known."""

    kind: ClassVar = "engineer"
    stack: str
    settings: EngineerSettings
    file: StackFile | None

    def on(self, contract: EnvironmentContract) -> EngineerBerth:
        """Return the berth on its environment.

        Raises:
            SettingsError: the berth doesn't fit there, or breaks a policy that holds there.
        """
        resolved = resolve_engineer(self.settings, self.stack, contract)
        problems = resolved.problems
        judgment = Judgment()
        berths = [
            BerthInputs(
                workload,
                resolved.pools,
                environment=contract.name,
                stack=self.stack,
                resource_api=contract.resource_api,
                isolation=contract.isolation or IsolationSettings(),
                kuberay=contract.kuberay,
                part=self.settings.part,
                contract=contract.model_dump_json(by_alias=True, exclude_none=True),
                project=contract.project,
                created=contract.login is None,
            )
            for workload in resolved.workloads()
        ]
        for berth in berths:
            judgment = judge_engineer(contract, resolved.pools, berth)
            problems = [*problems, *judgment.problems]
        if problems:
            raise SettingsError(self.stack, problems, self.file)
        return EngineerBerth(self.stack, self.file, resolved, judgment, contract, berths[0])


def load_stack(stack: str) -> Environment | EngineerStack:
    """Load a stack by its file.

    Raises:
        StackFileError: there is no such stack, or its file cannot be read.
        SettingsError: the settings have problems.
    """
    file = stack_file.file_of_stack(stack)
    return load(stack, file.settings, file)


def load_text(stack: str, text: str) -> Environment | EngineerStack:
    """Load a stack by a text in place of its file."""
    file = stack_file.parse_stack_file(stack_file.stack_path(stack), text)
    return load(stack, file.settings, file)


def load(
    stack: str, values: Mapping[str, Any], file: StackFile | None
) -> Environment | EngineerStack:
    """Load a stack: check everything that can be checked without any other stack.

    Raises:
        SettingsError: the settings have problems; the error has all of them.
    """
    kinds = [kind for kind in KINDS if kind in values]
    problems = [
        Problem((key,), f"unknown key '{NAMESPACE}:{key}'{did_you_mean(key, KINDS)}")
        for key in values
        if key not in KINDS
    ]
    if len(kinds) != 1:
        message = (
            f"the stack sets both {NAMESPACE}:environment and {NAMESPACE}:engineer; it must set one"
            " of them"
            if kinds
            else f"the stack sets neither {NAMESPACE}:environment nor {NAMESPACE}:engineer; it must"
            " set one of them"
        )
        raise SettingsError(stack, [*problems, Problem((), message)], file)
    (kind,) = kinds
    value = values[kind]
    if kind == "environment":
        value, unasked = with_reported_sizes(value)
        problems += unasked
    try:
        settings = KINDS[kind].model_validate(
            {} if value is None else value, by_alias=True, by_name=False
        )
    except ValidationError as error:
        problems += problems_of_validation(error, KINDS[kind], (kind,))
        if kind == "environment":
            problems += _problems_of_rest(stack, value, problems)
        elif not (isinstance(value, dict) and value.get("name")):
            problems += BERTH_NAMES.problems(NameOrStack(None, stack), ("engineer",))
        raise SettingsError(stack, problems, file) from None
    problems += name_problems(stack, settings)
    loaded: Environment | EngineerStack
    if isinstance(settings, EnvironmentSettings):
        loaded, across = _environment(stack, settings, file)
        problems += [*STACKS.problems(stack, ("environment",)), *across]
    else:
        loaded = EngineerStack(stack, settings, file)
        problems += OWN_STACKS.problems(settings, ("engineer",))
    if problems:
        raise SettingsError(stack, problems, file)
    return loaded


def _environment(
    stack: str,
    settings: EnvironmentSettings,
    file: StackFile | None,
    unknown_pools: frozenset[str] = frozenset(),
) -> tuple[Environment, list[Problem]]:
    """Return an environment, and the problems across its settings with those of policies."""
    resolved = resolve_environment(settings, unknown_pools=unknown_pools)
    code, problems_of_code = service_code.code_of_services(settings)
    manifests, problems_of_manifests = _manifests(settings)
    problems = [*resolved.problems, *problems_of_code, *problems_of_manifests]
    # Only what is right is built with its code: a malformed application could not take it.
    wrong = {problem.path[:3] for problem in problems}
    for position, service in enumerate(resolved.services):
        if ("environment", "services", service.name) not in wrong:
            files = code.get(service.name, {})
            resolved.services[position] = replace(service, files=files)
    berths = [
        BerthInputs(
            workload,
            resolved.pools,
            environment=stack,
            stack=stack,
            isolation=settings.isolation_here,
            kuberay=settings.operators.kuberay,
            jobs=_jobs_on(workload.settings, resolved),
            project=settings.project,
            created=settings.cluster.existing is None,
        )
        for workload in resolved.workloads()
    ]
    judgment = judge_environment(stack, settings, resolved.pools, berths)
    environment = Environment(stack, file, resolved, judgment, settings, berths, manifests)
    return environment, [*problems, *judgment.problems]


def _manifests(
    settings: EnvironmentSettings,
) -> tuple[Mapping[str, Sequence[Manifest]], list[Problem]]:
    """Return the objects of the file from which DraNet is installed, and problems with it."""
    dranet = settings.operators.dranet
    if dranet.source != "manifest" or dranet.manifest is None:
        return {}, []
    try:
        return {"dranet": manifest_file.read_manifests(path_of_setting(dranet.manifest))}, []
    except BadInputError as error:
        return {}, [Problem(("environment", "operators", "dranet", "manifest"), str(error))]


def _jobs_on(cluster: RayClusterSettings, resolved: Resolved) -> list[RayJobSettings]:
    """Return the jobs that run on the RayCluster of another owner."""
    return [job for job in resolved.jobs if job.cluster == cluster and not job.own_cluster]


def _problems_of_rest(stack: str, value: Any, problems: list[Problem]) -> list[Problem]:
    """Return problems across the valid settings of an environment that has invalid ones too."""
    rest = valid_rest(value, problems)
    if rest is None:
        return []
    _, across = _environment(stack, rest.settings, None, rest.lost_pools)
    return without_reported(problems, (*name_problems(stack, rest.settings), *across))


def rest_of(error: SettingsError) -> EngineerStack | None:
    """Return an engineer's stack without its invalid settings, or None.

    What is left is checked on the environment, so that all problems come at once.
    """
    value = error.file.settings.get("engineer") if error.file else None
    if not isinstance(value, dict):
        return None
    rest = without_paths(value, [problem.path[1:] for problem in error.problems])
    try:
        settings = EngineerSettings.model_validate(rest, by_alias=True, by_name=False)
    except ValidationError:
        return None
    if any(name_problems(error.stack, settings)):
        settings = settings.model_copy(update={"name": STAND_IN_NAME})
    return EngineerStack(error.stack, settings, error.file)
