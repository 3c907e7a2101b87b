"""Free machines of the reservations that a plan takes machines from.

GKE refuses a node pool for which its reservation has too few machines with HTTP 429, which Google's
provider takes for too many requests: it asks again, without a word, for hours
(components/gke/errors/advice.py has the sources).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from berth.components.core.errors import BerthError
from berth.components.core.words import first_names
from berth.components.gke.effects.reserved import ReservedGrowth, reserved_growth
from berth.components.plan.fleet import NODE_POOL
from berth.components.plan.plan import Event, plan_of
from berth.stacks.load.stack import Environment

if TYPE_CHECKING:
    from berth.cli.pulumi.preview.plan import StackPlan
    from berth.cli.reach.google_cloud import GoogleClient

_SHOWN = 3


@dataclass(frozen=True)
class AskedReservations:
    """Answer of Google Cloud about the reservations that a plan takes machines from.

    Attributes:
        lacking: for each reservation with too few free machines, what is wrong and what to do.
        not_asked: why reservations could not be asked, in one line each.
    """

    lacking: Sequence[str] = ()
    not_asked: Sequence[str] = ()

    def refuse_if_lacking(self, stack: str) -> None:
        """Refuse an update that GKE would refuse after hours.

        Raises:
            BerthError: a reservation has too few free machines.
        """
        if self.lacking:
            listed = "\n".join(self.lacking)
            raise BerthError(
                f"nothing was done: {listed}",
                f"to try all the same, such as while somebody frees machines: pulumi up -s {stack}",
            )


def ask_reservations(plan: StackPlan) -> AskedReservations:
    """Ask what the reservations have free that a plan takes machines from; most take from none."""
    of_pools = [event for event in plan.events if _is_of_a_pool(event)]
    growth = reserved_growth(plan_of(of_pools).steps)
    if not growth:
        return AskedReservations()
    # Google's libraries take a while to import, and few plans need them.
    from berth.cli.reach.google_cloud import GoogleClient, GoogleError  # noqa: PLC0415

    lacking: list[str] = []
    not_asked: list[str] = []
    try:
        # Calls are charged to the environment's project, as those of the update are.
        google = GoogleClient(_project_of(plan) or growth[0].path.split("/")[1])
        for entry in growth:
            try:
                lacking += _lacking(google, entry)
            except GoogleError as error:
                not_asked.append(_not_asked(entry, error))
    except GoogleError as error:
        not_asked.append(_not_asked(growth[0], error))
    return AskedReservations(lacking, not_asked)


def _is_of_a_pool(event: Event) -> bool:
    begun = event.get("resourcePreEvent") or {"metadata": {}}
    return bool(begun["metadata"].get("type") == NODE_POOL)


def _project_of(plan: StackPlan) -> str:
    return (plan.loaded.settings.project or "") if isinstance(plan.loaded, Environment) else ""


def _lacking(google: GoogleClient, growth: ReservedGrowth) -> list[str]:
    """Return what is wrong and what to do, if a reservation has too few free machines.

    Raises:
        GoogleError: Google Cloud cannot be asked, or refuses.
    """
    counts = machine_counts(google.get("compute", growth.path))
    if growth.more <= counts.free:
        return []
    pools = first_names(growth.pools, _SHOWN)
    sizes = " or ".join(f"pools.{pool}.nodes" for pool in growth.pools)
    problem = (
        f"{_place(growth)} has {counts.free} of its {counts.count} {growth.machine_type} free, and"
        f" the plan takes {growth.more} ({pools}): GKE would refuse them, and Google's provider"
        " would ask again for hours without a word"
    )
    remedy = f"set fewer {sizes}, or free machines (who uses them: {_describe(growth)})"
    return [f"{problem}; {remedy}"]


@dataclass(frozen=True)
class MachineCounts:
    """Machines of a reservation, of a block or of a sub-block, and those of them in use."""

    count: int
    in_use: int

    @property
    def free(self) -> int:
        """Machines that nobody uses."""
        return max(self.count - self.in_use, 0)


def machine_counts(answer: dict[str, Any]) -> MachineCounts:
    """Return the counts in an API's answer about a reservation, a block or a sub-block."""
    counts = answer.get("specificReservation") or answer.get("resource") or answer
    # Numbers come as text.
    return MachineCounts(int(counts.get("count") or 0), int(counts.get("inUseCount") or 0))


def _not_asked(growth: ReservedGrowth, error: BerthError) -> str:
    remedy = f" ({error.remedy})" if error.remedy else ""
    return f"{_place(growth)} was not asked for free machines: {error.problem}{remedy}"


def _place(growth: ReservedGrowth) -> str:
    """Return a reservation, with its block and sub-block, in words."""
    parts = growth.path.split("/")
    # projects/P/zones/Z/reservations/R[/reservationBlocks/B[/reservationSubBlocks/S]]
    names = dict(zip(parts[::2], parts[1::2], strict=True))
    words = f"reservation {names['reservations']!r} of project {names['projects']}"
    if block := names.get("reservationBlocks"):
        words = f"block {block!r} of {words}"
    if sub_block := names.get("reservationSubBlocks"):
        words = f"sub-block {sub_block!r} of {words}"
    return f"{words} in {names['zones']}"


def _describe(growth: ReservedGrowth) -> str:
    """Return the command that shows a reservation."""
    _, project, _, zone, _, name = growth.path.split("/")[:6]
    command = ["gcloud", "compute", "reservations", "describe", name]
    return shlex.join([*command, "--project", project, "--zone", zone])
