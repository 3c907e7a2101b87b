"""`berth create`."""

from typing import Annotated

import typer

from berth.cli.reach import arguments as given
from berth.cli.reach import completion


def run(  # noqa: PLR0913 - each is an option
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the berth, and of its stack.")
    ],
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment",
            "-e",
            help="Stack of the environment.",
            show_default="the only one, or the only one that is up",
            autocompletion=completion.environments,
        ),
    ] = None,
    *,
    workers: given.Workers = None,
    gpus: given.Gpus = None,
    pool: given.Pool = None,
    image: given.Image = None,
    cpu: given.Cpu = None,
    memory: given.Memory = None,
    head_cpu: given.HeadCpu = None,
    head_memory: given.HeadMemory = None,
    write_only: Annotated[
        bool,
        typer.Option(
            "--write-only", help="Write the file for a pull request; the admins' CI does the rest."
        ),
    ] = False,
    dry_run: given.DryRun = False,
    yes: given.Yes = False,
    as_json: given.Json = False,
) -> int:
    """Create a berth with a stack of its own: write its file, show the plan, ask, bring it up.

    The file is stacks/Pulumi.NAME.yaml; settings that are left out come from the environment's
    `defaults`. Nothing is written unless the environment is up and its cluster answers. A second
    run goes on where the first one ended.

    Exit code 0 if the berth is up and ready, 1 if it is not, the cluster does not answer or nobody
    agreed, 2 for wrong settings, a file with other settings, an environment that is not up, or when
    not interactive, 130 at Ctrl-C; the file stays.

    Example: `berth create alice --gpus 1`
    """
    from berth.cli.pulumi.update.question import Options
    from berth.cli.repository.entries import entry_of
    from berth.cli.verbs.create import creation

    worker = {"pool": pool, "gpus": gpus, "cpu": cpu, "memory": memory}
    entry = entry_of(workers, image, worker, {"cpu": head_cpu, "memory": head_memory})
    environment = environment or creation.environment_of(name)
    if write_only or dry_run:
        return creation.write_berth_file(name, environment, entry, dry_run=dry_run, as_json=as_json)
    return creation.create_berth(name, environment, entry, Options(yes=yes, as_json=as_json))
