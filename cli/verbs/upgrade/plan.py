"""`berth upgrade plan`: what is old in an environment, and in which order it is upgraded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rich.console import Group

from berth.cli.reach.environment import NotUpError, brought_up
from berth.cli.shell.console import Table, print_result
from berth.cli.verbs.upgrade.supported import PARTS, Version, default_of, judged, numbers
from berth.cli.verbs.upgrade.there import There, ask, by_settings, version_of
from berth.components.cluster.api import ClusterApi, UnreachableError
from berth.components.core.errors import FAILED, BadInputError
from berth.components.core.manifest import resource_type
from berth.components.core.words import counted
from berth.components.operators import Site
from berth.components.operators.parts import Chart
from berth.components.plan.fleet import (
    GKE_CLUSTER,
    NODE_POOL,
    PlannedFleet,
    planned_pool,
)
from berth.components.plan.occupants import occupant_of
from berth.components.plan.plan import Operation, Property, ResourceState, Step
from berth.components.sharing import offered_pools
from berth.stacks.load.stack import Environment, load_stack
from berth.stacks.preview.effects import effects_of


def show(stack: str, *, as_json: bool) -> int:
    """Print the plan of an environment; return the exit code."""
    loaded = load_stack(stack)
    if not isinstance(loaded, Environment):
        raise BadInputError(
            f"stack {stack} is an engineer's, and has the versions of its environment",
            f"run: berth upgrade plan -s {loaded.settings.environment}",
        )
    there = by_settings(loaded)
    try:
        ask(ClusterApi(brought_up(stack).kubeconfig), there)
    except NotUpError:
        pass
    except UnreachableError as error:
        raise error.of_stack(stack) from None
    versions = judged(
        [one for found in there.found.values() for one in found], datetime.now(UTC).date()
    )
    steps = [
        _step(part, versions, loaded, there)
        for part in dict.fromkeys(one.part for one in versions if one.old)
    ]
    shown = [{**asdict(one), "installs": default_of(one.part)} for one in versions]
    document = {"stack": stack, "versions": shown, "steps": steps, "definitions": there.definitions}
    table = Table(
        "part", "version", "of", "known by", "berth installs", "support ends", "goes with"
    )
    for one in versions:
        cells = (
            one.version or "unknown",
            ", ".join(one.who),
            one.asked,
            default_of(one.part),
            one.ends,
        )
        table.add_row(PARTS[one.part]["title"], *cells, ", ".join(one.goes_with) or "unknown")
    print_result(
        {**document, "refused": there.refused}, Group(table, *_lines(steps, there)), as_json=as_json
    )
    return FAILED if steps else 0


def _lines(steps: Sequence[Mapping[str, Any]], there: There) -> Iterator[str]:
    for number, step in enumerate(steps, 1):
        yield f"{number}. {step['title']}: {step['how']}"
        yield from (
            f"   {text}" for text in (*step["old"], *(f"→ {effect}" for effect in step["effects"]))
        )
        yield from (f"   in this place because {reason}" for reason in step["place"])
    if counts := [
        f"{name} {counted(count, 'object')}" for name, count in there.definitions.items() if count
    ]:
        yield f"a CRD that is removed takes its objects with it: {', '.join(counts)}"
    yield from (f"not known by the cluster: {text}" for text in there.refused)
    yield (
        f"{counted(len(steps), 'part')} to upgrade, in this order"
        if steps
        else "nothing is known to be old"
    )


def _step(
    part: str, versions: Sequence[Version], loaded: Environment, there: There
) -> dict[str, Any]:
    row, old = PARTS[part], [one for one in versions if one.part == part and one.old]
    return {
        "part": part,
        "title": row["title"],
        "how": row.get("setting") or row["how"],
        "old": [f"{one.version}: {'; '.join(one.old)}" for one in old],
        "effects": list(dict.fromkeys(_effects(old, loaded, there))),
        "place": [row["place"]] if "place" in row else [],
    }


def _effects(old: Sequence[Version], loaded: Environment, there: There) -> Iterator[str]:
    """Yield what a preview says of the upgrade of a part."""
    pools = {}
    for name, pool in loaded.settings.pools.items():
        pace = {"maxSurge": pool.max_surge, "maxUnavailable": pool.max_unavailable}
        given = {
            "name": name,
            "nodeConfig": {"machineType": pool.machine_type},
            "upgradeSettings": pace,
        }
        count = there.nodes.get(name, pool.nodes_at_least)
        pools[name] = planned_pool(ResourceState({**given, "nodeCount": count}, {}, ""), None)
    fleet = PlannedFleet(loaded.stack, pools, pools, [occupant_of(ray) for ray in there.rays])
    # GKE upgrades a control plane by one minor version at a time.
    part, version = old[0].part, old[0].version
    new = f"1.{numbers(version)[1] + 1}" if part == "control-plane" else None
    for kind, path, inputs in _changes(old, loaded, there):
        state = ResourceState(inputs, {"masterVersion": version}, "")
        change = Property(path, "update", None, new)
        operation: Operation = "replace" if kind.endswith("RayJob") else "update"
        step = Step(
            operation, "", kind, part, custom=True, old=state, new=state, properties=[change]
        )
        yield from (effect.text for effect in effects_of(step, fleet))


def _changes(
    old: Sequence[Version], loaded: Environment, there: There
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield what an upgrade of a part changes: type, path of the property, and inputs before."""
    settings, part = loaded.settings, old[0].part
    if part == "control-plane":
        yield GKE_CLUSTER, "minMasterVersion", {"location": settings.location}
    if part == "nodes":
        yield from (
            (NODE_POOL, "version", {"name": name})
            for name in sorted({pool for one in old for pool in one.who})
        )
    if part == "ray":
        for ray in there.rays:
            path = "spec.rayClusterConfig" if ray["kind"] == "RayService" else "spec.headGroupSpec"
            if numbers(version_of(ray)) < numbers(default_of("ray")):
                yield resource_type(ray), path, ray
    for operator in settings.operators.on(Site(offered_pools(settings.pools, settings.sharing))):
        for piece in operator.parts(operator.release) if operator.setting == part else ():
            if isinstance(piece, Chart):
                yield (
                    "kubernetes:helm.sh/v3:Release",
                    "version",
                    {"chart": piece.chart, "values": piece.values},
                )
            elif piece.manifest["kind"] == "DaemonSet":
                yield resource_type(piece.manifest), "spec.template", piece.manifest
