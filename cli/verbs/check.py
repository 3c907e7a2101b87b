"""`berth check`."""

from typing import Annotated

import typer

from berth.cli.reach import completion
from berth.cli.reach.arguments import Json
from berth.cli.shell.console import Table, err, out, print_json, print_problems, print_result
from berth.components.core.errors import BAD_INPUT, BadInputError


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
    from berth.stacks.files.stack_file import named, stack_names
    from berth.stacks.policies import registry

    if policies:
        table = Table("policy", "asks", "without it")
        for policy in registry.policies().values():
            table.add_row(policy.name, policy.asks, policy.why)
        return print_result(
            [policy.as_json() for policy in registry.policies().values()], table, as_json=as_json
        )
    results = check.check_all([named(stack) for stack in stacks] if stacks else stack_names())
    if as_json:
        print_json([result.as_json() for result in results])
        return BAD_INPUT if any(result.lines for result in results) else 0
    for result in results:
        if result.lines:
            print_problems(result.stack, result.lines)
        else:
            out.print(f"[green]✓[/] {result.stack} ({result.summary})", markup=True)
        for waiver in result.waivers:
            err.print(f"  note: {waiver}")
        for note in result.notes:
            err.print(f"  note: {note}")
        for line in result.warnings:
            err.print(f"  warning: {line}", style="yellow")
    if not results:
        raise BadInputError("there is no stack: stacks/ has no Pulumi.<stack>.yaml")
    return BAD_INPUT if any(result.lines for result in results) else 0
