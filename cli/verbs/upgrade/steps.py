"""Steps of an environment's upgrade: what is old, how it is upgraded, and what that restarts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.cli.verbs.upgrade.combinations import numbers_in
from berth.cli.verbs.upgrade.environment_versions import EnvironmentVersions, ray_version_of
from berth.cli.verbs.upgrade.parts import PARTS
from berth.cli.verbs.upgrade.supported import PartVersion
from berth.components.core.manifest import resource_type
from berth.components.operators import Chart, Site
from berth.components.plan.fleet import (
    GKE_CLUSTER,
    NODE_POOL,
    PlannedFleet,
    PlannedPool,
    planned_pool,
)
from berth.components.plan.occupants import occupant_of
from berth.components.plan.plan import Operation, Property, ResourceState, Step
from berth.components.sharing import offered_pools
from berth.stacks.load.stack import Environment
from berth.stacks.preview.effects import effects_of


@dataclass(frozen=True)
class UpgradeStep:
    """Step of an upgrade, as programs get it.

    Attributes:
        part: key of the part that is upgraded.
        title: name of the part in words.
        how: setting that sets the version, or how the part is upgraded without one.
        old: versions that are old, each with the reasons.
        effects: what the upgrade restarts or replaces.
        place: reason for the step's place in the order; none for any place.
    """

    part: str
    title: str
    how: str
    old: list[str]
    effects: list[str]
    place: list[str]


@dataclass(frozen=True)
class PartChange:
    """Change of a resource by the upgrade of a part.

    Attributes:
        kind: type of the resource, such as `gcp:container/cluster:Cluster`.
        path: path of the property that changes.
        inputs: inputs of the resource before the change.
    """

    kind: str
    path: str
    inputs: Mapping[str, Any]


def upgrade_steps(
    judged: Sequence[PartVersion], loaded: Environment, versions: EnvironmentVersions
) -> list[UpgradeStep]:
    """Return a step for each part with an old version, in their order."""
    old: dict[str, list[PartVersion]] = {}
    for version in judged:
        if version.old:
            old.setdefault(version.part, []).append(version)
    return [_step(part, of_part, loaded, versions) for part, of_part in old.items()]


def _step(
    key: str, old: Sequence[PartVersion], loaded: Environment, versions: EnvironmentVersions
) -> UpgradeStep:
    part = PARTS[key]
    return UpgradeStep(
        part=key,
        title=part.title,
        how=part.setting or part.how,
        old=[f"{version.version}: {'; '.join(version.old)}" for version in old],
        effects=list(dict.fromkeys(_effects(old, loaded, versions))),
        place=[part.place] if part.place else [],
    )


def _effects(
    old: Sequence[PartVersion], loaded: Environment, versions: EnvironmentVersions
) -> Iterator[str]:
    """Yield what a preview says of the upgrade of a part."""
    pools = _planned_pools(loaded, versions)
    occupants = [occupant_of(ray) for ray in versions.rays]
    fleet = PlannedFleet(loaded.stack, pools, pools, occupants)
    part = old[0].part
    version = old[0].version
    new = None
    if part == "control-plane":
        # GKE upgrades a control plane by one minor version at a time.
        new = f"1.{numbers_in(version)[1] + 1}"
    for change in _changes(old, loaded, versions):
        state = ResourceState(change.inputs, {"masterVersion": version}, "")
        operation: Operation = "replace" if change.kind.endswith("RayJob") else "update"
        step = Step(
            operation,
            "",
            change.kind,
            part,
            custom=True,
            old=state,
            new=state,
            properties=[Property(change.path, "update", None, new)],
        )
        yield from (effect.text for effect in effects_of(step, fleet))


def _planned_pools(loaded: Environment, versions: EnvironmentVersions) -> dict[str, PlannedPool]:
    pools = {}
    for name, pool in loaded.settings.pools.items():
        inputs = {
            "name": name,
            "nodeConfig": {"machineType": pool.machine_type},
            "upgradeSettings": {"maxSurge": pool.max_surge, "maxUnavailable": pool.max_unavailable},
            "nodeCount": versions.nodes.get(name, pool.nodes_at_least),
        }
        planned = planned_pool(ResourceState(inputs, {}, ""), None)
        pools[name] = planned
    return pools


def _changes(
    old: Sequence[PartVersion], loaded: Environment, versions: EnvironmentVersions
) -> Iterator[PartChange]:
    """Yield what an upgrade of a part changes."""
    part = old[0].part
    if part == "control-plane":
        location = loaded.settings.location
        yield PartChange(GKE_CLUSTER, "minMasterVersion", {"location": location})
    elif part == "nodes":
        pools: set[str] = set()
        for version in old:
            pools.update(version.who)
        for pool in sorted(pools):
            yield PartChange(NODE_POOL, "version", {"name": pool})
    elif part == "ray":
        yield from _changes_of_rays(versions)
    else:
        yield from _changes_of_operator(part, loaded)


def _changes_of_rays(versions: EnvironmentVersions) -> Iterator[PartChange]:
    for ray in versions.rays:
        if numbers_in(ray_version_of(ray)) < numbers_in(PARTS["ray"].installs):
            of_service = ray["kind"] == "RayService"
            path = "spec.rayClusterConfig" if of_service else "spec.headGroupSpec"
            yield PartChange(resource_type(ray), path, ray)


def _changes_of_operator(part: str, loaded: Environment) -> Iterator[PartChange]:
    settings = loaded.settings
    site = Site(offered_pools(settings.pools, settings.sharing))
    for operator in settings.operators.on(site):
        if operator.setting != part:
            continue
        for piece in operator.parts(operator.release):
            if isinstance(piece, Chart):
                inputs = {"chart": piece.chart, "values": piece.values}
                yield PartChange("kubernetes:helm.sh/v3:Release", "version", inputs)
            elif piece.manifest["kind"] == "DaemonSet":
                kind = resource_type(piece.manifest)
                yield PartChange(kind, "spec.template", piece.manifest)
