"""Policies applied to a stack's settings: a breach is a problem of the setting that causes it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from berth.components.berth import BerthInputs
from berth.components.core.manifest import resource_type
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import OwnerKind
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.words import counted, names_in_words
from berth.components.gke import cluster_arguments, node_account_address
from berth.components.lifecycle import KeeperSettings, keeper_manifests
from berth.components.operators import Gib, Site
from berth.components.ray import RayShape
from berth.components.sharing import Pools
from berth.stacks.policies.planned import gke_cluster, node_pool
from berth.stacks.policies.policy import (
    Planned,
    Policy,
    PolicyContext,
    Violation,
    Waiver,
    how_to_waive,
    waivers,
)
from berth.stacks.policies.registry import policies, violations
from berth.stacks.settings.contract import EnvironmentContract, has_keeper, keeper_image
from berth.stacks.settings.environment import KEYS, EnvironmentSettings

_PRODUCTION = re.compile("(^|-)prod(uction)?(-|$)")
"""Name of a stack or a project that says production."""


@dataclass
class Judgment:
    """Judgment of the policies on a stack's settings."""

    context: PolicyContext = field(default_factory=PolicyContext)
    problems: list[Problem] = field(default_factory=list)
    """Breaches of policies that hold, and waivers of unknown policies."""
    warnings: list[Problem] = field(default_factory=list)
    """Waivers that nothing needs."""
    waivers: list[Waiver] = field(default_factory=list)
    """Waivers that something needs."""
    held: list[str] = field(default_factory=list)
    """Names of the policies that the settings were held to."""
    notes: list[str] = field(default_factory=list)
    """Advice about settings that break no policy."""


def judge_environment(
    stack: str, settings: EnvironmentSettings, pools: Pools, berths: Sequence[BerthInputs]
) -> Judgment:
    """Hold an environment's settings, and what its program registers for them, to the policies."""
    context = PolicyContext(
        settings.is_production(stack),
        settings.policies.required_labels,
        settings.policies.waived,
        _with_rdma(pools),
    )
    broken = violations(_planned_of_environment(stack, settings, pools, berths), context)
    judgment = Judgment(context, waivers=waivers(broken), held=_held(context, policies().values()))
    shapes: dict[str, tuple[OwnerKind, RayShape]] = {}
    for berth in berths:
        kind = berth.workload.kind
        name = berth.settings.name
        shapes[name] = kind, getattr(settings, KEYS[kind])[name]
    reported = set()
    for violation in broken:
        policy = policies()[violation.policy]
        path = _where(policy, violation, shapes, settings)
        # A setting of `defaults` is wrong once, whatever number of RayClusters takes it.
        if not violation.waived and (policy.name, path) not in reported:
            reported.add((policy.name, path))
            message = f"{violation}, or waive it ({how_to_waive(policy.name)})"
            judgment.problems.append(Problem(path, message, rests_on=_rests_on(policy)))
    _judge_waivers(settings.policies.waived, judgment)
    judgment.notes += _notes_on_production(stack, settings)
    return judgment


def _notes_on_production(stack: str, settings: EnvironmentSettings) -> Iterator[str]:
    """Yield a note on an environment that looks like production, and does not say what it is."""
    if settings.production is not None or settings.is_production(stack):
        return
    signs = [
        f"pool {name} has a reservation"
        for name, pool in settings.pools.items()
        if pool.capacity.kind == "reservation"
    ][:1]
    if settings.project and _PRODUCTION.search(settings.project):
        signs.append(f"its project is {settings.project}")
    if _PRODUCTION.search(stack):
        signs.append(f"its name is {stack}")
    if signs:
        more = [policy.name for policy in policies().values() if policy.production]
        yield (
            f"not production, though {names_in_words(signs, 'and')}: `production: true` asks"
            f" {counted(len(more), 'more policy')} ({', '.join(more)}), and `production: false`"
            " says that it is none"
        )


