"""Rules of the times without upgrades of a cluster that berth creates, which GKE limits."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.gke.cluster_settings import Maintenance
from berth.components.gke.settings import GkeSettings

CREATED_MAINTENANCE = Rules[GkeSettings](GkeSettings)
"""Rules of the maintenance of a cluster that berth creates."""

_NO_UPGRADES = "NO_UPGRADES"
_MOST_EXCLUSIONS = 20
_MOST_OF_ALL_UPGRADES = 3
_LONGEST_OF_ALL_UPGRADES = timedelta(days=90)
_ROLLING = timedelta(days=92)
_DAILY_WINDOW = timedelta(hours=4)
_SHORTEST_AVAILABILITY = timedelta(hours=48)


@CREATED_MAINTENANCE.problem("cluster.maintenance.exclusions.*.end")
def exclusion_without_a_fitting_end(environment: GkeSettings) -> Iterator[Breach]:
    """A time without upgrades ends after its start; one without any upgrade ends within 90 days.

    Source: "Configure maintenance windows and exclusions"
    (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/maintenance-windows-and-exclusions),
    and for the 90 days github.com/google/skills, gke-upgrades; older pages say 30.
    """
    maintenance = environment.cluster.maintenance
    for name, exclusion in maintenance.exclusions.items() if maintenance else ():
        place = _place(name, "end")
        if exclusion.end and exclusion.start > exclusion.end:
            yield Breach("is before `start`", at=place)
        if exclusion.scope != _NO_UPGRADES:
            continue
        if not exclusion.end:
            yield Breach(
                "is required with `scope: NO_UPGRADES`: GKE leaves out all upgrades for a limited"
                " time only; write an `end`, or `scope: NO_MINOR_OR_NODE_UPGRADES`",
                at=place,
            )
        elif exclusion.end - exclusion.start > _LONGEST_OF_ALL_UPGRADES:
            days = (exclusion.end - exclusion.start).days
            yield Breach(
                f"is {days} days after `start`, and GKE leaves out all upgrades for"
                f" {_LONGEST_OF_ALL_UPGRADES.days} days at most (scope: NO_UPGRADES); write an"
                " earlier `end`, or `scope: NO_MINOR_OR_NODE_UPGRADES`",
                at=place,
            )


@CREATED_MAINTENANCE.problem("cluster.maintenance.exclusions")
def too_many_exclusions(environment: GkeSettings) -> Iterator[Breach]:
    """GKE takes three times without any upgrade, and twenty of all kinds.

    Source: "Maintenance windows and exclusions", limitations
    (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions).
    """
    maintenance = environment.cluster.maintenance
    if not maintenance:
        return
    count = len(maintenance.exclusions)
    if count > _MOST_EXCLUSIONS:
        yield Breach(f"has {count} times; GKE takes {_MOST_EXCLUSIONS}; take out the others")
    of_all_upgrades = len(_times_without_any_upgrade(maintenance))
    if of_all_upgrades > _MOST_OF_ALL_UPGRADES:
        yield Breach(
            f"has {of_all_upgrades} times with `scope: NO_UPGRADES`; GKE takes"
            f" {_MOST_OF_ALL_UPGRADES}; take out the others, or write `scope:"
            " NO_MINOR_OR_NODE_UPGRADES`"
        )


@CREATED_MAINTENANCE.warning("cluster.maintenance.exclusions.*.end")
def no_time_left_for_upgrades(environment: GkeSettings) -> Iterator[Breach]:
    """GKE wants 48 hours for upgrades in any 92 days, which the daily four hours are counted to.

    Only stretches of four hours or more count, so a day counts wholly or not at all. That GKE
    counts the hours of the daily window, and not whole days, is read from its refusal ("maintenance
    policy would go longer than 92d without 48h maintenance availability of at least 4h contiguous
    duration"), and so this is a warning.

    Source: "Configure maintenance windows and exclusions", considerations
    (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/maintenance-windows-and-exclusions).
    """
    maintenance = environment.cluster.maintenance
    if not maintenance:
        return
    for name, exclusion in maintenance.exclusions.items():
        if exclusion.scope != _NO_UPGRADES or not exclusion.end:
            continue
        if exclusion.end - exclusion.start > _LONGEST_OF_ALL_UPGRADES:
            continue
        available = _available_from(maintenance, exclusion.start)
        if available < _SHORTEST_AVAILABILITY:
            hours = int(available.total_seconds()) // 3600
            yield Breach(
                f"leaves {hours} hours for upgrades in the {_ROLLING.days} days from `start`, four"
                " a day; GKE wants 48 in any such time, and may refuse the cluster or the edit;"
                " write an earlier `end`",
                at=_place(name, "end"),
            )


def _place(name: str, key: str) -> SettingPath:
    return ("cluster", "maintenance", "exclusions", name, key)


def _times_without_any_upgrade(maintenance: Maintenance) -> list[tuple[datetime, datetime]]:
    """Return the begin and end of each time without any upgrade that has an end."""
    return [
        (exclusion.start, exclusion.end or datetime.max.replace(tzinfo=UTC))
        for exclusion in maintenance.exclusions.values()
        if exclusion.scope == _NO_UPGRADES
    ]


def _available_from(maintenance: Maintenance, begin: datetime) -> timedelta:
    """Return the time for upgrades in the 92 days from a time."""
    excluded = _times_without_any_upgrade(maintenance)
    hour, _, minute = maintenance.start.partition(":")
    first = begin.astimezone(UTC).replace(hour=int(hour), minute=int(minute))
    available = timedelta()
    for day in range(_ROLLING.days + 1):
        opens = first + timedelta(days=day)
        closes = opens + _DAILY_WINDOW
        if opens < begin or closes > begin + _ROLLING:
            continue
        if not any(start < closes and opens < end for start, end in excluded):
            available += _DAILY_WINDOW
    return available
