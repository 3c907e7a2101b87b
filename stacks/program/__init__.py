"""Programs that Pulumi runs: an environment's, and an engineer's own stack.

Belongs here: wiring of components, and the wait until everything is ready. Does not belong here:
models of settings (stacks/settings), resources (components/).
"""

NO_WAIT = "BERTH_NO_WAIT"
"""Variable with which an update does not wait until what it creates is ready."""


def run() -> None:
    """Build the stack that Pulumi runs this program for."""
    from berth.stacks.program import main  # noqa: PLC0415 - imports Pulumi's SDK

    main.run()
