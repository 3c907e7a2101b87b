"""Rules of capacity: reservations, flex-start, spot, and the settings that each excludes.

Sources: "Consume reserved zonal resources"
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations), "About GPU,
TPU, and H4D consumption with flex-start"
(https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws), and the preconditions of
GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf.
"""

import re
from collections.abc import Iterable

from berth.components.core.bounds import Bounds
from berth.components.core.problems import Path, Problem
from berth.components.core.types import parse_duration
from berth.components.gke.pool_settings import Capacity, PoolSettings
from berth.components.gke.settings import GkeSettings

_LONGEST = 7 * 24 * 3600
_RESERVATION_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Return settings of pools that their capacity excludes."""
    if settings.cluster.existing:
        return
    for name, pool in settings.pools.items():
        path: Path = ("environment", "pools", name)
        sold = pool.machine.series.sold
        if pool.capacity.kind not in sold and (pool.capacity.kind != "on-demand" or "reservation" not in sold):
            yield Problem(
                (*path, "capacity"),
                f"{pool.machine_type} cannot be had by {pool.capacity.kind}; Google sells it by {_or(sold)}",
                rests_on=((*path, "capacity", "kind"),),
            )
        yield from _reservation(pool.capacity, path)
        if pool.capacity.kind == "flex-start":
            yield from _flex_start(pool, path)
    if settings.pools and all(pool.capacity.kind == "flex-start" for pool in settings.pools.values()):
        yield Problem(
            ("environment", "pools"),
            "every pool is flex-start, whose nodes go after seven days at most, so that GKE's own pods and the"
            " operators would"
            " have no place; add a pool of another capacity, for example cpu: {machineType: n2-standard-8, nodes: 1}",
            rests_on=(("environment", "pools"),),
        )


def warnings(settings: GkeSettings) -> Iterable[Problem]:
    """Return capacity that Google likely does not give."""
    if settings.cluster.existing:
        return
    for name, pool in settings.pools.items():
        sold = pool.machine.series.sold
        if pool.capacity.kind == "on-demand" and "on-demand" not in sold and "reservation" in sold:
            yield Problem(
                ("environment", "pools", name, "capacity"),
                f"Google does not sell {pool.machine_type} on demand: without a reservation that any machine may use,"
                f" there will be no node; set `capacity` to {_or(sold)}",
            )


def _reservation(capacity: Capacity, path: Path) -> Iterable[Problem]:
    if capacity.kind != "reservation":
        return
    for key, value in (("reservation", capacity.reservation), ("block", capacity.block)):
        if value and not _RESERVATION_NAME.fullmatch(value):
            yield Problem(
                (*path, "capacity", key),
                f"{value!r} is not a name; write the bare name, a block of the reservation as `block`, and the project"
                " that owns it as `project`",
            )


def _flex_start(pool: PoolSettings, path: Path) -> Iterable[Problem]:
    capacity = pool.capacity
    if not isinstance(pool.nodes, Bounds):
        most = max(pool.nodes, 1)
        yield Problem(
            (*path, "nodes"),
            "flex-start has no fixed number of nodes: they come when pods ask for them; write nodes:"
            f" {{min: 0, max: {most}}}",
        )
    elif pool.nodes.min:
        yield Problem(
            (*path, "nodes", "min"),
            "flex-start nodes come when pods ask for them, and none can be kept; write nodes:"
            f" {{min: 0, max: {pool.nodes.max}}}",
        )
    if capacity.max_run_duration and parse_duration(capacity.max_run_duration) > _LONGEST:
        yield Problem(
            (*path, "capacity", "maxRunDuration"),
            f"{capacity.max_run_duration} is longer than the 7d after which Google takes flex-start machines away;"
            " write 7d or less",
        )


def _or(kinds: tuple[str, ...]) -> str:
    return f"{', '.join(kinds[:-1])} or {kinds[-1]}"
