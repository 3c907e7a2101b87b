"""Report of a preview: a plan with its effects, cost and policies, for every rendering. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, cast

from berth.components.gke.effects.stays import Stay, values_that_stay
from berth.components.plan.effect import Effect, GpusAway, Level, Sitting
from berth.components.plan.fleet import NODE_POOL, PlannedPool, planned_fleet
from berth.components.plan.masked import masked_properties
from berth.components.plan.pending import remedy_of_pending
from berth.components.plan.plan import Operation, Plan, Property, Step
from berth.components.sharing import Pools
from berth.stacks.policies.policy import Planned, PolicyContext, Violation
from berth.stacks.policies.registry import violations
from berth.stacks.preview.components import component_changes, titles_by_urn
from berth.stacks.preview.cost import GpuHours, Money, gpu_hours, money
from berth.stacks.preview.effects import deleted_namespaces, effects_of
from berth.stacks.preview.shortages import Shortage, shortages_of
from berth.stacks.preview.words import word_of

Verdict = Literal["nothing", "harmless", "disturbs", "destroys"]

_COUNTED = ("create", "update", "replace", "delete")
"""Operations of which a report has the numbers."""


@dataclass(frozen=True)
class PreviewContext:
    """Facts that are known beside the plan."""

    stack: str
    kind: str
    live: Sequence[Mapping[str, Any]] | None = None
    """RayClusters of the environment's cluster; None where the cluster was not asked."""
    not_asked: str = ""
    """Why it was not asked; empty where there was nothing to ask."""
    state_only: str = ""
    """Why the engine compares with Pulumi's state only: the cluster does not answer, or refuses the
    login. Empty where it answers, and where there is none yet."""
    rates: Mapping[str, Decimal] | None = None
    """Price of a node an hour, by the pool's name."""
    currency: str | None = None
    pools: Pools = field(default_factory=dict)
    """Pools as the settings of an environment want them."""
    pools_before: Pools = field(default_factory=dict)
    """Pools of the last update, as far as they are known."""
    changed_outputs: Sequence[str] = ()
    """Outputs that engineers' stacks will read another value of."""
    edits: Sequence[Property] = ()
    """Settings that differ from those of the last update."""
    refreshed: bool = False
    policies: PolicyContext | None = None


@dataclass(frozen=True)
class ResourceChange:
    """Change of one resource of a component."""

    component: str
    resource: str
    """Word for the resource's type."""
    name: str
    detail: str
    """Description of the resource, such as a pool's nodes; empty for none."""
    urn: str
    type: str
    operation: Operation
    level: Level
    effects: Sequence[Effect]
    properties: Sequence[Property]

    @property
    def forcing(self) -> list[Property]:
        """Properties that force a replacement."""
        return [changed for changed in self.properties if changed.forces_replacement]


@dataclass(frozen=True)
class ComponentChanges:
    """Component with its changes."""

    title: str
    changes: Sequence[ResourceChange]

    @property
    def level(self) -> Level:
        """Level of the worst change."""
        return max((change.level for change in self.changes), default=Level.HARMLESS)


@dataclass(frozen=True)
class Drift:
    """Difference between a resource and the state, which a refresh found."""

    component: str
    resource: str
    name: str
    gone: bool
    properties: Sequence[Property]


