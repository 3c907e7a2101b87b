"""Resources of an environment in Google Cloud: networks, cluster, node pools.

The module stands alone since an environment on an existing cluster does not need it.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import pulumi
import pulumi_gcp as gcp

from berth.components.core.types import OWN_ACCOUNT
from berth.components.gke import (
    PROVIDER,
    Cluster,
    ClusterInputs,
    Network,
    NetworkInputs,
    NodeAccount,
    NodePlace,
    NodePool,
    NodePoolInputs,
    node_account_address,
    why_too_old,
)
from berth.components.sharing import Pool, Pools, lines_of_labels, node_labels
from berth.stacks.files.stack_file import StackFile
from berth.stacks.program.platform import Platform
from berth.stacks.settings.environment import EnvironmentSettings


async def register_in_google(
    name: str,
    settings: EnvironmentSettings,
    pools: Pools,
    occupants: Mapping[str, Sequence[str]],
    file: StackFile | None = None,
) -> Platform:
    """Register the cluster with its networks and node pools."""
    project = settings.project or ""
    provider = gcp.Provider(
        PROVIDER, project=project, region=settings.in_region, zone=settings.zone
    )
    on_google = pulumi.ResourceOptions(providers={"gcp": provider})
    network = Network(
        name,
        NetworkInputs(
            settings.network,
            project,
            settings.in_region,
            settings.cluster.private_nodes,
            settings.rdma_zones,
        ),
        on_google,
    )
    own = settings.cluster.node_service_account == OWN_ACCOUNT
    accounts = [NodeAccount(name, project, on_google)] if own else []
    cluster = Cluster(name, ClusterInputs(settings, network, accounts), on_google)
    await _check_version(settings, cluster)

    def node_pool(pool: Pool, after: Sequence[NodePool] = ()) -> NodePool:
        inputs = NodePoolInputs(
            pool.settings,
            cluster.name,
            _place(name, settings, pool, network),
            partial(lines_of_labels, pool.name, occupants=occupants.get(pool.name, ())),
            _subnetworks(settings, pool, network),
            f"{file.shown_path}:{file.line(('environment', 'pools', pool.name))}" if file else "",
        )
        return NodePool(
            pool.name, inputs, pulumi.ResourceOptions(providers={"gcp": provider}, depends_on=after)
        )

    # Pods of GKE itself that start while there are GPU nodes alone would hold these from then on.
    plain = [node_pool(pool) for pool in pools.values() if not pool.settings.machine.gpus]
    with_gpus = [node_pool(pool, plain) for pool in pools.values() if pool.settings.machine.gpus]
    # Its kubeconfig has no credentials: the login is that of GKE's plugin.
    return Platform(cluster.kubeconfig, cluster.kubeconfig, cluster.id, [*plain, *with_gpus])


def _place(cluster: str, settings: EnvironmentSettings, pool: Pool, network: Network) -> NodePlace:
    zones = settings.zones_of(pool.settings)
    return NodePlace(
        project=settings.project or "",
        cluster=cluster,
        location=settings.location,
        zones=zones,
        labels=settings.labels,
        node_labels=node_labels(pool),
        service_account=node_account_address(settings, cluster),
        private=settings.cluster.private_nodes,
        taint_gpus=any(not other.machine.gpus for other in settings.pools.values()),
        networks=network.node_networks(zones[0]) if _has_networks(settings, pool) else (),
    )


def _has_networks(settings: EnvironmentSettings, pool: Pool) -> bool:
    return pool.settings.rdma == "networks" and bool(settings.zones_of(pool.settings))


def _subnetworks(
    settings: EnvironmentSettings, pool: Pool, network: Network
) -> Sequence[pulumi.Resource]:
    if not _has_networks(settings, pool):
        return ()
    return network.node_subnetworks(settings.zones_of(pool.settings)[0])


async def _check_version(settings: EnvironmentSettings, cluster: Cluster) -> None:
    """Check the version, unknown in the first preview: GKE would refuse a pool less clearly."""
    version = await cluster.version.future()
    problem = why_too_old(settings, version) if version else None
    if problem:
        raise pulumi.RunError(
            f"the cluster was created, its pools were not: {problem.removesuffix('.')}; then run"
            " the update again"
        )
