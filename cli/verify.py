"""`berth verify`: proofs on the running cluster that what was provisioned is really there."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from berth.cli.console import BAD_INPUT, err, fail, out, print_json

app = typer.Typer(
    name="verify",
    help="Prove on the running cluster that what was provisioned is really there.",
    no_args_is_help=True,
    add_completion=False,
)

FAILED = 1
INTERRUPTED = 130
TERMINATED = 143


@app.callback()
def verify() -> None:
    """Prove on the running cluster that what was provisioned is really there."""


@app.command()
def gpu(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack of the environment, or an engineer's on it.")],
    pool: Annotated[
        list[str] | None,
        typer.Option(help="Verify this pool; may be repeated.", show_default="all with GPUs; the engineer's own"),
    ] = None,
    timeout: Annotated[
        str, typer.Option(help="How long to wait for the Jobs; new nodes take 5m to 10m.", metavar="DURATION")
    ] = "5m",
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the Jobs and their namespace.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Run cuda-vector-add on one GPU of each pool, and check what the nodes offer against the settings.

    Exit code 0 if nothing fails, 1 if something does or the cluster can't be asked, 2 if there is nothing to verify.
    """
    from berth.cli import gpu_proof  # noqa: PLC0415 - the kubernetes client takes a while to import
    from berth.cli.environment import NoSuchStackError, NotUpError, StatusError  # noqa: PLC0415
    from berth.components.cluster.api import ClusterError  # noqa: PLC0415

    signal.signal(signal.SIGTERM, _terminated)
    try:
        proof = gpu_proof.verify_gpus(stack, pool or [], timeout, keep=keep)
    except (gpu_proof.BadInputError, NoSuchStackError, NotUpError) as error:
        fail(str(error), BAD_INPUT)
    except (StatusError, ClusterError) as error:
        fail(str(error), FAILED)
    except KeyboardInterrupt:
        err.print("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(proof.as_json())
    else:
        out.print(gpu_proof.table(proof))
    if proof.counts["fail"]:
        raise typer.Exit(FAILED)


@app.command()
def fabric(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack of the environment, or an engineer's on it.")],
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Verify this RayCluster: a named cluster or an engineer's berth.",
            metavar="NAME",
            show_default="the engineer's own; an environment's only one",
        ),
    ] = None,
    timeout: Annotated[str, typer.Option(help="How long to wait for the all-reduce.", metavar="DURATION")] = "10m",
    max_size: Annotated[
        str | None,
        typer.Option(help="Size of the largest tensor.", metavar="SIZE", show_default="1Gi on GPUs, 64Mi on CPUs"),
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
    keep: Annotated[bool, typer.Option("--keep", help="Leave the RayJob.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Run an all-reduce over all GPUs of a RayCluster, and check that it takes the fabric: claims, sums, transport, NICs, bandwidth.

    Exit code 0 if nothing fails, 1 if something does or the cluster can't be asked, 2 if there is nothing to verify.
    """
    from berth.cli import fabric_proof  # noqa: PLC0415 - the kubernetes client takes a while to import
    from berth.cli.environment import NoSuchStackError, NotUpError, StatusError  # noqa: PLC0415
    from berth.cli.gpu_proof import BadInputError  # noqa: PLC0415
    from berth.components.cluster.api import ClusterError  # noqa: PLC0415

    signal.signal(signal.SIGTERM, _terminated)
    try:
        asked = fabric_proof.Asked(stack, cluster, timeout, max_size, keep=keep)
        proof = fabric_proof.verify_fabric(asked)
        for path in fabric_proof.save(proof, output):
            err.print(f"written: {path}", markup=False)
    except (BadInputError, NoSuchStackError, NotUpError) as error:
        fail(str(error), BAD_INPUT)
    except (StatusError, ClusterError) as error:
        fail(str(error), FAILED)
    except KeyboardInterrupt:
        err.print("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(proof.as_json())
    else:
        out.print(fabric_proof.table(proof))
    if proof.counts["fail"]:
        raise typer.Exit(FAILED)


def _terminated(_signal: int, _frame: object) -> NoReturn:
    """As Ctrl-C: clean up, then end."""
    raise SystemExit(TERMINATED)
