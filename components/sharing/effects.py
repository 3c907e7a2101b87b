"""Effects of another sharing profile or MIG layout on the nodes of a pool."""

from __future__ import annotations

from berth.components.hardware.names import MIG_LABEL
from berth.components.plan.effect import Effect, Level, sitting_on, where_somebody_works
from berth.components.plan.fleet import Fleet
from berth.components.plan.plan import Step
from berth.components.sharing.disturbance import label_change


def of_node_labels(step: Step, fleet: Fleet) -> list[Effect]:
    """Return the effect of changed node labels that choose a sharing profile or a MIG layout."""
    name = str(step.old.inputs.get("name")) if step.old else step.name
    before, after = fleet.before.get(name), fleet.after.get(name)
    if step.operation != "update" or before is None or after is None:
        return []
    text = label_change(name, before.labels, after.labels)
    if not text:
        return []
    sitting = sitting_on(fleet, [name])
    stops = before.labels.get(MIG_LABEL) != after.labels.get(MIG_LABEL)
    return [Effect(where_somebody_works(fleet, sitting) if stops else Level.DISTURBS, text, sitting)]
