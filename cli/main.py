"""The `berth` command."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from berth.cli import engineer, lab, lab_real, verbs, verify
from berth.cli.console import BAD_INPUT, err, fail, out, print_json

app = typer.Typer(
    name="berth",
    help="Every engineer gets a berth on shared GPUs. `pulumi up -s STACK` makes things; berth checks and shows them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
lab.app.add_typer(lab_real.app, name="real")
app.add_typer(engineer.app, name="engineer")
app.add_typer(lab.app, name="lab")
app.add_typer(verify.app, name="verify")

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command()
def check(
    stacks: Annotated[
        list[str] | None, typer.Argument(help="Stacks to check; all that have a file, if none is named.")
    ] = None,
    *,
    policies: Annotated[
        bool, typer.Option("--policies", help="Show the policies that settings are held to, and check nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check settings and policies without Pulumi: every problem at once, with file and line.

    Exit code 0 if all is well, 2 if not. Nothing is contacted and nothing is changed.
    """
    from berth.cli import check as verb  # noqa: PLC0415
    from berth.stacks.stack_file import stack_names  # noqa: PLC0415

    if policies:
        print_json(verb.policies()) if as_json else out.print(verb.policies_table())
        return
    found = verb.check_all(stacks or stack_names())
    bad = [each for each in found if each.lines]
    if as_json:
        print_json([each.as_json() for each in found])
    else:
        for each in found:
            if each.lines:
                err.print(f"[bold red]✗[/] {each.stack}")
                for line in each.lines:
                    err.print(f"  {line}", markup=False)
            else:
                out.print(f"[green]✓[/] {each.stack} ({each.summary})")
            for waiver in each.waivers:
                err.print(f"  note: {waiver}", markup=False)
            for line in each.warnings:
                err.print(f"  warning: {line}", markup=False, style="yellow")
        if not found:
            fail("there is no stack: stacks/ holds no Pulumi.<stack>.yaml", BAD_INPUT)
    if bad:
        raise typer.Exit(BAD_INPUT)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a stack's config file, for editors."""
    from berth.cli.check import schema_text  # noqa: PLC0415

    sys.stdout.write(schema_text())


@app.command()
def status(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack of the environment, or an engineer's on it.")],
    interval: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks of --watch.")] = 2.0,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on until Ctrl-C, and show what waits for what.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what is there: node pools, berths, clusters, jobs, services, with state and counts from the API server.

    Exit code 0 if all are ready and jobs run or have ended well, 1 if one does not or the cluster can't be asked, 2 for a stack that is wrong or not up;
    with --watch 0.
    """
    if watch:
        with verbs.plain_errors():
            from berth.cli import watch as watching  # noqa: PLC0415

            raise typer.Exit(watching.watch(stack, interval, as_json=as_json))
    from berth.cli import status as verb  # noqa: PLC0415
    from berth.cli.environment import NoSuchStackError, NotUpError, StatusError  # noqa: PLC0415

    try:
        fleet = verb.fleet_of(stack)
    except (NoSuchStackError, NotUpError) as error:
        fail(str(error), BAD_INPUT)
    except StatusError as error:
        fail(str(error), 1)
    if as_json:
        print_json(fleet.as_json())
    else:
        out.print(verb.table(fleet))
    if not fleet.ready:
        raise typer.Exit(1)


@app.command()
def doctor(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack of an environment, or of an engineer.")],
    *,
    as_json: Json = False,
) -> None:
    """Check from outside what an update needs: tools, state, credentials, project, APIs, quotas, reservations, versions.

    Nothing is changed. Exit code 0 if nothing is missing, 1 if something is, 2 for wrong settings or an unknown stack.
    """
    from berth.cli.doctor.examine import BadSettingsError, examine  # noqa: PLC0415
    from berth.cli.doctor.report import lines  # noqa: PLC0415

    try:
        found = examine(stack)
    except BadSettingsError as error:
        fail(str(error), BAD_INPUT)
    if as_json:
        print_json(found.as_json())
    else:
        out.print(lines(found))
    if found.missing:
        raise typer.Exit(1)


@app.command()
def preview(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack of an environment, or an engineer's.")],
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print markdown for a pull request.")] = False,
    as_json: Json = False,
    allow_destroy: Annotated[
        bool, typer.Option("--allow-destroy", help="Exit with 0 though running work or capacity is lost.")
    ] = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="Look first what is really there.")] = False,
    expect_no_changes: Annotated[
        bool, typer.Option("--expect-no-changes", help="Exit with 4 if anything would change.")
    ] = False,
) -> None:
    """Show what `pulumi up` would do: what it makes, changes, breaks, whose berths it reaches, what it costs.

    It is the engine's own preview of the same program; nothing is changed. Exit code 0 if there is nothing to do or nothing
    is lost, 3 if running work or capacity is lost, 4 with --expect-no-changes if anything would change, 1 if the engine
    fails, 2 for wrong settings or an unknown stack.
    """
    if markdown and as_json:
        fail("--markdown and --json are two renderings; choose one", BAD_INPUT)
    from berth.cli.preview.verb import Options, run  # noqa: PLC0415

    options = Options(
        rendering="markdown" if markdown else "json" if as_json else "tree",
        allow_destroy=allow_destroy,
        refresh=refresh,
        expect_no_changes=expect_no_changes,
    )
    raise typer.Exit(run(stack, options))


for verb in verbs.ALL:
    app.command()(verb)


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback, with the shell's exit code for it."""
    try:
        app(prog_name="berth")
    except KeyboardInterrupt:
        err.print("interrupted")
        raise SystemExit(130) from None
    except BrokenPipeError:
        # The reader (`| head`) has what it wanted. Without another stdout Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
