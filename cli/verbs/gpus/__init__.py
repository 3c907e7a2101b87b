"""`berth gpus`."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, Stack


def run(
    stack: Stack,
    gpu: Annotated[
        str | None, typer.Argument(metavar="GPU", help="Only this GPU, such as b200.")
    ] = None,
    *,
    as_json: Json = False,
) -> int:
    """Show which GPUs are free, on which pools, at what share and price, and how to request them.

    Prices are the pools' `hourlyRate`, divided by the GPUs or shares of a node. A number under
    `later` is on nodes that the pool can still get.

    Exit code 0 if the cluster answers, 1 if it cannot be asked, 2 for a stack that is wrong or not
    up, or a GPU that no pool has.

    Example: `berth gpus -s lab`
    """
    from berth.cli.verbs.gpus.free_gpus import print_free_gpus

    return print_free_gpus(stack, gpu, as_json=as_json)
