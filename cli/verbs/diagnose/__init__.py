"""`berth diagnose`."""

from pathlib import Path
from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, Name, OnStack


def run(
    name: Name = None,
    stack: OnStack = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; `-` for stdout.",
            show_default="berth-NAME-TIME.md",
        ),
    ] = None,
    *,
    no_plan: Annotated[
        bool, typer.Option("--no-plan", help="Leave out what `pulumi up` would do.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Gather what explains a berth's state into one file without secrets, to share with support.

    The file has settings, plan, RayCluster, pods, events, claims, nodes, logs, status and
    versions; it names what could not be gathered. Exit code 0 if the file is written, 1 if the
    cluster could not be asked, 2 if the berth is not up or nobody has that name.

    Example: `berth diagnose alice --output alice.md`
    """
    from berth.cli.verbs.diagnose.diagnosis import write_diagnosis

    return write_diagnosis(name, stack, output, plan=not no_plan, as_json=as_json)
