"""`berth upgrade`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from berth.cli.reach import completion
from berth.cli.reach.arguments import Json, by_path
from berth.cli.shell.console import err, out, print_json, print_problems
from berth.components.core.errors import FAILED, BadInputError

if TYPE_CHECKING:
    from berth.cli.verbs.upgrade.repository_upgrade import RepositoryUpgrade


def run(
    action: Annotated[
        Literal["plan"] | None, typer.Argument(metavar="plan", help="Show what is old.")
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack",
            "-s",
            help="The environment's stack.",
            callback=lambda stack: by_path(stack) if stack else stack,
            autocompletion=completion.stacks,
        ),
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and write nothing.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Move this repository, which `berth new` wrote, to the berth that is installed.

    Prints the changelog in between, and replaces the files that nobody edited. An edited file
    stays; where its template changed, the new text goes to FILE.new. Settings of stacks are never
    replaced: they are checked with the new version.

    `berth upgrade plan` writes nothing: it shows what is old in an environment, which versions go
    together, and the upgrades in their order, with what each restarts.

    Exit code 0 if the repository is at the installed version, 1 if settings of a stack need an edit
    then, 2 if nothing could be changed. With `plan` 0 if nothing is old, 1 if something is or the
    cluster cannot be asked, 2 for a wrong stack.

    Example: `berth upgrade --dry-run`

    Example: `berth upgrade plan -s prod`
    """
    if action:
        return _plan(stack, dry_run=dry_run, as_json=as_json)
    if stack:
        raise BadInputError(
            "--stack is for the plan of an environment", f"run: berth upgrade plan -s {stack}"
        )
    from berth.cli.repository.check import check_all
    from berth.cli.verbs.upgrade.repository_upgrade import prepared_upgrade
    from berth.stacks.files.stack_file import stack_names

    upgrade = prepared_upgrade()
    if upgrade.needed and not dry_run:
        upgrade.apply()
    checked = check_all(stack_names())
    problems = [result for result in checked if result.lines]
    if as_json:
        print_json(upgrade.as_json(checked))
    else:
        _print(upgrade)
    for result in problems:
        print_problems(result.stack, result.lines)
    for line in _remarks(upgrade, problems=bool(problems), dry_run=dry_run):
        err.print(line)
    return FAILED if problems else 0


def _plan(stack: str | None, *, dry_run: bool, as_json: bool) -> int:
    from berth.cli.reach.selected_stack import stack_of_the_project
    from berth.cli.verbs.upgrade.plan import print_upgrade_plan

    if dry_run:
        raise BadInputError("`berth upgrade plan` never writes anything; leave --dry-run out")
    return print_upgrade_plan(stack or stack_of_the_project(), as_json=as_json)


def _print(upgrade: RepositoryUpgrade) -> None:
    name = upgrade.folder.name
    if not upgrade.needed:
        out.print(f"{name} is up to date with berth {upgrade.version}")
        return
    out.print(f"{name}: berth {upgrade.record.version} → {upgrade.version}\n")
    for entry in upgrade.changelog():
        out.print(f"{entry}\n")
    for change in upgrade.changes:
        out.print(f"  {change.action:7} {change.path}")
        if change.action == "merge":
            out.print(f"{change.diff()}\n")


def _remarks(upgrade: RepositoryUpgrade, *, problems: bool, dry_run: bool) -> Iterator[str]:
    if upgrade.requires_another:
        yield f"requirements.txt requires another berth: write {upgrade.line} into it"
    if dry_run:
        yield "nothing was written: --dry-run"
        return
    edited = [f"{change.path}.new" for change in upgrade.changes if change.action == "merge"]
    if edited:
        yield f"you edited these files: take over what is new, then delete {', '.join(edited)}"
    if problems:
        yield "edit these settings, then run `berth check`"
    elif upgrade.needed:
        yield "`berth preview -s STACK` shows what the new version changes in an environment"
