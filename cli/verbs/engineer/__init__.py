"""`berth engineer`: the engineers in the settings' files."""

from __future__ import annotations

from typing import Annotated

import typer

from berth.cli.reach import completion
from berth.cli.reach.arguments import Json, Stack
from berth.cli.shell.help import Section, verb_group

SECTION = Section.SETTINGS

app = verb_group("Edit the engineers in an environment's file; `berth up` or `pulumi up` creates their berths.")

Id = Annotated[str, typer.Argument(metavar="NAME", help="The engineer's id.", autocompletion=completion.engineers)]
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
Pool = Annotated[str | None, typer.Option(help="Node pool of the workers.", autocompletion=completion.pools)]
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
) -> int:
    """Add an engineer's berth to an environment's file; missing settings come from its `defaults`.

    Changes nothing but that entry, and nothing at all if `berth check` would refuse the result. A
    second run with the same options changes nothing. Exit code 0 if the entry is there, 2 if it
    would be wrong.

    Example: `berth engineer add dora -s lab --workers 2 --gpus 1 --dry-run`
    """
    from berth.cli.verbs.engineer import edits

    worker = {"pool": pool, "gpus": gpus, "cpu": cpu, "memory": memory}
    entry = edits.entry_of(workers, image, worker, {"cpu": head_cpu, "memory": head_memory})
    return edits.add(stack, name, entry, dry_run=dry_run, as_json=as_json)


@app.command()
def remove(
    name: Id,
    stack: Stack,
    *,
    forget_home: Annotated[
        bool, typer.Option("--forget-home", help="Delete home and shares too, once the pods are gone; for good.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Remove an engineer's berth from an environment's file, and say what the next update deletes.

    Home and shares stay, unless their settings or `--forget-home` say otherwise. Exit code 0 if the
    entry is gone, 1 if a home is to be deleted and the cluster cannot be asked, 2 if there was no
    entry or the result would be wrong.

    Example: `berth engineer remove dora -s lab`
    """
    from berth.cli.verbs.engineer import edits

    return edits.remove(stack, name, forget_home=forget_home, dry_run=dry_run, as_json=as_json)


@app.command("list")
def list_(stack: Stack, *, as_json: Json = False) -> int:
    """List the berths of an environment in the files: its own engineers, and engineers' own stacks.

    Exit code 0, or 2 if the settings are wrong.

    Example: `berth engineer list -s lab`
    """
    from berth.cli.verbs.engineer import edits

    return edits.show(stack, as_json=as_json)


@app.command()
def init(  # noqa: PLR0913 - each is an option
    name: NewId,
    environment: Annotated[
        str,
        typer.Option("--environment", "-e", help="Stack of the environment.", autocompletion=completion.environments),
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
) -> int:
    """Write stacks/Pulumi.NAME.yaml, an engineer's own stack: a berth that a pull request brings.

    The admins' CI applies the stack after the merge, so that the engineer needs no right in the
    cluster but those in the berth.

    Exit code 0 if the file is written, 2 if it exists or would be wrong.

    Example: `berth engineer init erin --environment lab --workers 0..4`
    """
    from berth.cli.verbs.engineer import edits

    worker = {"pool": pool, "gpus": gpus, "cpu": cpu, "memory": memory}
    entry = edits.entry_of(workers, image, worker, {"cpu": head_cpu, "memory": head_memory})
    return edits.init(environment, name, entry, dry_run=dry_run, as_json=as_json)
