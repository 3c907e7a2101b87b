"""`berth wake`."""

from berth.cli.reach.arguments import Json, Name, OnStack, Timeout


def run(
    name: Name = None, stack: OnStack = None, timeout: Timeout = "10m", *, as_json: Json = False
) -> int:
    """Bring a suspended berth back, and wait until it is ready.

    Exit code 0 if it is ready, 1 if that takes longer than the time-out (with the reasons) or the
    cluster cannot be asked, 2 for a wrong name.

    Example: `berth wake alice --timeout 20m`
    """
    from berth.cli.reach import suspension

    return suspension.wake_berth(name, stack, timeout, as_json=as_json)
