"""The program of an environment's stack: network, cluster, pools, operators, berths, named clusters."""

from __future__ import annotations

import json

import pulumi
import pulumi_gcp

from components.berth import Berth, BerthInputs
from components.gke.cluster import Cluster, ClusterInputs
from components.gke.network import Network, NetworkInputs
from components.gke.node_pool import NodePool, NodePoolInputs
from components.kubernetes_provider import kubernetes_provider
from components.operators.gpu_operator import GpuOperator, GpuOperatorInputs, served
from components.operators.kuberay import KubeRay
from stacks.settings.environment import EnvironmentSettings
from stacks.settings.resolve import contract_of, resolve_environment
from stacks.waiting import wait_until_ready


async def environment(stack: str, settings: EnvironmentSettings) -> None:
    """Make an environment.

    Args:
        stack: the stack's name, and the environment's.
        settings: checked settings.

    Raises:
        NotReadyError: a RayCluster is not ready in time.
    """
    resolved = resolve_environment(settings)
    for warning in resolved.warnings:
        pulumi.log.warn(f"{warning.where}: {warning.message}")
    occupants: dict[str, list[str]] = {}
    for its in (*resolved.berths, *resolved.clusters):
        occupants.setdefault(its.worker.pool, []).append(its.name)
    name = settings.cluster.name or stack
    google = pulumi_gcp.Provider("google", project=settings.project, zone=settings.zone)
    on_google = pulumi.ResourceOptions(providers={"gcp": google})
    network = Network(name, NetworkInputs(settings.network, region=settings.in_region), on_google)
    cluster = Cluster(
        name, ClusterInputs(settings.cluster, settings.project or "", settings.location, network), on_google
    )
    pools = {
        pool: NodePool(pool, NodePoolInputs(its, cluster.name, settings.location, occupants.get(pool, ())), on_google)
        for pool, its in resolved.pools.items()
    }
    kubernetes = kubernetes_provider(cluster.kubeconfig, cluster.id)
    on_nodes = pulumi.ResourceOptions(providers={"kubernetes": kubernetes}, depends_on=list(pools.values()))
    operators: list[pulumi.Resource] = [KubeRay("kuberay-operator", settings.operators.kuberay, on_nodes)]
    if served(resolved.pools):
        inputs = GpuOperatorInputs(settings.operators.gpu, resolved.pools, settings.sharing, occupants)
        operators.append(GpuOperator("gpu-operator", inputs, on_nodes))
    on_cluster = pulumi.ResourceOptions(providers={"kubernetes": kubernetes}, depends_on=operators)
    wanted = [
        *(BerthInputs(its, resolved.pools, environment=stack, stack=stack, kind="engineer") for its in resolved.berths),
        *(
            BerthInputs(its, resolved.pools, environment=stack, stack=stack, kind="cluster")
            for its in resolved.clusters
        ),
    ]
    berths = [Berth(each.settings.name, each, on_cluster) for each in wanted]
    pulumi.export("berths", ", ".join(berth.name for berth in resolved.berths))
    pulumi.export("clusters", ", ".join(each.name for each in resolved.clusters))
    # For engineers' stacks, not for eyes: as a secret it doesn't fill the screen at every update.
    contract = contract_of(settings, stack, resolved)
    document = json.loads(contract.model_dump_json(by_alias=True, exclude_none=True))
    pulumi.export("environment", pulumi.Output.secret(document))
    pulumi.export("clusterId", cluster.id)
    pulumi.export("kubeconfig", cluster.kubeconfig)
    await wait_until_ready(stack, cluster.kubeconfig, berths)
