"""`berth engineer`: the engineers in the settings' files."""

from typing import Annotated

import typer

from berth.cli.reach import completion
from berth.cli.reach.arguments import (
    Cpu,
    DryRun,
    Gpus,
    HeadCpu,
    HeadMemory,
    Image,
    Json,
    Memory,
    Pool,
    Stack,
    Workers,
)
from berth.cli.shell.verb_group import verb_group

app = verb_group(
    "Edit the engineers in an environment's file; `berth up` or `pulumi up` creates their berths."
)

Id = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The engineer's id.", autocompletion=completion.engineers),
]
NewId = Annotated[str, typer.Argument(metavar="NAME", help="The engineer's id.")]


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
    from berth.cli.repository.entries import entry_of
    from berth.cli.verbs.engineer import edits

    worker = {"pool": pool, "gpus": gpus, "cpu": cpu, "memory": memory}
    entry = entry_of(workers, image, worker, {"cpu": head_cpu, "memory": head_memory})
    return edits.add_engineer(stack, name, entry, dry_run=dry_run, as_json=as_json)


@app.command()
def remove(
    name: Id,
    stack: Stack,
    *,
    forget_home: Annotated[
        bool,
        typer.Option(
            "--forget-home",
            help="Delete home and Filestore volumes too, for good, once no pod uses them.",
        ),
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Remove an engineer's berth from an environment's file, and say what the next update deletes.

    Home and Filestore volumes stay, unless their settings or `--forget-home` say otherwise. Exit
    code 0 if the entry is gone, 1 if a home is to be deleted and the cluster cannot be asked, 2 if
    there was no entry or the result would be wrong.

    Example: `berth engineer remove dora -s lab`
    """
    from berth.cli.verbs.engineer import edits

    return edits.remove_engineer(
        stack, name, forget_home=forget_home, dry_run=dry_run, as_json=as_json
    )


@app.command("list")
def list_(stack: Stack, *, as_json: Json = False) -> int:
    """List the berths of an environment in the files: its own engineers, and engineers' own stacks.

    Exit code 0, or 2 if the settings are wrong.

    Example: `berth engineer list -s lab`
    """
    from berth.cli.verbs.engineer.listing import print_berths

    return print_berths(stack, as_json=as_json)
