"""Fleet behind a stack, read from its cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from berth.cli.reach.environment import LiveEnvironment, NotUpError, brought_up
from berth.cli.reach.unknown_namespaces import namespaces_not_in_state
from berth.cli.shell.console import err
from berth.components.cluster.api import ClusterApi, ClusterError, Reader, UnreachableError
from berth.components.cluster.mirror import Snapshot
from berth.components.core.errors import BerthError
from berth.components.core.owner import OwnerKind
from berth.components.ray.live import (
    Fleet,
    LiveJob,
    LiveRayCluster,
    LiveService,
    MissingOwner,
    observed_fleet,
)
from berth.components.sharing import offered_pools


def fleet_of(stack: str) -> Fleet:
    """Return the fleet of an environment; of an engineer's stack the pools and that berth.

    Raises:
        NotUpError: the environment, or the berth of an engineer's stack, is not up.
        BerthError: the cluster cannot be asked.
    """
    up = brought_up(stack)
    fleet = fleet_on(up, stack)
    require_berths(fleet, stack, up)
    return fleet


def fleet_on(up: LiveEnvironment, stack: str) -> Fleet:
    """Return the fleet of a stack on an environment that is up.

    Raises:
        BerthError: the cluster cannot be asked.
    """
    try:
        return fleet_from(Snapshot(ClusterApi(up.kubeconfig)), stack, up)
    except ClusterError as error:
        if isinstance(error, UnreachableError):
            error = error.of_stack(up.stack)
        raise BerthError(error.problem, error.remedy, place=f"stack {up.stack}") from None


def require_berths(fleet: Fleet, stack: str, up: LiveEnvironment) -> None:
    """Refuse an engineer's stack without a berth on its environment.

    Raises:
        NotUpError: the berth is not up.
    """
    if up.stack != stack and not fleet.berths:
        raise NotUpError(
            f"stack {stack} is not up on environment {up.stack}; run: berth up -s {stack}"
        )


def fleet_from(reader: Reader, stack: str, up: LiveEnvironment) -> Fleet:
    """Return the fleet of a stack on an environment that is up, as a reader sees the cluster."""
    pools = offered_pools(up.contract.pools, up.contract.sharing).values()
    fleet = observed_fleet(
        reader, stack, up.contract.name, pools, lambda text: err.print(text, style="yellow")
    )
    if up.stack != stack:
        return fleet.of_stack(stack)
    return replace(
        fleet,
        not_in_state=namespaces_not_in_state(up, reader),
        missing=_missing(fleet, up.outputs),
    )


def _missing(fleet: Fleet, outputs: Mapping[str, Any]) -> list[MissingOwner]:
    """Return the owners that an environment's last update registered and the cluster lacks."""
    kinds: tuple[tuple[OwnerKind, str, Iterable[LiveRayCluster | LiveJob | LiveService]], ...] = (
        ("engineer", "berths", fleet.berths),
        ("cluster", "clusters", fleet.clusters),
        ("job", "jobs", fleet.jobs),
        ("service", "services", fleet.services),
    )
    missing = []
    for kind, output, workloads in kinds:
        present = {workload.name for workload in workloads}
        registered = str(outputs.get(output, "")).split(", ")
        missing += [MissingOwner(kind, name) for name in registered if name and name not in present]
    return missing
