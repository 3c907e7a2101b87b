"""Stack that is meant where none is named: the selected one, or the only one that is up."""

from collections.abc import Collection

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.shell import lab_here
from berth.components.core.errors import BadInputError, BerthError
from berth.stacks.files.stack_file import stack_names


def stack_of_the_project() -> str:
    """Return the stack that `pulumi stack select` chose, else the only one that is up.

    Raises:
        BadInputError: neither is there, or Pulumi cannot be asked.
    """
    lab_here.require_up()
    stacks = f"stacks are {', '.join(stack_names())}"
    try:
        if selected := pulumi_stack.selected_stack():
            return selected
        up = _up()
    except BerthError as error:
        raise BadInputError(
            f"no stack is named, and Pulumi cannot say which one is selected: {error.problem}",
            f"name one with --stack STACK; {stacks}",
        ) from None
    if len(up) == 1:
        return up[0]
    state = f"{', '.join(up)} are up" if up else "no stack is up"
    raise BadInputError(
        f"no stack is named or selected, and {state}",
        f"name one with --stack STACK, or select it: pulumi stack select STACK; {stacks}",
    )


def one_of(stacks: Collection[str]) -> str | None:
    """Return the stack that is meant of several: the only one that is up, else the selected one.

    None if that does not decide, or if Pulumi cannot be asked.
    """
    try:
        up = [stack for stack in _up() if stack in stacks]
        meant = up[0] if len(up) == 1 else pulumi_stack.selected_stack()
    except BerthError:
        return None
    return meant if meant in up else None


def _up() -> list[str]:
    return [stack for stack, resources in pulumi_stack.stacks_in_backend().items() if resources]
