"""Program of an environment's stack: cluster, operators, berths, clusters, jobs, services."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from berth.components.berth import Berth
from berth.components.cluster.objects import KubernetesObject
from berth.components.core.errors import BadInputError
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.core.problems import Problem
from berth.components.core.project import path_of_setting
from berth.components.gke import storage_classes
from berth.components.isolation import (
    admission_policies,
    operator_policy,
    preview_rights,
    priority_classes,
)
from berth.components.lifecycle import KEEPER_USER, KeeperSettings, keeper_manifests
from berth.components.lifecycle.component import Keeper
from berth.components.operators import Installation, OperatorsSettings, Site
from berth.stacks.files import manifest_file
from berth.stacks.load.stack import Environment, SettingsError
from berth.stacks.program import DIGEST, DIGEST_OUTPUT, digest_of
from berth.stacks.program.adoption import wait_for_adoption
from berth.stacks.program.claims_api import claims_api
from berth.stacks.program.cluster_mark import looked_at, mark_cluster
from berth.stacks.program.notices import log
from berth.stacks.program.platform import Platform, existing_platform
from berth.stacks.program.waiting import Registered
from berth.stacks.settings.contract import has_keeper, keeper_image


async def environment(loaded: Environment, *, recorded: bool = False) -> Registered:
    """Register an environment, and return what `pulumi up` waits for and its outputs."""
    stack, settings, resolved = loaded.stack, loaded.settings, loaded.resolved
    log(loaded.warnings, loaded.judgment.waivers)
    occupants: dict[str, list[str]] = {}
    for cluster in resolved.every:
        for pool in cluster.pools:
            occupants.setdefault(pool, []).append(cluster.name)
    manifests = _dranet_manifests(loaded)
    platform = await _platform(loaded, occupants)
    answer = None
    if settings.cluster.existing and not recorded:
        platform, answer = await looked_at(loaded, platform)
    resource_api = await claims_api(settings, platform.kubeconfig)
    kubernetes = platform.provider()
    mark = await mark_cluster(loaded, platform, kubernetes, answer)
    on_nodes = pulumi.ResourceOptions(
        providers={"kubernetes": kubernetes}, depends_on=list(platform.ready)
    )
    mirror = settings.mirror
    site = Site(
        resolved.pools,
        platform.kubeconfig,
        occupants,
        resource_api,
        manifests,
        chart_mirror=mirror.charts or "",
        image_mirror=mirror.images or "",
    )
    operators = install(settings.operators, site, on_nodes)
    classes = storage_classes(settings, settings.cluster.name or stack)
    *first, last = [*priority_classes(), *classes, *admission_policies([KEEPER_USER])]
    shared = settings.cluster.existing is not None
    # Berths of other stacks may be on a cluster that this stack has not made: these objects stay.
    of_cluster = pulumi.ResourceOptions(
        provider=kubernetes, depends_on=[mark], retain_on_delete=shared or None
    )
    before = [
        KubernetesObject(manifest["metadata"]["name"], manifest, of_cluster) for manifest in first
    ]
    kuberay = settings.operators.kuberay
    if settings.isolation.network_policies and kuberay.source == "chart":
        after_operators = pulumi.ResourceOptions(provider=kubernetes, depends_on=operators)
        before.append(
            KubernetesObject("kuberay-operator", operator_policy(kuberay), after_operators)
        )
    # The last object comes after everything that berths need, so that the state of each berth names
    # one resource.
    after_all = pulumi.ResourceOptions(depends_on=[*operators, *before])
    gate = KubernetesObject(
        last["metadata"]["name"], last, pulumi.ResourceOptions.merge(of_cluster, after_all)
    )
    on_cluster = pulumi.ResourceOptions(providers={"kubernetes": kubernetes}, depends_on=[gate])
    limits: list[pulumi.Resource] = [*platform.ready]
    for manifest in preview_rights(stack, settings.previewers):
        # The policy comes before the rights that it limits.
        after = pulumi.ResourceOptions(provider=kubernetes, depends_on=limits)
        limits = [KubernetesObject(manifest["metadata"]["name"], manifest, after)]
    if has_keeper(settings, resolved.every):
        Keeper("keeper", _keeper(loaded), on_cluster)
    await wait_for_adoption(loaded, platform.kubeconfig, gate)
    berths = [
        Berth(inputs.settings.name, inputs.on_api(resource_api), on_cluster)
        for inputs in loaded.berths
    ]
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
    return Registered(outputs, platform.kubeconfig, berths)


def install(
    operators: OperatorsSettings, site: Site, on_nodes: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Install a cluster's operators, each after the ones that it needs; return the components."""
    installed: dict[type, pulumi.Resource] = {}
    for operator in operators.on(site):
        needs = [installed[needed] for needed in operator.needs if needed in installed]
        options = pulumi.ResourceOptions.merge(on_nodes, pulumi.ResourceOptions(depends_on=needs))
        installed[type(operator)] = Installation(operator.release, operator, options)
    return list(installed.values())


def _dranet_manifests(loaded: Environment) -> Mapping[str, Sequence[Manifest]]:
    """Return the objects of DraNet where a file has them; read before anything is registered."""
    dranet = loaded.settings.operators.dranet
    if dranet.source != "manifest" or dranet.manifest is None:
        return {}
    try:
        return {"dranet": manifest_file.read_manifests(path_of_setting(dranet.manifest))}
    except BadInputError as error:
        problem = Problem(("environment", "operators", "dranet", "manifest"), str(error))
        raise SettingsError(loaded.stack, [problem], loaded.file) from None


def _keeper(loaded: Environment) -> list[Manifest]:
    """Return the keeper's objects: it runs where heads run, else without GPUs, else anywhere."""
    settings, pools = loaded.settings.keeper or KeeperSettings(), loaded.resolved.pools
    heads = {cluster.head.pool for cluster in loaded.resolved.every}
    without_gpus = {name for name, pool in pools.items() if not pool.per_node}
    chosen = heads or without_gpus or set(pools)
    on = {name: pools[name].settings for name in chosen}
    return keeper_manifests(
        loaded.stack, keeper_image(loaded.settings), settings.schedule, on, MANAGED_BY
    )


async def _platform(loaded: Environment, occupants: Mapping[str, Sequence[str]]) -> Platform:
    cluster = loaded.settings.cluster
    if cluster.existing:
        return existing_platform(loaded.stack, cluster.existing, loaded.file)
    # Imported only where something is made in Google Cloud: it takes seconds.
    from berth.stacks.program.google import google  # noqa: PLC0415

    name = cluster.name or loaded.stack
    return await google(name, loaded.settings, loaded.resolved.pools, occupants, loaded.file)
