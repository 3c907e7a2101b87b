"""A plan with what it means: what all renderings show. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from berth.components.gke.effects.stays import Stay, stays_of
from berth.components.plan.effect import Effect, GpusAway, Level, Sitting
from berth.components.plan.fleet import NODE_POOL, planned_fleet
from berth.components.plan.plan import Operation, Plan, Property, Step
from berth.stacks.policies.policy import Planned, PolicyContext, Violation
from berth.stacks.policies.registry import violations
from berth.stacks.preview.cost import GpuHours, Money, gpu_hours, money
from berth.stacks.preview.effects import effects_of
from berth.stacks.preview.words import groups_of, titles_of, word_of

Verdict = Literal["nothing", "harmless", "disturbs", "destroys"]


@dataclass(frozen=True)
class Known:
    """What is known beside the plan.

    Attributes:
        stack: the stack.
        kind: `environment` or `engineer`.
        live: RayClusters that the environment's cluster has; None where it was not asked.
        not_asked: why not, "" where there was nothing to ask.
        rates: what a node of a pool costs an hour, by the pool's name.
        currency: of the rates.
        changed_outputs: parts of the environment's outputs that engineers' stacks will read another value of.
        refreshed: the plan begins with a look at what is really there.
        policies: what the policies are applied with; None where it is not known.
    """

    stack: str
    kind: str
    live: Sequence[Mapping[str, Any]] | None = None
    not_asked: str = ""
    rates: Mapping[str, Decimal] | None = None
    currency: str | None = None
    changed_outputs: Sequence[str] = ()
    refreshed: bool = False
    policies: PolicyContext | None = None


@dataclass(frozen=True)
class Change:
    """A change of one resource.

    Attributes:
        resource: what it is, in the field's words.
        name: Pulumi's name of it.
        detail: what it is of, for example a pool's nodes; "" for nothing.
        operation: what is done to it.
        step: the step.
        effects: what that does.
    """

    resource: str
    name: str
    detail: str
    operation: Operation
    step: Step
    effects: Sequence[Effect]

    @property
    def level(self) -> Level:
        """Of its worst effect."""
        return max((effect.level for effect in self.effects), default=Level.HARMLESS)

    @property
    def forcing(self) -> list[Property]:
        """The properties that force a replacement."""
        return [each for each in self.step.properties if each.forces]


@dataclass(frozen=True)
class Part:
    """A component with its changes."""

    title: str
    changes: Sequence[Change]

    @property
    def level(self) -> Level:
        """Of its worst change."""
        return max((change.level for change in self.changes), default=Level.HARMLESS)


@dataclass(frozen=True)
class Drift:
    """What a refresh found otherwise than the state has it.

    Attributes:
        title: the component that it belongs to.
        resource: what it is.
        name: Pulumi's name of it.
        gone: it is not there any more.
        properties: what changed.
    """

    title: str
    resource: str
    name: str
    gone: bool
    properties: Sequence[Property]


@dataclass(frozen=True)
class Report:
    """All that is shown.

    Attributes:
        known: the stack, and what is known beside the plan.
        parts: the changes by component.
        drift: what a refresh found.
        counts: how many things are made, changed, replaced, deleted, left.
        hours: GPU-hours a day.
        cost: money a day, None where no rate is given.
        warnings: what the engine and the program warn of, beyond the effects.
        violations: what the plan has that is against a policy, waived or not.
        stays: values that stay, though the settings no longer ask for them.
    """

    known: Known
    parts: Sequence[Part]
    drift: Sequence[Drift]
    counts: Mapping[str, int]
    hours: Sequence[GpuHours]
    cost: Money | None
    warnings: Sequence[str]
    violations: Sequence[Violation] = ()
    stays: Sequence[Stay] = ()

    @property
    def against_policies(self) -> list[Violation]:
        """What is against a policy that holds."""
        return [each for each in self.violations if not each.waived]

    @property
    def changes(self) -> list[Change]:
        """All changes."""
        return [change for part in self.parts for change in part.changes]

    @property
    def level(self) -> Level:
        """Of the worst change."""
        return max((part.level for part in self.parts), default=Level.HARMLESS)

    @property
    def verdict(self) -> Verdict:
        """The plan in a word."""
        if not self.changes and not self.known.changed_outputs:
            return "nothing"
        words: dict[Level, Verdict] = {
            Level.HARMLESS: "harmless",
            Level.DISTURBS: "disturbs",
            Level.DESTROYS: "destroys",
        }
        return words[self.level]

    @property
    def gpus(self) -> list[GpusAway]:
        """GPUs that go away: the most that is said of a pool."""
        worst: dict[str, GpusAway] = {}
        for change in self.changes:
            for away in (away for effect in change.effects for away in effect.gpus):
                had = worst.get(away.pool)
                if had is None or (away.count[1], not away.back) > (had.count[1], not had.back):
                    worst[away.pool] = away
        return list(worst.values())

    def sitting(self, least: Level) -> list[Sitting]:
        """The RayClusters that are reached by effects of a level or worse, each with the most that is said of it."""
        most: dict[tuple[str, str], Sitting] = {}
        for effect in (effect for change in self.changes for effect in change.effects if effect.level >= least):
            for each in effect.sitting:
                key = (each.occupant.namespace, each.occupant.ray_cluster)
                if key not in most or each.pods > most[key].pods:
                    most[key] = each
        return list(most.values())

    @property
    def partly_asked(self) -> str:
        """Why RayClusters of other stacks are not counted, where that matters; else ""."""
        reached = any(effect.sitting or effect.gpus for change in self.changes for effect in change.effects)
        return self.known.not_asked if reached else ""


def report_of(plan: Plan, known: Known) -> Report:
    """What a plan means.

    Args:
        plan: the engine's plan.
        known: what is known beside it.
    """
    fleet = planned_fleet(known.stack, plan, known.live)
    details = {(NODE_POOL, name): str(pool) for name, pool in {**fleet.before, **fleet.after}.items()}
    parts = [
        Part(
            group.title,
            [
                Change(
                    resource=word_of(step.type),
                    name=step.name,
                    detail=details.get((step.type, step.name), ""),
                    operation=step.operation,
                    step=step,
                    effects=effects_of(step, fleet),
                )
                for step in group.steps
            ],
        )
        for group in groups_of(plan)
    ]
    counted = Counter(str(step.operation) for step in plan.changes)
    texts = [effect.text for part in parts for change in part.changes for effect in change.effects]
    return Report(
        known=known,
        parts=parts,
        drift=_drift(plan),
        counts={**{each: counted[each] for each in ("create", "update", "replace", "delete")}, "same": plan.unchanged},
        hours=gpu_hours(fleet),
        cost=money(fleet, known.rates or {}, known.currency),
        # The program says of sharing what the effects say too.
        warnings=[line for line in plan.warnings if not line.startswith(tuple(texts))],
        violations=violations(planned_of(plan), known.policies) if known.policies else (),
        stays=stays_of(plan.steps),
    )


def planned_of(plan: Plan) -> list[Planned]:
    """The things that there would be, for the policies."""
    return [Planned(step.type, step.name, step.new.inputs) for step in plan.steps if step.custom and step.new]


def _drift(plan: Plan) -> list[Drift]:
    titles = titles_of(Plan([step for step in plan.steps if not step.custom] + list(plan.drift)))
    return [
        Drift(titles.get(step.urn, ""), word_of(step.type), step.name, step.operation == "delete", step.properties)
        for step in plan.drift
    ]
