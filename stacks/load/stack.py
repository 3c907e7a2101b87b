"""Load of a stack: from its config to settings that are checked, resolved and judged, once."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import ValidationError

from berth.components.berth import BerthInputs
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.validation import problems_of_validation
from berth.components.core.words import counted
from berth.components.hardware.names import ResourceApi
from berth.components.isolation import IsolationSettings
from berth.stacks.files import stack_file
from berth.stacks.files.stack_file import NAMESPACE, StackFile
from berth.stacks.load import service_code
from berth.stacks.load.reported import with_reported_sizes
from berth.stacks.policies.settings import Judgment, judge_engineer, judge_environment
from berth.stacks.settings.contract import EnvironmentContract, contract_of
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import KEYS, EnvironmentSettings
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
        problems, judgment = resolved.problems, Judgment()
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
                own_classes=contract.login is None,
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
        both, joint = ("both", "and") if kinds else ("neither", "nor")
        rule = (
            f"the stack sets {both} {NAMESPACE}:environment {joint} {NAMESPACE}:engineer; it must"
            " set one of them"
        )
        raise SettingsError(stack, [*problems, Problem((), rule)], file)
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
            problems += _problems_across_the_rest(stack, value, problems)
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
    code, problems = service_code.code_of_services(settings)
    problems = [*resolved.problems, *problems]
    # Only what is right is built with its code: a malformed application could not take it.
    wrong = {problem.path[:3] for problem in problems}
    resolved.services = [
        (
            replace(service, files=code.get(service.name, {}))
            if ("environment", "services", service.name) not in wrong
            else service
        )
        for service in resolved.services
    ]
    berths = [
        BerthInputs(
            workload,
            resolved.pools,
            environment=stack,
            stack=stack,
            isolation=settings.isolation_here,
            kuberay=settings.operators.kuberay,
            jobs=[
                job
                for job in resolved.jobs
                if job.cluster == workload.settings and not job.own_cluster
            ],
            project=settings.project,
            own_classes=settings.cluster.existing is None,
        )
        for workload in resolved.workloads()
    ]
    judgment = judge_environment(stack, settings, resolved.pools, berths)
    return Environment(stack, file, resolved, judgment, settings, berths), [
        *problems,
        *judgment.problems,
    ]


def _problems_across_the_rest(stack: str, value: Any, found: list[Problem]) -> list[Problem]:
    """Return problems across the valid settings of an environment that has invalid ones too."""
    value = {} if value is None else value
    if not isinstance(value, dict):
        return []
    pools = value["pools"] if isinstance(value.get("pools"), dict) else {}
    known = {field.alias or name for name, field in EnvironmentSettings.model_fields.items()}
    rest = {key: part for key, part in value.items() if key in known}
    wrong = [problem.path[1:] for problem in found]
    for _ in range(_ROUNDS):
        rest = _without(rest, wrong)
        if not rest.get("pools"):
            # Place, network and operators do not depend on the pools; everything on a pool does.
            rest = {key: part for key, part in rest.items() if key not in KEYS.values()} | {
                "pools": _STAND_IN
            }
        try:
            settings = EnvironmentSettings.model_validate(rest, by_alias=True, by_name=False)
        except ValidationError as error:
            # Without its broken part an entry may lack a required one: then the entry goes.
            wrong = [
                problem.path[:-1]
                for problem in problems_of_validation(error, EnvironmentSettings, ())
            ]
            continue
        lost = frozenset(pools) - frozenset(settings.pools)
        _, across = _environment(stack, settings, None, lost)
        return without_reported(found, (*name_problems(stack, settings), *across))
    return []


def without_reported(found: Iterable[Problem], of_rest: Iterable[Problem]) -> list[Problem]:
    """Return the problems of settings without their invalid parts, except those of the removal.

    A removed part is not reported as missing too; its absence means nothing, nor does a stand-in.
    """
    reported = {problem.path for problem in found}
    return [
        problem
        for problem in of_rest
        if problem.path not in reported and not problem.rests_on_any(reported)
        if _STAND_IN_NAME not in problem.path and _STAND_IN_NAME not in problem.message
    ]


_ROUNDS = 3
_STAND_IN_NAME = "berth-stand-in"
"""Name in place of one that is missing or wrong, so that all else can be checked."""
_STAND_IN = {_STAND_IN_NAME: {"machineType": "n2-standard-16", "nodes": 1}}
"""Pools of an environment without a valid one, so that its other settings can be checked."""


def rest_of(error: SettingsError) -> EngineerStack | None:
    """Return an engineer's stack without its invalid settings, or None.

    What is left is checked on the environment, so that all problems come at once.
    """
    value = error.file.settings.get("engineer") if error.file else None
    if not isinstance(value, dict):
        return None
    rest = _without(value, [problem.path[1:] for problem in error.problems])
    try:
        settings = EngineerSettings.model_validate(rest, by_alias=True, by_name=False)
    except ValidationError:
        return None
    if any(name_problems(error.stack, settings)):
        settings = settings.model_copy(update={"name": _STAND_IN_NAME})
    return EngineerStack(error.stack, settings, error.file)


def _without(value: Any, paths: Iterable[SettingPath]) -> Any:
    """Return a copy of a value without what is at some paths."""
    rest = copy.deepcopy(value)
    for path in sorted(paths, key=len, reverse=True):
        _remove(rest, path)
    return rest


def _remove(value: Any, path: SettingPath) -> None:
    for part in path[:-1]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return
    if path and isinstance(value, dict):
        value.pop(path[-1], None)
    elif path and isinstance(value, list) and isinstance(path[-1], int) and path[-1] < len(value):
        value[path[-1]] = None
