"""`berth lab real`: one node of the lab made real, with containers that run."""

from __future__ import annotations

from typing import Annotated

import typer

from berth.cli import lab as parent

app = typer.Typer(
    name="real",
    help="One node of the lab made real: containers that run, on this machine. Needs root on Linux.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command()
def up(
    home: parent.HomeOption = None,
    *,
    berth: Annotated[bool, typer.Option(help="Bring a berth up on the node and run a job on its RayCluster.")] = True,
) -> None:
    """Join a real node to the lab, which is brought up first if need be; then a berth on it, and a job.

    The node stands in for the first one of the pool that has the label `lab-node: real` in stacks/Pulumi.lab.yaml.

    Exit codes: 0 all is up; 1 something failed on the way; 2 this machine can't have a real node; 130 interrupted.
    """
    lab = parent._home(home)  # noqa: SLF001 (one command in two files)
    with parent._plain_errors(lab, "`make lab-real` goes on from here, `make lab-down` ends it"):  # noqa: SLF001
        from berth.lab import lifecycle, update  # noqa: PLC0415
        from berth.lab.progress import Progress  # noqa: PLC0415
        from berth.lab.realnode import berth as berths  # noqa: PLC0415
        from berth.lab.realnode import lifecycle as realnode  # noqa: PLC0415
        from berth.lab.realnode import requirements  # noqa: PLC0415

        requirements.require(lab)
        progress = Progress()
        running = lifecycle.up(lab, progress)
        realnode.prepare(lab, progress)
        if running.forgotten or not realnode.has_pool(lab):
            update.update(lab, progress, refresh=running.forgotten)
        realnode.up(lab, running.plane, progress)
        if berth:
            update.update(lab, progress, stack=berths.STACK, refresh=True)
            berths.run_job(lab)
            progress.say(f"that its workers talk over their NICs is proven by `berth verify fabric -s {berths.STACK}`")


@app.command()
def prepare(
    home: parent.HomeOption = None,
    *,
    where_possible: Annotated[
        bool,
        typer.Option("--where-possible", help="Where this machine can't have a real node, say why and be content."),
    ] = False,
) -> None:
    """Make the programs and images that a real node needs, and start nothing.

    Exit codes: 0 they are there; 1 one could not be made; 2 this machine can't have a real node; 130 interrupted.
    """
    lab = parent._home(home)  # noqa: SLF001
    with parent._plain_errors(lab, "what is made stays in the cache"):  # noqa: SLF001
        from berth.lab.progress import Progress  # noqa: PLC0415
        from berth.lab.realnode import lifecycle as realnode  # noqa: PLC0415
        from berth.lab.realnode import requirements  # noqa: PLC0415

        progress = Progress()
        if where_possible and (obstacle := requirements.obstacle()) is not None:
            progress.say(f"tests of the real node are skipped: {obstacle}")
            return
        realnode.prepare(lab, progress)


@app.command()
def down(home: parent.HomeOption = None) -> None:
    """Take the real node out of the lab: its place is simulated again, and nothing of it is left on this machine.

    Exit codes: 0 it is gone; 1 something of it would not go; 130 interrupted.
    """
    lab = parent._home(home)  # noqa: SLF001
    with parent._plain_errors(lab, "some of it may still run: `berth lab real down` again"):  # noqa: SLF001
        from berth.lab.realnode import lifecycle as realnode  # noqa: PLC0415

        stopped = realnode.down(lab)
        typer.echo(f"ended {len(stopped)} processes of the real node" if stopped else "there is no real node", err=True)
