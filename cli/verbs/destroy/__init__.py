"""`berth destroy`: say whose berths would be lost, ask, run `pulumi destroy`, and sum up."""

from berth.cli.reach.arguments import AllowDestroy, Json, Stack, Yes


def run(
    stack: Stack, *, yes: Yes = False, allow_destroy: AllowDestroy = False, as_json: Json = False
) -> int:
    """Run `pulumi destroy`: first say whose berths would be lost, and what runs on them.

    An environment takes the berths of other stacks on it along. Where any would be lost, `--yes`
    alone is not enough. Exit code 0 if all is deleted, 1 if the engine fails, 2 for an unknown
    stack or when not interactive, 3 if berths would be lost and nobody agreed to it.

    Example: `berth destroy -s alice`
    """
    from berth.cli.pulumi.update.question import Options
    from berth.cli.verbs.destroy.destruction import destroy_stack

    return destroy_stack(stack, Options(yes=yes, allow_destroy=allow_destroy, as_json=as_json))
