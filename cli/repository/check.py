"""Check of stacks' settings, without the engine."""

from collections.abc import Callable, Iterable
from functools import cache

from berth.cli.repository.checked_stack import CheckedStack
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem
from berth.stacks.files import stack_file
from berth.stacks.load.stack import (
    EngineerBerth,
    EngineerStack,
    Environment,
    SettingsError,
    load_stack,
    load_text,
    rest_of,
)
from berth.stacks.load.valid_rest import without_reported

StackLoader = Callable[[str], Environment | EngineerStack]


def check_stack(
    stack: str, text: str | None = None, load: StackLoader = load_stack
) -> CheckedStack:
    """Check one stack's settings.

    An engineer's stack is checked against the environment's file where there is one here.

    Args:
        stack: name of the stack.
        text: content of its file; None for the file as it is.
        load: function that loads a stack by its name.
    """
    try:
        loaded = load(stack) if text is None else load_text(stack, text)
        if isinstance(loaded, EngineerStack):
            return CheckedStack(stack, loaded.kind, loaded=_on_environment(loaded, load))
        return CheckedStack(stack, loaded.kind, loaded=loaded)
    except SettingsError as error:
        return CheckedStack(stack, error.kind, _with_rest(error, load).lines)
    except BadInputError as error:
        return CheckedStack(stack, None, [str(error)])


def check_all(stacks: Iterable[str]) -> list[CheckedStack]:
    """Check several stacks, each loaded once."""
    load = cache(load_stack)
    return [check_stack(stack, load=load) for stack in stacks]


def _with_rest(error: SettingsError, load: StackLoader) -> SettingsError:
    """Return all problems of a stack, with those of its valid settings on its environment."""
    rest = rest_of(error)
    if rest is None:
        return error
    try:
        _on_environment(rest, load)
    except SettingsError as of_rest:
        more = without_reported(error.problems, of_rest.problems)
        return SettingsError(error.stack, [*error.problems, *more], error.file)
    return error


def _on_environment(loaded: EngineerStack, load: StackLoader) -> EngineerBerth | EngineerStack:
    """Return the berth on its environment; without a readable environment the stack itself."""
    environment = loaded.settings.environment
    own_part = loaded.settings.part == "cluster" and not stack_file.stack_path(environment).exists()
    if "/" in environment or own_part:
        return loaded  # of another project: only `pulumi preview` can ask its state, or the cluster
    try:
        of_environment = load(environment)
    except SettingsError as error:
        if error.kind == "environment":
            return loaded  # the environment's own check reports its problems
    except BadInputError:
        pass  # there is no such stack
    else:
        if isinstance(of_environment, Environment):
            return loaded.on(of_environment.contract())
    raise _no_environment(loaded)


def _no_environment(loaded: EngineerStack) -> SettingsError:
    """Return the error of an engineer's stack whose environment is not one."""
    environment = loaded.settings.environment
    stacks = stack_file.all_settings()
    environments = [stack for stack, settings in stacks.items() if "environment" in settings]
    problem = Problem(
        ("engineer", "environment"),
        f"there is no environment {environment!r}{did_you_mean(environment, environments)}",
    )
    return SettingsError(loaded.stack, [problem], loaded.file)
