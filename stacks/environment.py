"""The program of an environment's stack: a cluster of its own or an existing one, operators, berths, named clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pulumi

from berth.components.berth import Berth, BerthInputs
from berth.components.cluster.objects import KubernetesObject
from berth.components.cluster.provider import kubernetes_provider
from berth.components.core.owner import OwnerKind
from berth.components.isolation import priority_classes
from berth.components.lifecycle import Keeper, KeeperInputs, KeeperSettings
from berth.components.operators import Site
from berth.components.ray.settings import BUILT_IN, RayClusterSettings
from berth.components.ray.workload_settings import RayJobSettings, RayServiceSettings
from berth.stacks import service_code
from berth.stacks.claims_api import claims_api
from berth.stacks.existing import existing
from berth.stacks.installed import install, manifests_of
from berth.stacks.notices import say
from berth.stacks.platforms import Platform
from berth.stacks.policies.settings import judge_environment
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import Resolved, contract_of, has_keeper, resolve_environment
from berth.stacks.stack_file import StackFile
from berth.stacks.waiting import wait_until_ready


async def environment(stack: str, settings: EnvironmentSettings, file: StackFile | None = None) -> None:
    """Make an environment.

    Args:
        stack: the stack's name, and the environment's.
        settings: checked settings.
        file: where they were written, for lines in errors.

    Raises:
        SettingsError: the kubeconfig of an existing cluster is none, or DraNet's manifest no file of objects.
        RunError: the cluster's version is too old for what the settings ask, or it serves no claims and they need some.
        NotReadyError: a RayCluster or RayService is not ready in time, or a RayJob is not where it should be.
    """
    resolved = resolve_environment(settings)
    judged = judge_environment(stack, settings, resolved)
    say([*judged.warnings, *resolved.warnings], judged.waivers)
    occupants: dict[str, list[str]] = {}
    for its in resolved.every:
        occupants.setdefault(its.worker.pool, []).append(its.name)
    manifests = manifests_of(stack, settings, file)
    platform = await _platform(stack, settings, resolved, occupants, file)
    resource_api = await claims_api(settings, platform.kubeconfig)
    kubernetes = kubernetes_provider(platform.kubeconfig, platform.cluster_id)
    on_nodes = pulumi.ResourceOptions(providers={"kubernetes": kubernetes}, depends_on=list(platform.ready))
    site = Site(resolved.pools, platform.kubeconfig, occupants, resource_api, manifests)
    operators = install(settings.operators, site, on_nodes)
    of_cluster = pulumi.ResourceOptions(provider=kubernetes, depends_on=list(platform.ready))
    ranks = [KubernetesObject(each["metadata"]["name"], each, of_cluster) for each in priority_classes()]
    # Where GKE brings the operator, or it is there already, the nodes at least come first, and go last.
    on_cluster = pulumi.ResourceOptions(
        providers={"kubernetes": kubernetes}, depends_on=[*platform.ready, *operators, *ranks]
    )
    wanted = [
        BerthInputs(
            cluster,
            resolved.pools,
            environment=stack,
            stack=stack,
            kind=kind,
            resource_api=resource_api,
            isolation=settings.isolation,
            kuberay=settings.operators.kuberay,
            workload=workload,
            jobs=[job for job in resolved.jobs if job.cluster.name == cluster.name and not job.own_cluster],
        )
        for kind, cluster, workload in every(resolved)
    ]
    if has_keeper(settings, resolved):
        Keeper("keeper", _keeper(stack, settings, resolved), on_cluster)
    berths = [Berth(each.settings.name, each, on_cluster) for each in wanted]
    pulumi.export("berths", ", ".join(berth.name for berth in resolved.berths))
    pulumi.export("clusters", ", ".join(each.name for each in resolved.clusters))
    if resolved.jobs:
        pulumi.export("jobs", ", ".join(job.name for job in resolved.jobs))
    if resolved.services:
        pulumi.export("services", ", ".join(service.name for service in resolved.services))
    # For engineers' stacks, not for eyes: as a secret it doesn't fill the screen at every update.
    contract = contract_of(settings, stack, resolved, resource_api)
    document = json.loads(contract.model_dump_json(by_alias=True, exclude_none=True))
    pulumi.export("environment", pulumi.Output.secret(document))
    pulumi.export("clusterId", platform.cluster_id)
    pulumi.export("kubeconfig", platform.kubeconfig)
    await wait_until_ready(stack, platform.kubeconfig, berths)


def every(
    resolved: Resolved,
) -> Iterator[tuple[OwnerKind, RayClusterSettings, RayJobSettings | RayServiceSettings | None]]:
    """Every RayCluster, whose it is, and the RayJob or RayService that has it made."""
    yield from (("engineer", berth, None) for berth in resolved.berths)
    yield from (("cluster", cluster, None) for cluster in resolved.clusters)
    yield from (("job", job.cluster, job) for job in resolved.jobs if job.own_cluster)
    yield from (("service", service.cluster, service_code.complete(service)) for service in resolved.services)


def _keeper(stack: str, settings: EnvironmentSettings, resolved: Resolved) -> KeeperInputs:
    """It runs where heads run; where there are none yet, on any pool without GPUs, or on any at all."""
    its = settings.keeper or KeeperSettings()
    pools = resolved.pools
    heads = {each.head.pool for each in resolved.every}
    without_gpus = {name for name, pool in pools.items() if not pool.per_node}
    image = its.image or settings.defaults.image or BUILT_IN.image or ""
    chosen = heads or without_gpus or set(pools)
    return KeeperInputs(stack, image, {name: pools[name].settings for name in chosen}, its)


async def _platform(
    stack: str,
    settings: EnvironmentSettings,
    resolved: Resolved,
    occupants: Mapping[str, Sequence[str]],
    file: StackFile | None,
) -> Platform:
    if settings.cluster.existing:
        return existing(stack, settings.cluster.existing, file)
    # Imported only where something is made in Google Cloud: it takes seconds.
    from berth.stacks.google import google  # noqa: PLC0415

    return await google(settings.cluster.name or stack, settings, resolved.pools, occupants)
