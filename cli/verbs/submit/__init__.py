"""`berth submit`."""

from pathlib import Path
from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, OnStack, RequiredName, Timeout, seconds_of


def run(  # noqa: PLR0913 - each is an option
    name: RequiredName,
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND", help="The command, after --; a single word is for the shell."
        ),
    ],
    stack: OnStack = None,
    *,
    working_dir: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Folder that is uploaded, and that the command runs in.",
            show_default="the current one",
        ),
    ] = Path(),
    no_working_dir: Annotated[
        bool, typer.Option("--no-working-dir", help="Upload nothing.")
    ] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            "-e",
            metavar="KEY[=VALUE]",
            help="Variable; without a value, the one that it has here.",
        ),
    ] = None,
    pip: Annotated[
        list[str] | None, typer.Option(metavar="PACKAGE", help="Package to install first.")
    ] = None,
    requirements: Annotated[
        Path | None,
        typer.Option("--requirements", "-r", metavar="FILE", help="Packages to install first."),
    ] = None,
    runtime_env: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Ray's runtime environment as YAML, below the other options."
        ),
    ] = None,
    gpus: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="N", help="GPUs for the command itself, which then runs on a worker."
        ),
    ] = None,
    cpus: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="N", help="CPUs for the command itself, which then runs anywhere."
        ),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Memory for the command itself: 8Gi.")
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            "--name",
            "--submission-id",
            metavar="JOB",
            help="Id of the job.",
            show_default="one that begins like the command",
        ),
    ] = None,
    no_follow: Annotated[
        bool, typer.Option("--no-follow", help="Print the job's id, and don't wait for it.")
    ] = False,
    wake: Annotated[
        bool, typer.Option("--wake", help="Wake the berth first if it is suspended.")
    ] = False,
    timeout: Timeout = "10m",
    as_json: Json = False,
) -> int:
    """Run a command on a berth as a job of Ray, and print its log until it ends.

    The folder is uploaded without what its .gitignore and .rayignore files leave out, 100 MiB at
    most; Ray keeps it for the next job. Ray need not be installed here. The command runs on the
    head, without GPUs unless --gpus asks for some; Ray's tasks get theirs from the workers.
    `--timeout` is for --wake. With --json the log goes to stderr.

    Ctrl-C asks whether the job is to stop, too; without a terminal it goes on.

    Exit code of the command, or as a shell has it after a signal; 1 if it was stopped or never
    ran, or the berth cannot be asked or is suspended; 2 for wrong options; 130 at Ctrl-C. With
    --no-follow 0 if Ray has the job.

    Example: `berth submit alice --env HF_TOKEN -- python train.py --epochs 3`
    """
    from berth.cli.verbs.submit.request import request_of
    from berth.cli.verbs.submit.submission import submit_job

    request = request_of(
        command,
        name=job,
        working_dir=None if no_working_dir else working_dir,
        env=env or (),
        pip=pip or (),
        requirements=requirements,
        runtime_env=runtime_env,
        cpus=cpus,
        gpus=gpus,
        memory=memory,
    )
    seconds = seconds_of(timeout)
    return submit_job(
        name, stack, request, seconds if wake else None, follow=not no_follow, as_json=as_json
    )
