"""Effects of a change of a GKE cluster.

Which changes recreate nodes is a fact about each field of Google's provider
(components/gke/provider_fields).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from berth.components.gke.effects import WORDS_OF_FIELDS
from berth.components.gke.provider_fields import CLUSTER, resources
from berth.components.plan.effect import Effect, Level, gpus_away, sitting_on, where_somebody_works
from berth.components.plan.fleet import PlannedFleet, is_zone
from berth.components.plan.paths import below
from berth.components.plan.plan import Property, Step

_FIELDS = WORDS_OF_FIELDS[CLUSTER]
QUIET: Sequence[str] = _FIELDS["quiet"]
"""Fields that nothing that runs notices."""
WORDS: Mapping[str, str] = _FIELDS["recreates_nodes"]
"""Words for fields whose change recreates the nodes of all pools."""
OF_CONTROL_PLANE: Mapping[str, str] = _FIELDS["disturbs_control_plane"]
"""Effects of changes of the control plane alone, by field."""
DISTURBS: Mapping[str, str] = {**_FIELDS["disturbs"], **OF_CONTROL_PLANE}
"""Effects of changes that recreate no nodes, and that something else notices, by field."""


def of_gke_cluster(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """The effects of a change of the GKE cluster itself."""
    sitting = sitting_on(fleet, fleet.everywhere)
    if step.operation in ("replace", "delete"):
        text = "the cluster is deleted with everything on it" + (
            ", then recreated, empty" if step.operation == "replace" else ""
        )
        if step.before.get("deletionProtection"):
            text += (
                "; deletion protection refuses that until `deletionProtection: false` is brought up"
                " first"
            )
        # Its pools go with it, whatever the engine says of them.
        pools = fleet.before.values()
        gpus = [
            away
            for pool in pools
            for away in gpus_away(pool, pool.nodes, back=pool.name in fleet.after)
        ]
        return [Effect(Level.DESTROYS, text, sitting, gpus)]
    effects: list[Effect] = []
    for changed in (part for whole in step.properties for part in _parts(whole)):
        effect = _of_property(changed, step, fleet)
        if effect and effect.text not in {other.text for other in effects}:
            effects.append(effect)
    return effects


def _parts(changed: Property) -> Iterator[Property]:
    """Yield the parts of a mapping that comes or goes whole, where something is known of parts."""
    values = [value if isinstance(value, Mapping) else {} for value in (changed.old, changed.new)]
    known = (*QUIET, *DISTURBS, *WORDS)
    if not any(
        below(prefix, changed.path) and prefix != changed.path for prefix in known
    ) or not any(values):
        yield changed
        return
    old, new = values
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            yield from _parts(
                replace(changed, path=f"{changed.path}.{key}", old=old.get(key), new=new.get(key))
            )


def _of_property(changed: Property, step: Step, fleet: PlannedFleet) -> Effect | None:
    path = changed.path
    if any(below(path, prefix) for prefix in QUIET):
        return None
    if below(path, "deletionProtection"):
        if changed.new is False:
            return Effect(
                Level.DISTURBS,
                "deletion protection is switched off: from now on nothing stops a `pulumi destroy`",
            )
        return None
    if below(path, "minMasterVersion"):
        return _upgrade(changed, step)
    for prefix, text in DISTURBS.items():
        if below(path, prefix):
            return Effect(Level.DISTURBS, text)
    fact = resources()[CLUSTER].at(path)
    if fact is not None and fact.nodes == "no" and not fact.replaces:
        return Effect(
            Level.DISTURBS, f"{path} changes in place; berth does not know the effect on what runs"
        )
    known = fact is not None and fact.nodes == "yes"
    word = next((word for prefix, word in WORDS.items() if below(path, prefix)), path)
    guess = "" if known else " (berth does not know whether it does, and assumes the worst)"
    sitting = sitting_on(fleet, fleet.everywhere)
    text = (
        f"{word}: GKE recreates every node of the cluster{guess}, pool by pool, and evicts the pods"
        " on it"
    )
    return Effect(where_somebody_works(fleet, sitting), text, sitting)


def _upgrade(changed: Property, step: Step) -> Effect | None:
    """A minimum version is an upgrade only where the control plane is older."""
    location = str(step.before.get("location") or "")
    running = str(step.old.outputs.get("masterVersion") or "") if step.old else ""
    if changed.new is None or (running and _numbers(running) >= _numbers(str(changed.new))):
        return None
    away = (
        "the API server is away for minutes meanwhile, since the cluster is zonal (running work"
        " goes on, nothing new starts)"
        if is_zone(location)
        else "the API server stays, since the cluster is regional"
    )
    text = (
        f"the control plane is upgraded{f' from {running}' if running else ''} to {changed.new} or"
        f" newer; {away}; GKE upgrades the nodes later, in a maintenance window"
    )
    return Effect(Level.DISTURBS, text)


def _numbers(version: str) -> list[int]:
    """`1.35.2-gke.1842000` as numbers; a shorter one is the least of those that begin with it."""
    return [int(number) for number in re.findall(r"\d+", version)]
