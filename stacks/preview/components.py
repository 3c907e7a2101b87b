"""Components of a plan, with their titles and their changes. Pure."""

import re
from collections.abc import Mapping, Sequence

from berth.components.operators import OPERATORS
from berth.components.plan.occupants import occupant_of
from berth.components.plan.plan import BERTH, Plan, Step
from berth.stacks.preview.words import WORDS, kind_of, spaced

_COMPONENTS: dict[str, str] = {
    "berth:gke:Network": "network",
    "berth:gke:Cluster": "GKE cluster",
    "berth:gke:NodePool": "node pool",
    **{operator.pulumi_type(): operator.title for operator in OPERATORS},
    BERTH: "berth",
}
"""Words for types of components, in the order in which they are shown."""

_NAMED = ("berth:gke:NodePool", BERTH)
"""Types of components whose titles have their names."""


def component_changes(plan: Plan) -> list[tuple[str, Sequence[Step]]]:
    """Return the titles of a plan's components, such as `node pool train`, with their changes."""
    components = {step.urn: step for step in plan.steps if not step.custom}
    by_component: dict[str, list[Step]] = {}
    for step in plan.changes:
        by_component.setdefault(_component(step, components), []).append(step)
    order = list(_COMPONENTS)

    def rank(urn: str) -> tuple[int, str]:
        component = components[urn].type if urn in components else ""
        return order.index(component) if component in order else len(order), urn

    kinds = _kinds(plan)
    return [
        (_title(components.get(urn), kinds), sorted(by_component[urn], key=_place))
        for urn in sorted(by_component, key=rank)
    ]


def _place(step: Step) -> tuple[int, str, list[int | str]]:
    """Return the place of a change in its component: by type, then by name with its numbers."""
    types = list(WORDS)
    parts: list[int | str] = [
        int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", step.name)
    ]
    return types.index(step.type) if step.type in types else len(types), step.type, parts


def titles_by_urn(plan: Plan) -> Mapping[str, str]:
    """Return the title of the component of each change, by URN."""
    return {step.urn: title for title, steps in component_changes(plan) for step in steps}


def _component(step: Step, components: Mapping[str, Step]) -> str:
    """Return the outermost component of a resource; empty for none."""
    outermost = ""
    state = step.new or step.old
    while (
        state
        and state.parent in components
        and components[state.parent].type != "pulumi:pulumi:Stack"
    ):
        outermost = state.parent
        state = components[outermost].new or components[outermost].old
    return outermost


def _title(component: Step | None, kinds: Mapping[str, str]) -> str:
    if component is None:
        return "cluster-wide objects"
    word = _COMPONENTS.get(component.type, spaced(kind_of(component.type)))
    if component.type in _COMPONENTS and component.type not in _NAMED:
        return word
    if component.name == word and component.type not in _NAMED:
        return word
    return f"{kinds.get(component.urn, word)} {component.name}"


def _kinds(plan: Plan) -> Mapping[str, str]:
    """Return `cluster` by the URN of the component of each named cluster, by its RayCluster."""
    states = [step.new or step.old for step in plan.steps if step.type.endswith(":RayCluster")]
    return {
        state.parent: "cluster"
        for state in states
        if state and occupant_of(state.inputs).kind == "cluster"
    }
