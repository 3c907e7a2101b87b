"""`berth engineer`: who has a berth on an environment, by its file."""

from __future__ import annotations

from typing import Annotated

import typer

from berth.cli.verbs import Json, Stack, complete_names, complete_stacks, plain_errors

app = typer.Typer(
    name="engineer",
    help="Give engineers berths on an environment, in its file: `berth up` or `pulumi up` makes them.",
    no_args_is_help=True,
    add_completion=False,
)

Id = Annotated[str, typer.Argument(metavar="NAME", help="The engineer's id.", autocompletion=complete_names)]
NewId = Annotated[str, typer.Argument(metavar="NAME", help="The engineer's id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")]
Workers = Annotated[
    str | None, typer.Option(metavar="N|MIN..MAX", help="Number of workers; a range for Ray's autoscaler.")
]
Gpus = Annotated[int | None, typer.Option(min=0, help="GPUs, or shares of them, of one worker.")]
Cpu = Annotated[str | None, typer.Option(metavar="CORES", help="Cores of one worker: 8, or 500m.")]
Memory = Annotated[str | None, typer.Option(metavar="BYTES", help="Memory of one worker: 32Gi.")]
HeadCpu = Annotated[str | None, typer.Option(metavar="CORES", help="Cores of the head.")]
HeadMemory = Annotated[str | None, typer.Option(metavar="BYTES", help="Memory of the head.")]
Pool = Annotated[str | None, typer.Option(help="Node pool of the workers.")]
Image = Annotated[str | None, typer.Option(help="Container image; its Ray version must be the settings' rayVersion.")]


@app.command()
def add(  # noqa: PLR0913 - each is an option
    name: NewId,
    stack: Stack,
    *,
    workers: Workers = None,
    gpus: Gpus = None,
    pool: Pool = None,
    image: Image = None,
    cpu: Cpu = None,
    memory: Memory = None,
    head_cpu: HeadCpu = None,
    head_memory: HeadMemory = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write a berth for an engineer into an environment's file; what is not said comes from its `defaults`.

    What there is no option for is edited there. Nothing but that entry is changed in the file, and nothing at all if `berth
    check` would refuse the result. Again with the same options it changes nothing. Exit code 0 if the entry is there, 2 if it
    would be wrong.
    """
    with plain_errors():
        from berth.cli import engineers as verb  # noqa: PLC0415

        shape = verb.Shape(workers, gpus, pool, image, cpu, memory, head_cpu, head_memory)
        raise typer.Exit(verb.add(stack, name, shape, verb.Options(dry_run=dry_run, as_json=as_json)))


@app.command()
def remove(name: Id, stack: Stack, *, dry_run: DryRun = False, as_json: Json = False) -> None:
    """Take an engineer's berth out of an environment's file, and say what the next update takes away.

    Exit code 0 if it is not there any more, 2 if it never was, or if the result would be wrong.
    """
    with plain_errors():
        from berth.cli import engineers as verb  # noqa: PLC0415

        raise typer.Exit(verb.remove(stack, name, verb.Options(dry_run=dry_run, as_json=as_json)))


@app.command("list")
def list_(stack: Stack, *, as_json: Json = False) -> None:
    """Show who has a berth on an environment by the files: its own engineers, and engineers' own stacks.

    Exit code 0, or 2 if the settings are wrong.
    """
    with plain_errors():
        from berth.cli import engineers as verb  # noqa: PLC0415

        raise typer.Exit(verb.show(stack, as_json=as_json))


@app.command()
def init(  # noqa: PLR0913 - each is an option
    name: NewId,
    environment: Annotated[
        str,
        typer.Option("--environment", "-e", help="Stack of the environment.", autocompletion=complete_stacks),
    ],
    *,
    workers: Workers = None,
    gpus: Gpus = None,
    pool: Pool = None,
    image: Image = None,
    cpu: Cpu = None,
    memory: Memory = None,
    head_cpu: HeadCpu = None,
    head_memory: HeadMemory = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write the file of an engineer's own stack, stacks/Pulumi.NAME.yaml: a berth that needs no admin.

    Exit code 0 if it is written, 2 if it is there already or would be wrong.
    """
    with plain_errors():
        from berth.cli import engineers as verb  # noqa: PLC0415

        shape = verb.Shape(workers, gpus, pool, image, cpu, memory, head_cpu, head_memory)
        raise typer.Exit(verb.init(environment, name, shape, verb.Options(dry_run=dry_run, as_json=as_json)))