def _planned_of_environment(
    stack: str, settings: EnvironmentSettings, pools: Pools, berths: Sequence[BerthInputs]
) -> Iterator[Planned]:
    """Yield what an environment's program registers, as far as policies judge it."""
    for berth in berths:
        yield from _planned(berth)
    if settings.cluster.existing is None:
        cluster = settings.cluster.name or stack
        arguments = cluster_arguments(settings, node_account_address(settings, cluster))
        yield gke_cluster(cluster, arguments)
        for name in settings.pools:
            yield node_pool(name, arguments["node_config"])
    site = Site(pools, image_mirror=settings.mirror.images or "")
    gib = Gib.on(settings.operators.gib, site)
    if gib:
        for part in gib.parts(gib.release):
            yield Planned(resource_type(part.manifest), part.name, part.manifest)
    if has_keeper(settings, [berth.settings for berth in berths]):
        schedule = KeeperSettings().schedule
        for manifest in keeper_manifests(stack, keeper_image(settings), schedule, {}, {}):
            yield Planned(resource_type(manifest), manifest["metadata"]["name"], manifest)


def judge_engineer(contract: EnvironmentContract, pools: Pools, berth: BerthInputs) -> Judgment:
    """Hold an engineer's own stack to its environment's policies, with that one's waivers."""
    context = PolicyContext(contract.production, waived=contract.waived, rdma=_with_rdma(pools))
    broken = violations(_planned(berth), context)
    asked = f"or have environment {contract.name!r} waive it"
    problems = [
        Problem(
            ("engineer", *policies()[violation.policy].setting),
            f"{violation}, {asked} ({how_to_waive(violation.policy)})",
        )
        for violation in broken
        if not violation.waived
    ]
    of_berths = (policy for policy in policies().values() if policy.applies_to == "raycluster")
    return Judgment(context, problems, waivers=waivers(broken), held=_held(context, of_berths))


def _planned(berth: BerthInputs) -> Iterator[Planned]:
    for manifest in filter(None, (berth.manifests.main, berth.manifests.dashboard)):
        yield Planned(resource_type(manifest), berth.settings.name, manifest)


def _where(
    policy: Policy,
    violation: Violation,
    shapes: Mapping[str, tuple[OwnerKind, RayShape]],
    settings: EnvironmentSettings,
) -> SettingPath:
    """Return the setting to report a violation at: the RayCluster's own, or one of `defaults`."""
    if policy.applies_to == "environment":
        return ("environment", *policy.setting)
    if elsewhere := policy.elsewhere.get(violation.type):
        # The keeper runs the image of `defaults`, unless it has one of its own.
        of_defaults = elsewhere[0] == "keeper" and not (settings.keeper and settings.keeper.image)
        return ("environment", *(("defaults", *policy.setting) if of_defaults else elsewhere))
    defaults = settings.defaults
    kind, shape = shapes[violation.resource]
    at_defaults = policy.inherited and (
        policy.unset_at_defaults or _written(defaults, policy.setting)
    )
    if at_defaults and not _written(shape, policy.setting):
        return ("environment", "defaults", *policy.setting)
    return ("environment", KEYS[kind], violation.resource, *policy.setting)


def _written(shape: RayShape, setting: SettingPath) -> bool:
    return setting[0] in shape.model_fields_set


def _held(context: PolicyContext, policies: Iterable[Policy]) -> list[str]:
    return [
        policy.name
        for policy in policies
        if policy.name not in context.waived and policy.holds(context)
    ]


def _rests_on(policy: Policy) -> tuple[SettingPath, ...]:
    """Return the settings that decide whether a policy holds, which must be valid."""
    above: SettingPath = ("environment", "policies")
    paths: list[SettingPath] = [above, (*above, "waived"), (*above, "waived", policy.name)]
    if policy.production:
        paths.append(("environment", "production"))
    return (*paths, *(("environment", *path) for path in policy.rests_on))


def _judge_waivers(waived: Mapping[str, str], judgment: Judgment) -> None:
    needed = {waiver.policy for waiver in judgment.waivers}
    for name in waived:
        path: SettingPath = ("environment", "policies", "waived", name)
        if name not in policies():
            message = f"there is no policy {name!r}{did_you_mean(name, policies())}"
            judgment.problems.append(Problem(path, message))
        elif name not in needed and policies()[name].applies_to == "environment":
            # The berth of an engineer's own stack may need the waiver of any other policy.
            judgment.warnings.append(
                Problem(path, f"nothing here violates policy {name}; remove the waiver")
            )


def _with_rdma(pools: Pools) -> dict[str, int]:
    return {
        name: pool.settings.machine.gpus
        for name, pool in pools.items()
        if pool.settings.rdma != "none" and pool.settings.machine.rdma
    }
