"""`berth up`: say what would be lost, ask, run `pulumi up`, and sum up."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from berth.cli.reach.arguments import AllowDestroy, Json, Stack, Yes
from berth.components.core.errors import BadInputError


def run(
    stack: Stack,
    *,
    together: Annotated[
        bool,
        typer.Option(
            "--all", help="Then also bring up all engineers' own stacks on the environment."
        ),
    ] = False,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", help="Do nothing beyond this plan of berth preview --save.", metavar="FILE"
        ),
    ] = None,
    yes: Yes = False,
    allow_destroy: AllowDestroy = False,
    as_json: Json = False,
) -> int:
    """Run `pulumi up`: first say what would be lost, show progress by component, and sum up.

    With `--all`, some own stacks are updated at a time, and a stack that fails does not stop the
    others. After an interrupt, the same command goes on where it was. With `--plan`, an update
    beyond a saved plan ends before it begins, with the difference.

    Exit code 0 if everything is up and ready, 1 if the engine or a RayCluster fails or a
    reservation has too few free machines, 2 for wrong settings, an unknown stack, an update beyond
    its plan, or when not interactive, 3 if running work or capacity would be lost and nobody agreed
    to it.

    Example: `berth up -s lab`
    """
    if together and plan:
        raise BadInputError("a plan is of one stack; leave --all or --plan out")
    from berth.cli.pulumi.engine import begun_preview
    from berth.cli.pulumi.lock import refuse_locked

    # Before the engine begins, which would take long to end its preview.
    refuse_locked(stack)
    # The engine starts in the time of the other imports, half a second.
    with contextlib.nullcontext() if together else begun_preview(stack) as engine:
        from berth.cli.pulumi.update.question import Options
        from berth.cli.reach.update import bring_up
        from berth.cli.verbs.up.stacks import up_all

        options = Options(yes=yes, allow_destroy=allow_destroy, as_json=as_json)
        return up_all(stack, options) if together else bring_up(stack, options, engine, plan)
