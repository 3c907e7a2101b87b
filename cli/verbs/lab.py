"""`berth lab`: verbs that bring the lab up, show it and end it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.reach.arguments import Json
from berth.cli.shell.console import err, out, print_json
from berth.cli.shell.signals import INTERRUPTED
from berth.cli.shell.table import Table
from berth.cli.shell.verb_group import verb_group
from berth.components.core.errors import BerthError
from berth.components.core.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from berth.lab.home import LabHome
    from berth.lab.report import State

app = verb_group(
    "A GKE cluster on this machine: real control plane, engine and operator; simulated GPUs and"
    " cloud."
)
real = verb_group(
    "Make one node of the lab real: its containers run on this machine. Needs root on Linux."
)
app.add_typer(real, name="real")

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home", envvar="BERTH_LAB", help="Folder of the lab.", show_default=".lab in the clone"
    ),
]

NOT_RUNNING = 3
"""Exit code: the lab is not up, or a process of it does not work."""

_MIB = 1 << 20

_NEXT = {
    "berth create alice --gpus 1": "a berth of your own",
    "berth submit alice -- python hello.py": "your program on it",
    "berth status -s lab": "the whole fleet",
    "make lab-down": "end it; make lab-clean deletes it",
}
"""Commands after `berth lab up`."""


def _home(path: Path | None) -> LabHome:
    from berth.lab.home import LabHome

    return LabHome(path.absolute()) if path is not None else LabHome.current()


@contextlib.contextmanager
def _interruptible(advice: str) -> Iterator[None]:
    """Say after Ctrl-C what is left and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        err.print(f"\ninterrupted; {advice}")
        raise typer.Exit(INTERRUPTED) from None


WHAT_IS_REAL = """\
real: Pulumi and its kubernetes plugin, the Kubernetes control plane, helm, the KubeRay operator
simulated: Google Cloud, nodes, GPUs, and the containers in the pods"""


