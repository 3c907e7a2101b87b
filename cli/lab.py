"""`berth lab`: the lab's life, and the environment in which plain Pulumi works on it."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.console import fail, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berth.lab.home import Home
    from berth.lab.lifecycle import Running

app = typer.Typer(
    name="lab",
    help="A GKE cluster on this machine: real control plane, engine and operator; simulated GPUs and cloud.",
    no_args_is_help=True,
    add_completion=False,
)

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", envvar="BERTH_LAB", help="The lab's folder.", show_default=".lab in the clone"),
]

INTERRUPTED = 130
NOT_RUNNING = 3


def _home(path: Path | None) -> Home:
    from berth.lab.home import Home  # noqa: PLC0415 - the lab's code is loaded only by the lab's commands

    return Home(path.absolute()) if path is not None else Home.current()


@contextlib.contextmanager
def _plain_errors(home: Home, interrupted: str = "") -> Iterator[None]:
    """Errors and Ctrl-C as sentences and exit codes."""
    from berth.lab.errors import FAILED, LabError  # noqa: PLC0415

    try:
        yield
    except LabError as error:
        fail(f"{error.problem}\n{error.remedy}", error.code)
    except OSError as error:  # a full disk, a folder that may not be written, a path through a file
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        fail(f"{what}\nthe lab in {home.root} was not changed further; mend that and run it again", FAILED)
    except KeyboardInterrupt:
        typer.echo(f"\ninterrupted; {interrupted}" if interrupted else "\ninterrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _say_what_is_real(running: Running) -> None:
    plugin = "Pulumi's kubernetes plugin, "
    real, simulated = ("", plugin) if running.plugin.folder is None else (plugin, "")
    typer.echo(
        f"real: Pulumi, {real}the Kubernetes control plane, helm, the KubeRay operator\n"
        f"simulated: Google Cloud, {simulated}nodes, GPUs, and the containers in the pods\n"
        f"Pulumi's kubernetes plugin is {running.plugin}"
    )


def _print_fleet(home: Home) -> None:
    """The fleet, asked under the lab's environment, as a user would who has evaluated it."""
    import os  # noqa: PLC0415

    from berth.cli.environment import StatusError  # noqa: PLC0415
    from berth.cli.status import print_fleet  # noqa: PLC0415
    from berth.lab import environment  # noqa: PLC0415
    from berth.lab.errors import LabError  # noqa: PLC0415
    from berth.lab.update import STACK  # noqa: PLC0415

    os.environ.update(environment.variables(home))
    try:
        print_fleet(STACK)
    except StatusError as error:
        raise LabError(f"the lab is up, but its fleet can't be shown: {error}", "run `make lab` again") from None


@app.command()
def up(
    home: HomeOption = None,
    *,
    update: Annotated[bool, typer.Option(help="Run `pulumi up` of stack lab once the lab is there.")] = True,
) -> None:
    """Bring the lab and its fleet up, from whatever state they are in.

    Builds the tools the first time, starts what does not run or does not work, then runs `pulumi up` of stack lab.

    Exit codes: 0 all is up; 1 something failed on the way; 2 nothing was started; 130 interrupted.
    """
    lab = _home(home)
    with _plain_errors(lab, "what runs already stays: `make lab` goes on from here, `make lab-down` ends it"):
        from berth.lab import lifecycle  # noqa: PLC0415
        from berth.lab.progress import Progress  # noqa: PLC0415
        from berth.lab.update import update as update_stack  # noqa: PLC0415

        progress = Progress()
        running = lifecycle.up(lab, progress)
        _say_what_is_real(running)
        if running.forgotten:
            progress.say(
                "the cluster's database is a new one, while Pulumi remembers resources of the old: "
                "their state is refreshed first (other stacks: `pulumi refresh -s STACK`, or `make lab-clean`)"
            )
        if update:
            update_stack(lab, progress, refresh=running.forgotten)
            _print_fleet(lab)


@app.command()
def tools(home: HomeOption = None) -> None:
    """Build the tools that the lab needs into the cache, and start nothing.

    Exit codes: 0 they are there; 1 one could not be built; 130 interrupted.
    """
    lab = _home(home)
    with _plain_errors(lab, "what is built stays in the cache"):
        from berth.lab.progress import Progress  # noqa: PLC0415
        from berth.lab.toolchain.ensure import ensure  # noqa: PLC0415

        ensure(lab, Progress())


@app.command()
def down(home: HomeOption = None) -> None:
    """End every process of the lab; its state stays for the next `berth lab up`.

    Exit codes: 0 nothing of the lab runs any more; 130 interrupted.
    """
    lab = _home(home)
    with _plain_errors(lab, "some processes may still run: `make lab-down` again"):
        from berth.lab import lifecycle  # noqa: PLC0415
        from berth.lab.progress import Progress  # noqa: PLC0415

        stopped = lifecycle.down(lab, Progress())
        typer.echo(f"ended {len(stopped)} processes" if stopped else "nothing of this lab runs", err=True)


@app.command()
def clean(home: HomeOption = None) -> None:
    """End every process of the lab and forget its state; the built tools stay in the cache.

    Exit codes: 0 it is gone; 2 the folder is not a lab's; 130 interrupted.
    """
    lab = _home(home)
    with _plain_errors(lab, "run `make lab-clean` again"):
        from berth.lab import lifecycle  # noqa: PLC0415
        from berth.lab.progress import Progress  # noqa: PLC0415

        gone = lifecycle.clean(lab, Progress())
        typer.echo(f"{lab.root} is gone" if gone else f"there is no lab in {lab.root}", err=True)


@app.command()
def env(home: HomeOption = None) -> None:
    """Print the lab's environment for a shell: eval "$(berth lab env)".

    Then plain pulumi, kubectl and helm work on the lab.

    Exit codes: 0 printed; 3 printed, but the lab is not up (stderr says so).
    """
    lab = _home(home)
    with _plain_errors(lab):
        from berth.lab import environment, lifecycle  # noqa: PLC0415

        typer.echo(environment.exports(lab))
        if not lifecycle.is_up(lab):
            typer.echo("the lab is not up: run `make lab` (or `berth lab up`) first", err=True)
            raise typer.Exit(NOT_RUNNING)


@app.command()
def status(
    home: HomeOption = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the lab's processes (state, pid, memory, ports), its kubernetes plugin, and how much there is in the simulated cloud.

    Exit codes: 0 all work; 3 some don't, or there is no lab.
    """
    lab = _home(home)
    with _plain_errors(lab):
        from berth.lab import report  # noqa: PLC0415
        from berth.lab.kubernetes_plugin import placed  # noqa: PLC0415

        states = report.states(lab)
        if as_json:
            print_json([asdict(state) for state in states])
        else:
            report.show(states, report.resources(lab), placed(lab))
        if not states or any(state.problem for state in states):
            typer.echo("the lab is not up: `make lab` brings it up or repairs it", err=True)
            raise typer.Exit(NOT_RUNNING)


def main() -> None:
    """Run `berth lab` on its own."""
    app(prog_name="berth lab")


if __name__ == "__main__":
    main()
