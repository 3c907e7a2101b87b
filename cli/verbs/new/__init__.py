"""`berth new`."""

from pathlib import Path
from typing import Annotated

import typer

from berth.cli.reach.arguments import Json
from berth.cli.shell.console import err, out, print_json


def run(
    folder: Annotated[Path, typer.Argument(help="Folder to create; its name is the project's.", metavar="FOLDER")],
    project: Annotated[
        str, typer.Option(help="Google Cloud project of the environment `dev`.", metavar="PROJECT")
    ] = "your-dev-project",
    zone: Annotated[str, typer.Option(help="Zone of the environment `dev`.", metavar="ZONE")] = "us-central1-b",
    *,
    as_json: Json = False,
) -> int:
    """Create a repository for environments of your own: Pulumi project, stacks, CI, Makefile.

    The repository runs on the installed package; `make lab` works in it. Exit code 0 if it is
    written, 2 for a folder that has content or lies in none, and for a malformed name or value.

    Example: `berth new my-fleet --project your-dev-project --zone us-central1-b`
    """
    from berth.cli.repository import wheels
    from berth.cli.verbs.new import repository

    written = repository.write(folder, project, zone)
    if as_json:
        print_json({"folder": str(folder), "files": written})
    else:
        for file in written:
            out.print(f"  {folder / file}")
        out.print(f"\nnext: cd {folder} && make check && make lab")
    if wheels.is_clone():
        err.print(
            "note: berth runs from a clone, so that requirements.txt names a version that `make lab` there looks up on"
            " a package index; run `make dist` in the clone, install the wheel, and the repository carries it"
        )
    return 0