def processes_table(states: Iterable[State]) -> Table:
    """Return the lab's processes for people."""
    from rich.text import Text

    table = Table(
        "process",
        "what",
        "state",
        "pid",
        "MiB",
        "ports",
        right=("pid", "MiB"),
        hide_first=("MiB", "pid", "ports", "what"),
    )
    for state in states:
        condition = Text("works", style="green")
        if state.problem:
            condition = Text(state.problem, style="red")
        table.add_row(
            state.name,
            state.purpose,
            condition,
            str(state.pid or ""),
            str(state.memory // _MIB),
            ", ".join(map(str, state.ports)),
        )
    return table


def _print_lab(states: Sequence[State], cloud: Mapping[str, int]) -> None:
    """Print the processes as a table, and the simulated cloud's size."""
    out.print(processes_table(states))
    out.print(f"{sum(state.memory for state in states) // _MIB} MiB resident in all")
    total = counted(sum(cloud.values()), "resource")
    by_project = [f"{count} in project {project}" for project, count in cloud.items()]
    projects = f" ({', '.join(by_project)})" if by_project else ""
    out.print(f"simulated cloud: {total}{projects}")


def _print_fleet(home: LabHome) -> None:
    """Print the size of the fleet, and what to do next, as after `berth lab env`."""
    from berth.cli.reach.fleet import fleet_of
    from berth.lab import environment
    from berth.lab.update import STACK

    os.environ.update(environment.variables(home))
    try:
        fleet = fleet_of(STACK)
    except BerthError as error:
        raise BerthError(
            f"the lab is up, but its fleet cannot be shown: {error}", "run `make lab` again"
        ) from None
    rays = [*fleet.berths, *fleet.clusters]
    ready = sum(ray.ready for ray in rays)
    out.print(f"environment {STACK}: {ready} of {counted(len(rays), 'RayCluster')} ready")
    for command, meaning in _NEXT.items():
        out.print(f"  [bold]{command:<38}[/] {meaning}", markup=True)


@app.command()
def up(
    home: HomeOption = None,
    *,
    update: Annotated[
        bool, typer.Option(help="Run `pulumi up` of stack lab once the lab is up.")
    ] = True,
) -> None:
    """Bring the lab and its fleet up, from whatever state they are in.

    Fetches or builds the tools the first time, starts what does not run or does not work, then runs
    `pulumi up` of stack lab. Exit codes: 0 everything is up; 1 something failed on the way; 2
    nothing was started; 130 interrupted.

    Example: `berth lab up`
    """
    from berth.lab import lifecycle
    from berth.lab.progress import LabProgress
    from berth.lab.update import note_forgotten, require_charts
    from berth.lab.update import update as update_stack

    lab = _home(home)
    progress = LabProgress()
    if update:
        require_charts(lab)
    with _interruptible(
        "what runs already stays: `make lab` goes on from here, `make lab-down` ends it"
    ):
        running = lifecycle.up(lab, progress)
        out.print(WHAT_IS_REAL)
        note_forgotten(running, progress)
        if update:
            update_stack(lab, progress, refresh=running.forgotten)
            _print_fleet(lab)


@app.command()
def tools() -> None:
    """Fetch or build the tools that the lab needs into the cache, and start nothing.

    Exit codes: 0 they are there; 1 one could not be built, or a download is not the published file;
    2 BERTH_LAB_TOOLS is neither `release` nor `source`, or the disk is too full; 130 interrupted.

    Example: `berth lab tools`
    """
    from berth.lab.progress import LabProgress
    from berth.lab.toolchain.ensure import programs_of
    from berth.lab.toolchain.tools import TOOLS

    with _interruptible("what is built stays in the cache"):
        programs_of(TOOLS, LabProgress())


@app.command()
def down(home: HomeOption = None) -> None:
    """End every process of the lab; its state stays for the next `berth lab up`.

    Exit codes: 0 no process of the lab runs any more; 130 interrupted.

    Example: `berth lab down`
    """
    from berth.lab import lifecycle
    from berth.lab.progress import LabProgress

    with _interruptible("some processes may still run: `make lab-down` again"):
        stopped = lifecycle.down(_home(home), LabProgress())
        ended = f"ended {counted(len(stopped), 'process')}"
        err.print(ended if stopped else "nothing of this lab runs")


@app.command()
def clean(home: HomeOption = None) -> None:
    """End every process of the lab and delete its state; the built tools stay in the cache.

    Exit codes: 0 the folder is gone; 2 it is not a lab's; 130 interrupted.

    Example: `berth lab clean`
    """
    from berth.lab import lifecycle
    from berth.lab.progress import LabProgress

    lab = _home(home)
    with _interruptible("run `make lab-clean` again"):
        gone = lifecycle.clean(lab, LabProgress())
        err.print(f"{lab.root} is gone" if gone else f"there is no lab in {lab.root}")


@app.command()
def env(home: HomeOption = None) -> int:
    """Print the lab's environment for a shell.

    Plain pulumi, kubectl and helm then work on the lab. Exit codes: 0 printed; 3 printed, but the
    lab is not up (stderr says so).

    Example: `eval "$(berth lab env)"`
    """
    from berth.lab import environment, lifecycle

    lab = _home(home)
    typer.echo(environment.exports(lab))
    if lifecycle.is_up(lab):
        return 0
    err.print(f"the lab in {lab.root} is not up: run `make lab` (or `berth lab up`) first")
    return NOT_RUNNING


@app.command()
def status(home: HomeOption = None, *, as_json: Json = False) -> int:
    """Show the lab's processes, and the simulated cloud's resources.

    Exit codes: 0 all processes work; 3 some don't, or there is no lab.

    Example: `berth lab status --json`
    """
    from berth.lab import report

    lab = _home(home)
    states = report.states(lab)
    if as_json:
        print_json([asdict(state) for state in states])
    elif states:
        _print_lab(states, report.resources(lab))
    if states and not any(state.problem for state in states):
        return 0
    state = "the lab is not up" if states else f"there is no lab in {lab.root}"
    err.print(f"{state}: `make lab` (or `berth lab up`) brings it up or repairs it")
    return NOT_RUNNING


@real.command("up")
def real_up(
    home: HomeOption = None,
    *,
    berth: Annotated[bool, typer.Option(help="Bring a berth up on the node.")] = True,
) -> None:
    """Join a real node to the lab, and bring a berth up on it.

    The node takes the place of the first one of the pool with label `lab-node: real` in
    stacks/Pulumi.lab.yaml. Exit codes: 0 everything is up; 1 something failed on the way; 2 this
    machine cannot have a real node; 130 interrupted.

    Example: `berth lab real up`
    """
    from berth.lab.progress import LabProgress
    from berth.lab.real_berth import bring_up

    with _interruptible("`make lab-real` goes on from here, `make lab-down` ends it"):
        bring_up(_home(home), LabProgress(), with_berth=berth)


@real.command("prepare")
def real_prepare(
    home: HomeOption = None,
    *,
    where_possible: Annotated[
        bool,
        typer.Option(
            "--where-possible",
            help="Exit with 0 and the reason where this machine cannot have one.",
        ),
    ] = False,
) -> None:
    """Make the programs and images that a real node needs, and start nothing.

    Exit codes: 0 they are there; 1 one could not be made; 2 this machine cannot have a real node;
    130 interrupted.

    Example: `berth lab real prepare`
    """
    from berth.lab.progress import LabProgress
    from berth.lab.realnode import lifecycle as realnode
    from berth.lab.realnode import requirements

    progress = LabProgress()
    with _interruptible("what is made stays in the cache"):
        obstacle = requirements.obstacle() if where_possible else None
        if obstacle is not None:
            progress.say(f"tests of the real node are skipped: {obstacle}")
            return
        realnode.prepare(_home(home), progress)


@real.command("down")
def real_down(home: HomeOption = None) -> None:
    """Remove the real node from the lab: nothing of it is left on this machine.

    Exit codes: 0 it is gone; 1 something of it would not go; 130 interrupted.

    Example: `berth lab real down`
    """
    from berth.lab.realnode import lifecycle as realnode

    with _interruptible("some of it may still run: `berth lab real down` again"):
        stopped = realnode.down(_home(home))
        ended = f"ended {counted(len(stopped), 'process')} of the real node"
        err.print(ended if stopped else "there is no real node")
