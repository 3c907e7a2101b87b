"""Program of an environment's stack: cluster, operators, berths, clusters, jobs, services."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes

from berth.components.berth import Berth
from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.gke import storage_classes
from berth.components.hardware.names import ResourceApi
from berth.components.isolation import (
    admission_policies,
    operator_policy,
    preview_rights,
    priority_classes,
)
from berth.components.lifecycle import KEEPER_USER, KeeperSettings, keeper_manifests
from berth.components.lifecycle.component import Keeper
from berth.components.operators import Installation, OperatorsSettings, Site
from berth.stacks.load.stack import Environment
from berth.stacks.program import DIGEST, DIGEST_OUTPUT, digest_of
from berth.stacks.program.adoption import wait_for_adoption
from berth.stacks.program.claims_api import claims_api
from berth.stacks.program.cluster_mark import answer_of_cluster, mark_cluster
from berth.stacks.program.notices import log_notices
from berth.stacks.program.platform import Platform, existing_platform
from berth.stacks.program.waiting import Registered
from berth.stacks.settings.contract import has_keeper, keeper_image


async def register_environment(loaded: Environment, *, recorded: bool = False) -> Registered:
    """Register an environment, and return what `pulumi up` waits for and its outputs.

    Args:
        loaded: the environment, whose settings are right.
        recorded: whether the program is only recorded, so that no cluster is asked.

    Raises:
        SettingsError: the settings do not fit the existing cluster.
    """
    log_notices(loaded.warnings, loaded.judgment.waivers)
    occupants = _occupants(loaded)
    platform = await _platform(loaded, occupants)
    answer = None
    if loaded.settings.cluster.existing and not recorded:
        platform, answer = await answer_of_cluster(loaded, platform)
    resource_api = await claims_api(loaded.settings, platform.kubeconfig)
    kubernetes = platform.provider()
    mark = await mark_cluster(loaded, platform, kubernetes, answer)
    site = _site(loaded, platform, occupants, resource_api)
    on_nodes = pulumi.ResourceOptions(
        providers={"kubernetes": kubernetes}, depends_on=list(platform.ready)
    )
    operators = install_operators(loaded.settings.operators, site, on_nodes)
    gate = _cluster_wide_objects(loaded, kubernetes, mark, operators)
    _register_preview_rights(loaded, kubernetes, platform.ready)
    on_cluster = pulumi.ResourceOptions(providers={"kubernetes": kubernetes}, depends_on=[gate])
    if has_keeper(loaded.settings, loaded.resolved.every):
        Keeper("keeper", _keeper(loaded), on_cluster)
    await wait_for_adoption(loaded, platform.kubeconfig, gate)
    berths = [
        Berth(inputs.settings.name, inputs.on_api(resource_api), on_cluster)
        for inputs in loaded.berths
    ]
    outputs = _outputs(loaded, platform, resource_api)
    return Registered(outputs, platform.kubeconfig, berths, loaded.resolved.pools)


def _occupants(loaded: Environment) -> dict[str, list[str]]:
    """Return the names of the RayClusters on each pool."""
    occupants: dict[str, list[str]] = {}
    for cluster in loaded.resolved.every:
        for pool in cluster.pools:
            occupants.setdefault(pool, []).append(cluster.name)
    return occupants


def _site(
    loaded: Environment,
    platform: Platform,
    occupants: Mapping[str, Sequence[str]],
    resource_api: ResourceApi,
) -> Site:
    mirror = loaded.settings.mirror
    return Site(
        loaded.resolved.pools,
        platform.kubeconfig,
        occupants,
        resource_api,
        loaded.manifests,
        chart_mirror=mirror.charts or "",
        image_mirror=mirror.images or "",
    )


def _cluster_wide_objects(
    loaded: Environment,
    kubernetes: pulumi_kubernetes.Provider,
    mark: pulumi.Resource,
    operators: Sequence[pulumi.Resource],
) -> KubernetesObject:
    """Register the objects of a cluster that berths need; return the one that comes last.

    It comes after the operators and all other objects, so that the state of each berth names one
    resource.
    """
    settings = loaded.settings
    # Berths of other stacks may be on a cluster that this stack has not made: these objects stay.
    of_cluster = pulumi.ResourceOptions(
        provider=kubernetes,
        depends_on=[mark],
        retain_on_delete=settings.cluster.existing is not None or None,
    )
    classes = storage_classes(settings, settings.cluster.name or loaded.stack)
    *first, last = [*priority_classes(), *classes, *admission_policies([KEEPER_USER])]
    before = [
        KubernetesObject(manifest["metadata"]["name"], manifest, of_cluster) for manifest in first
    ]
    kuberay = settings.operators.kuberay
    if settings.isolation.network_policies and kuberay.source == "chart":
        after_operators = pulumi.ResourceOptions(provider=kubernetes, depends_on=operators)
        before.append(
            KubernetesObject("kuberay-operator", operator_policy(kuberay), after_operators)
        )
    after_all = pulumi.ResourceOptions(depends_on=[*operators, *before])
    return KubernetesObject(
        last["metadata"]["name"], last, pulumi.ResourceOptions.merge(of_cluster, after_all)
    )


def _register_preview_rights(
    loaded: Environment, kubernetes: pulumi_kubernetes.Provider, ready: Sequence[pulumi.Resource]
) -> None:
    """Register the rights of those who preview the environment, each after what limits it."""
    limits = list(ready)
    for manifest in preview_rights(loaded.stack, loaded.settings.previewers):
        options = pulumi.ResourceOptions(provider=kubernetes, depends_on=limits)
        limits = [KubernetesObject(manifest["metadata"]["name"], manifest, options)]


def _outputs(
    loaded: Environment, platform: Platform, resource_api: ResourceApi
) -> dict[str, pulumi.Input[Any]]:
    """Return the outputs of the stack."""
    resolved = loaded.resolved
    # For engineers' stacks, not for people: as a secret it doesn't fill the screen at every update.
    # As a text, of which Pulumi does not make an output for each of its values.
    document = loaded.contract(resource_api).model_dump_json(by_alias=True, exclude_none=True)
    contract = pulumi.Output.secret(document).apply(json.loads)
    outputs: dict[str, pulumi.Input[Any]] = {
        "berths": ", ".join(berth.name for berth in resolved.berths),
        "clusters": ", ".join(cluster.name for cluster in resolved.clusters),
    }
    if resolved.jobs:
        outputs["jobs"] = ", ".join(job.name for job in resolved.jobs)
    if resolved.services:
        outputs["services"] = ", ".join(service.name for service in resolved.services)
    outputs |= {
        "environment": contract,
        "clusterId": platform.cluster_id,
        "kubeconfig": platform.public,
    }
    if os.environ.get(DIGEST):
        secret = pulumi.Output.all(environment=contract, kubeconfig=platform.public)
        outputs[DIGEST_OUTPUT] = pulumi.Output.unsecret(secret.apply(digest_of))
    return outputs


def install_operators(
    operators: OperatorsSettings, site: Site, on_nodes: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Install a cluster's operators, each after the ones that it needs; return the components."""
    installed: dict[type, pulumi.Resource] = {}
    for operator in operators.on(site):
        needs = [installed[needed] for needed in operator.needs if needed in installed]
        options = pulumi.ResourceOptions.merge(on_nodes, pulumi.ResourceOptions(depends_on=needs))
        installed[type(operator)] = Installation(operator.release, operator, options)
    return list(installed.values())


def _keeper(loaded: Environment) -> list[Manifest]:
    """Return the keeper's objects: it runs where heads run, else without GPUs, else anywhere."""
    schedule = (loaded.settings.keeper or KeeperSettings()).schedule
    pools = loaded.resolved.pools
    heads = {cluster.head.pool for cluster in loaded.resolved.every}
    without_gpus = {name for name, pool in pools.items() if not pool.per_node}
    chosen = heads or without_gpus or set(pools)
    on = {name: pools[name].settings for name in chosen}
    return keeper_manifests(loaded.stack, keeper_image(loaded.settings), schedule, on, MANAGED_BY)


async def _platform(loaded: Environment, occupants: Mapping[str, Sequence[str]]) -> Platform:
    cluster = loaded.settings.cluster
    if cluster.existing:
        return existing_platform(loaded.stack, cluster.existing, loaded.file)
    # Imported only where something is made in Google Cloud: it takes seconds.
    from berth.stacks.program.google import register_in_google  # noqa: PLC0415

    name = cluster.name or loaded.stack
    return await register_in_google(
        name, loaded.settings, loaded.resolved.pools, occupants, loaded.file
    )
