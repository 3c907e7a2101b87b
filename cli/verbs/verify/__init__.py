"""`berth verify`: proofs on the running cluster."""

from pathlib import Path
from typing import Annotated

import typer

from berth.cli.reach import completion
from berth.cli.reach.arguments import Json, Stack
from berth.cli.shell.verb_group import verb_group

app = verb_group("Prove on the running cluster that what was provisioned really works.")

Keep = Annotated[bool, typer.Option("--keep", help="Leave what the proof created.")]


@app.command()
def gpu(
    stack: Stack,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            help="Verify this pool; may be repeated.",
            show_default="all with GPUs; the engineer's own",
            autocompletion=completion.pools,
        ),
    ] = None,
    timeout: Annotated[
        str,
        typer.Option(
            help="How long to wait for the Jobs; new nodes take 5m to 10m.", metavar="DURATION"
        ),
    ] = "5m",
    *,
    isolation: Annotated[
        bool,
        typer.Option(
            "--isolation",
            help="Run pods that look for GPUs which are not theirs, on pools of the GPU Operator.",
        ),
    ] = False,
    keep: Keep = False,
    as_json: Json = False,
) -> int:
    """Run cuda-vector-add on one GPU of each pool, and compare the nodes with the settings.

    With --isolation, pods ask for all GPUs of a node by NVIDIA's RuntimeClasses and a variable
    instead; a check fails if one sees a GPU that it did not request.

    Exit code 0 if no check fails, 1 if one does or the cluster cannot be asked, 2 if there is
    nothing to verify.

    Example: `berth verify gpu -s lab --pool dev`
    """
    from berth.cli.verbs.verify import gpu_proof

    return gpu_proof.verify_gpus(
        stack, pool or [], timeout, keep=keep, isolation=isolation, as_json=as_json
    )


@app.command()
def fabric(  # noqa: PLR0913 - each is an option
    stack: Stack,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="RayCluster to verify: a named cluster or an engineer's berth.",
            metavar="NAME",
            autocompletion=completion.clusters,
            show_default="the engineer's own; an environment's only one",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Group of its workers.",
            metavar="NAME",
            show_default="the only one with RDMA NICs, or with GPUs",
        ),
    ] = None,
    timeout: Annotated[
        str, typer.Option(help="How long to wait for the all-reduce.", metavar="DURATION")
    ] = "10m",
    max_size: Annotated[
        str | None,
        typer.Option(
            help="Size of the largest tensor.",
            metavar="SIZE",
            show_default="1Gi on GPUs, 64Mi on CPUs",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for evidence.json and report.html.",
            metavar="FOLDER",
            show_default="build/fabric-proof/NAME-RUN",
        ),
    ] = None,
    *,
    collective: Annotated[
        bool,
        typer.Option("--collective", help="Sum by ray.util.collective, too, as Ray's own jobs do."),
    ] = False,
    keep: Keep = False,
    as_json: Json = False,
) -> int:
    """Run an all-reduce over all GPUs of a group of workers, and check the fabric that it takes.

    Exit code 0 if no check fails, 1 if one does or the cluster cannot be asked, 2 if there is
    nothing to verify.

    Example: `berth verify fabric -s lab --cluster train`
    """
    from berth.cli.verbs.verify import fabric_proof

    return fabric_proof.verify_fabric(
        stack,
        cluster,
        group,
        timeout,
        max_size,
        output,
        collective=collective,
        keep=keep,
        as_json=as_json,
    )
