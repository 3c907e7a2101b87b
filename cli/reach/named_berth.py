"""Berth that a command's arguments name, by the stacks' files."""

from collections.abc import Mapping
from typing import Any

from berth.cli.reach.berth_names import names_in, names_of_stack, own_name
from berth.cli.reach.selected_stack import one_of
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.project import shown_path
from berth.stacks.files import stack_file


def berth_and_stack(name: str | None, stack: str | None) -> tuple[str, str]:
    """Return the berth that arguments name, by the stacks' files, and a stack that leads to it.

    Of several stacks that have the name, the selected one is meant, else the only one that is up.

    Raises:
        BadInputError: no berth is named, or no stack or several stacks have it.
    """
    if stack is not None:
        return _berth_of_stack(name, stack), stack
    stacks = stack_file.all_settings()
    if name is None:
        raise BadInputError(
            "no berth is named", "name one: NAME, or --stack STACK of an engineer's own stack"
        )
    owners = [owner for owner, settings in stacks.items() if own_name(owner, settings) == name]
    owners += [owner for owner, settings in stacks.items() if name in names_in(settings)]
    if not owners:
        raise _no_such_berth(name, stacks)
    meant = owners[0] if len(owners) == 1 else one_of(owners)
    if not meant:
        options = " or ".join(f"--stack {owner}" for owner in owners)
        raise BadInputError(f"more than one stack has a berth {name!r}; choose one: {options}")
    return name, meant


def _berth_of_stack(name: str | None, stack: str) -> str:
    settings = stack_file.file_of_stack(stack).settings
    meant = name or own_name(stack, settings)
    if meant is None:
        names = names_in(settings)
        choose = f": {', '.join(names)}" if names else ""
        raise BadInputError(f"stack {stack} is an environment; name a berth on it{choose}")
    return meant


def _no_such_berth(name: str, stacks: Mapping[str, Mapping[str, Any]]) -> BadInputError:
    names: set[str] = set()
    for owner, settings in stacks.items():
        names.update(names_of_stack(owner, settings))
    folder = shown_path(stack_file.stack_path("NAME").parent)
    return BadInputError(
        f"no stack of {folder}/ has a berth {name!r}{did_you_mean(name, names)};"
        " if its stack file isn't in this checkout, pass --stack ENVIRONMENT"
    )
