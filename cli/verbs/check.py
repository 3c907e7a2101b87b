"""`berth check`."""

from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.reach import completion
from berth.cli.reach.arguments import Json
from berth.cli.shell.console import err, out, print_json, print_problems, print_result
from berth.cli.shell.table import Table
from berth.components.core.errors import BAD_INPUT, BadInputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berth.cli.repository.checked_stack import CheckedStack
    from berth.stacks.policies.policy import Policy


def run(
    stacks: Annotated[
        list[str] | None,
        typer.Argument(
            help="Stacks to check.",
            show_default="all with a file",
            autocompletion=completion.other_stacks,
        ),
    ] = None,
    *,
    policies: Annotated[
        bool,
        typer.Option(
            "--policies", help="Show the policies that settings are held to, and check nothing."
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Check settings and policies without Pulumi: all problems at once, with file and line.

    Contacts and changes nothing. Exit code 0 if there is no problem, 2 if there is one.

    Example: `berth check lab`
    """
    from berth.cli.repository import check
    from berth.stacks.files.stack_file import stack_name_of, stack_names

    if policies:
        return _show_policies(as_json=as_json)
    results = check.check_all(
        [stack_name_of(stack) for stack in stacks] if stacks else stack_names()
    )
    if as_json:
        print_json([result.as_json() for result in results])
    else:
        for result in results:
            _print_check(result)
        if not results:
            raise BadInputError(
                "there is no stack: stacks/ has no Pulumi.<stack>.yaml",
                "run berth in the folder of your Pulumi project",
            )
    return BAD_INPUT if any(result.lines for result in results) else 0


def _show_policies(*, as_json: bool) -> int:
    from berth.stacks.policies import registry

    policies = registry.policies().values()
    documents = [policy.as_json() for policy in policies]
    return print_result(documents, policies_table(policies), as_json=as_json)


def policies_table(policies: "Iterable[Policy]") -> Table:
    """Return policies for people."""
    table = Table("policy", "asks", "without it")
    for policy in policies:
        table.add_row(policy.name, policy.asks, policy.why)
    return table


def _print_check(result: "CheckedStack") -> None:
    if result.lines:
        print_problems(result.stack, result.lines)
    else:
        out.print(f"[green]✓[/] {result.stack} ({result.summary})", markup=True)
    for note in (*result.waivers, *result.notes):
        err.print(f"  note: {note}")
    for line in result.warnings:
        err.print(f"  warning: {line}", style="yellow")
