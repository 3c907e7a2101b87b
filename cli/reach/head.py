"""Head of a berth, as soon as it is ready."""

from berth.cli.reach.berths import LiveBerth
from berth.cli.shell.console import err
from berth.components.cluster.api import Object
from berth.components.cluster.pods import runs_here, why_not_ready
from berth.components.core.errors import BerthError
from berth.components.ray.live import LiveObjects, condition_of, reasons_of


def ready_head(berth: LiveBerth) -> Object:
    """Return the ready head pod of a berth; print what its user should know about it.

    Raises:
        BerthError: the berth is suspended, or its head is not ready.
    """
    condition = condition_of(berth.cluster)
    if note := berth.suspension_note():
        raise BerthError(note)
    head = next(iter(berth.pods("head")), None)
    if head is None or why_not_ready(head, "head"):
        reasons = reasons_of(LiveObjects(berth.api, berth.key[0]), berth.key) or [str(condition)]
        raise BerthError(
            f"{berth.name} has no head that is ready: {'; '.join(reasons)}",
            f"berth status -s {berth.stack} shows what the head waits for",
        )
    if berth.is_simulated(head) and not runs_here(head):
        err.print(
            f"{berth.name} is in the lab: its Ray starts on this machine, with the berth's CPUs;"
            " GPUs are simulated"
        )
    if not condition.ready:
        err.print(f"note: {berth.name} has its head, but not all workers: {condition}")
    return head