@dataclass(frozen=True)
class Report:
    """Report of a preview."""

    context: PreviewContext
    parts: Sequence[ComponentChanges]
    drift: Sequence[Drift]
    counts: Mapping[str, int]
    hours: Sequence[GpuHours]
    cost: Money | None
    """Money a day; None where no rate is given."""
    warnings: Sequence[str]
    """Warnings of the engine and the program that no effect repeats."""
    violations: Sequence[Violation] = ()
    """Breaches of policies, waived or not."""
    stays: Sequence[Stay] = ()
    """Values that stay, though the settings no longer ask for them."""
    shortages: Sequence[Shortage] = ()
    """Pools without room for all pods."""

    @property
    def against_policies(self) -> list[Violation]:
        """Breaches of policies that hold."""
        return [violation for violation in self.violations if not violation.waived]

    @property
    def changes(self) -> list[ResourceChange]:
        """Changes of all components."""
        return [change for part in self.parts for change in part.changes]

    @property
    def effects(self) -> list[Effect]:
        """Effects of all changes."""
        effects: list[Effect] = []
        for change in self.changes:
            effects += change.effects
        return effects

    @property
    def level(self) -> Level:
        """Level of the worst change."""
        return max((part.level for part in self.parts), default=Level.HARMLESS)

    @property
    def verdict(self) -> Verdict:
        """Verdict on the plan, in a word."""
        if not self.changes and not self.context.changed_outputs:
            return "nothing"
        return cast("Verdict", self.level.word)

    @property
    def gpus(self) -> list[GpusAway]:
        """GPUs that go away: for each pool the largest number of any effect."""
        worst: dict[str, GpusAway] = {}
        for effect in self.effects:
            for away in effect.gpus_away:
                had = worst.get(away.pool)
                if had is None or (away.gpus.max, not away.back) > (had.gpus.max, not had.back):
                    worst[away.pool] = away
        return list(worst.values())

    def sitting(self, least: Level, *, sure: bool = False) -> list[Sitting]:
        """Return the RayClusters that effects of a level or worse reach, with the most pods.

        With `sure`, only those of effects that take pods of all that they reach.
        """
        most: dict[tuple[str, str], Sitting] = {}
        for effect in self.effects:
            if effect.level < least or (sure and not effect.all_go):
                continue
            for reached in effect.sitting:
                if reached.key not in most or reached.pods > most[reached.key].pods:
                    most[reached.key] = reached
        return list(most.values())

    @property
    def partly_asked(self) -> str:
        """Reason why other stacks' RayClusters are not counted; empty if that does not matter."""
        reached = any(effect.sitting or effect.gpus_away for effect in self.effects)
        return self.context.not_asked if reached else ""


def report_of(plan: Plan, context: PreviewContext) -> Report:
    """Return the report of a plan, with secrets masked that stand as plain text in it."""
    gpu_units = {name: pool.gpu_unit for name, pool in context.pools_before.items()}
    fleet = planned_fleet(context.stack, plan, context.live, gpu_units)
    pools = {**fleet.before, **fleet.after}
    gone = deleted_namespaces(plan.changes)
    parts = []
    for title, steps in component_changes(plan):
        parts.append(
            ComponentChanges(
                title,
                [_change(title, step, effects_of(step, fleet, gone), pools) for step in steps],
            )
        )
    counts = Counter(str(step.operation) for step in plan.changes)
    shortages = shortages_of(plan, fleet, context.pools)
    return Report(
        context=replace(context, edits=masked_properties(context.edits)),
        parts=parts,
        drift=_drift(plan),
        counts={**{operation: counts[operation] for operation in _COUNTED}, "same": plan.unchanged},
        hours=gpu_hours(fleet),
        cost=money(fleet, context.rates or {}, context.currency),
        warnings=[*_other_warnings(plan, parts, context.stack), *map(str, shortages)],
        violations=_violations(plan, context.policies) if context.policies else (),
        stays=values_that_stay(plan.steps),
        shortages=shortages,
    )


def _change(
    component: str, step: Step, effects: Sequence[Effect], pools: Mapping[str, PlannedPool]
) -> ResourceChange:
    pool = pools.get(step.name) if step.type == NODE_POOL else None
    return ResourceChange(
        component=component,
        resource=word_of(step.type),
        name=step.name,
        detail=str(pool or ""),
        urn=step.urn,
        type=step.type,
        operation=step.operation,
        level=max((effect.level for effect in effects), default=Level.HARMLESS),
        effects=effects,
        properties=masked_properties(step.properties, step.before, step.after),
    )


def _other_warnings(plan: Plan, parts: Sequence[ComponentChanges], stack: str) -> list[str]:
    """Return the warnings that no effect repeats, as those of the program about sharing do."""
    texts: list[str] = []
    for part in parts:
        for change in part.changes:
            texts += [effect.text for effect in change.effects]
    return [
        remedy_of_pending(line, stack) or line
        for line in plan.warnings
        if not line.startswith(tuple(texts))
    ]


def _violations(plan: Plan, policies: PolicyContext) -> list[Violation]:
    planned = [
        Planned(step.type, step.name, step.new.inputs)
        for step in plan.steps
        if step.custom and step.new
    ]
    return violations(planned, policies)


def _drift(plan: Plan) -> list[Drift]:
    titles = titles_by_urn(
        Plan([step for step in plan.steps if not step.custom] + list(plan.drift))
    )
    return [
        Drift(
            titles.get(step.urn, ""),
            word_of(step.type),
            step.name,
            step.operation == "delete",
            masked_properties(step.properties, step.before, step.after),
        )
        for step in plan.drift
    ]
