"""RayCluster and group of workers whose fabric is verified, and what the proof should show."""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.cli.reach.environment import LiveEnvironment
from berth.cli.reach.pods import require_group
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.fabric import claim_of
from berth.components.hardware.machines import GIB
from berth.components.hardware.names import DRANET, MANAGED_RDMA
from berth.components.proof import Expected, Threshold, threshold_of
from berth.components.ray import RayClusterSettings, WorkerGroup
from berth.components.sharing import Pool
from berth.stacks.load.stack import EngineerStack, load_stack
from berth.stacks.settings.resolved import Resolved


@dataclass(frozen=True)
class FabricTarget:
    """RayCluster whose fabric is verified.

    Attributes:
        cluster: its settings.
        expected: evidence that its workers should give.
        threshold: bandwidth that they should reach.
    """

    cluster: RayClusterSettings
    expected: Expected
    threshold: Threshold


def fabric_target(
    stack: str, cluster: str | None, group_name: str | None, environment: LiveEnvironment
) -> FabricTarget:
    """Return the RayCluster and the group of workers to verify.

    Raises:
        BadInputError: there is no such RayCluster or group, several, or one without a fabric.
    """
    loaded = load_stack(stack)
    if isinstance(loaded, EngineerStack):
        resolved = loaded.on(environment.contract).resolved
    else:
        resolved = loaded.resolved
    settings = _chosen_cluster(stack, cluster, environment, resolved)
    group = _group_of(settings, group_name)
    pool = resolved.pools[group.pool]
    expected = _expected_of(settings.name, group, pool)
    bandwidth = group.nccl.min_bus_bandwidth
    threshold = threshold_of(
        pool.settings.machine, expected.nics, None if bandwidth is None else float(bandwidth)
    )
    return FabricTarget(settings, expected, threshold)


def _chosen_cluster(
    stack: str, name: str | None, environment: LiveEnvironment, resolved: Resolved
) -> RayClusterSettings:
    """Return the named RayCluster; without a name the only one there is to verify."""
    own = environment.stack != stack
    by_name = {cluster.name: cluster for cluster in (*resolved.clusters, *resolved.berths)}
    names = ", ".join(sorted(by_name))
    if name is not None:
        return _cluster_named(stack, name, environment, by_name)
    choice = resolved.berths if own else resolved.clusters or resolved.berths
    if len(choice) == 1:
        return choice[0]
    if not by_name:
        raise BadInputError(
            f"environment {environment.stack} has no RayCluster of its own",
            "name an engineer's stack with -s",
        )
    raise BadInputError(
        f"environment {environment.stack} has several RayClusters; name one with --cluster: {names}"
    )


def _cluster_named(
    stack: str,
    name: str,
    environment: LiveEnvironment,
    by_name: Mapping[str, RayClusterSettings],
) -> RayClusterSettings:
    if name in by_name:
        return by_name[name]
    names = ", ".join(sorted(by_name))
    if environment.stack != stack:
        raise BadInputError(
            f"stack {stack} is an engineer's and has only {names}; for another RayCluster of"
            f" environment {environment.stack}: berth verify fabric -s {environment.stack}"
            f" --cluster {name}"
        )
    guess = did_you_mean(name, by_name) or f"; there are {names}"
    raise BadInputError(
        f"environment {environment.stack} has no RayCluster {name!r}{guess}",
        f"`berth status -s {environment.stack}` lists them",
    )


def _group_of(settings: RayClusterSettings, name: str | None) -> WorkerGroup:
    """Return the named group of workers; else the only one with NICs, with GPUs, or at all."""
    groups = {group.name: group for group in settings.groups}
    if name is not None:
        require_group(settings.name, name, groups)
        return groups[name]
    with_nics = [group for group in settings.groups if group.nics]
    with_gpus = [group for group in settings.groups if group.gpus]
    candidates = with_nics or with_gpus or settings.groups
    if len(candidates) > 1:
        names = ", ".join(group.name for group in candidates)
        raise BadInputError(
            f"{settings.name} has several groups of workers to verify; name one with --group:"
            f" {names}"
        )
    return candidates[0]


def _expected_of(cluster: str, group: WorkerGroup, pool: Pool) -> Expected:
    """Return the evidence that a group of workers of a RayCluster should give."""
    if pool.shared:
        raise BadInputError(
            f"pool {pool.name!r} shares its GPUs, and NCCL cannot have two processes on one GPU:"
            f" there is no fabric to verify for {cluster!r}",
            "name a RayCluster on a pool of whole GPUs",
        )
    why = ""
    if not pool.settings.nics:
        why = f"pool {pool.name!r} has `rdma: none`"
    elif not group.nics:
        partly = group.gpus < pool.per_node and not pool.settings.by_dra
        why = "worker.nics is 0"
        if partly:
            why += ", the default for workers that count some of a node's GPUs"
    claim = claim_of(group, pool)
    return Expected(
        cluster=cluster,
        workers=group.at_start,
        gpus=group.gpus,
        nics=group.nics,
        claimed_gpus=claim is not None and claim.gpus > 0,
        device_class=MANAGED_RDMA if pool.settings.rdma == "managed" else DRANET,
        why_no_nics=why,
        group=group.name,
        sourced=group.nccl.profile == GIB,
    )
