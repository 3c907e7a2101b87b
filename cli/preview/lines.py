"""The sentences that the tree and the markdown have in common. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from berth.components.plan.effect import GpusAway, Level
from berth.components.plan.fleet import span
from berth.components.plan.plan import Property
from berth.stacks.policies.policy import how_to_waive, waivers
from berth.stacks.preview.cost import GpuHours, Money
from berth.stacks.preview.report import Drift, Report
from berth.stacks.preview.words import word_of

SIGNS = {"create": "+", "update": "~", "replace": "±", "delete": "−"}
DONE = {"create": "created", "update": "changed in place", "replace": "replaced", "delete": "deleted"}

_LONGEST_VALUE = 60


def value_text(value: Any) -> str:
    """A value on one line, cut where it is long."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    text = text.replace("\n", "⏎")
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def property_text(each: Property) -> str:
    """`nodeConfig.diskSizeGb: 200 → 300`."""
    match each.kind:
        case "add" if each.old is None:
            change = f"+ {value_text(each.new)}"
        case "delete" if each.new is None:
            change = f"− {value_text(each.old)}"
        case _:
            change = _several_lines(each.old, each.new) or f"{value_text(each.old)} → {value_text(each.new)}"
    return f"{each.path}: {change}"


def _several_lines(old: Any, new: Any) -> str:
    """Of texts of several lines those that differ: `− replicas: 4 + replicas: 2`; "" where they are none."""
    if not isinstance(old, str) or not isinstance(new, str) or "\n" not in old + new:
        return ""
    changed = [line for line in difflib.ndiff(old.splitlines(), new.splitlines()) if line[0] in "+-"]
    text = " ".join(f"{'−' if line[0] == '-' else '+'} {line[2:].strip()}" for line in changed)
    return value_text(text) if text else ""


def counts_line(report: Report) -> str:
    """`1 replaced, 2 changed in place, 28 unchanged`."""
    parts = [
        f"{report.counts[key]} {DONE[key]}" for key in ("replace", "delete", "update", "create") if report.counts[key]
    ]
    return ", ".join([*parts, f"{report.counts['same']} unchanged"])


def verdict_line(report: Report) -> str:
    """What the plan comes to, in a sentence."""
    match report.verdict:
        case "nothing":
            return "Nothing to do."
        case "harmless":
            return "Harmless: nothing that runs notices."
        case "disturbs":
            return "Disturbs: something is away or restarts for a while, and comes back by itself."
        case _:
            return "Destroys: running work ends, or capacity or data goes."


def gpus_line(gpus: Sequence[GpusAway]) -> str:
    """`16 B200 of pool train, back if there is capacity`; "" for none."""
    return "; ".join(
        f"{span(each.gpus)} {each.product} of pool {each.pool}, {'back if there is capacity' if each.back else 'for good'}"
        for each in gpus
    )


def sitting_line(report: Report, least: Level) -> str:
    """The RayClusters that are reached by effects of a level or worse; "" for none."""
    return ", ".join(map(str, report.sitting(least)))


def hours_line(hours: GpuHours) -> str:
    """`B200 384 now, 192 after`."""
    if hours.now == hours.after:
        return f"{hours.product} {_numbers(hours.now)} as now"
    return f"{hours.product} {_numbers(hours.now)} now, {_numbers(hours.after)} after"


def money_line(money: Money) -> str:
    """`USD 2,400.00 now, 1,200.00 after; by …`."""
    amounts = (
        f"{_amounts(money.after)} as now"
        if money.now == money.after
        else f"{_amounts(money.now)} now, {_amounts(money.after)} after"
    )
    rates = "both by the hourly rates of the settings as they are now"
    without = f"; without {', '.join(money.pools_without_rate)}, which have no rate" if money.pools_without_rate else ""
    return f"{money.currency} {amounts} ({rates}{without})".strip()


def _numbers(bounds: tuple[int, int]) -> str:
    return "–".join(f"{each:,}" for each in dict.fromkeys(bounds))


def _amounts(bounds: tuple[Decimal, Decimal]) -> str:
    return "–".join(f"{each:,.2f}" for each in dict.fromkeys(bounds))


def not_asked_line(report: Report) -> str:
    """That other stacks' RayClusters are not counted, and why; "" where they are, or don't matter."""
    if not report.partly_asked:
        return ""
    return f"The cluster could not be asked ({report.partly_asked}): RayClusters of other stacks are not counted."


def policy_lines(report: Report) -> list[str]:
    """What is against a policy, and how to waive it."""
    return [f"{each}, or waive it ({how_to_waive(each.policy)})" for each in report.against_policies]


def waiver_lines(report: Report) -> list[str]:
    """The policies that are waived, each with the reason."""
    return [str(waiver) for waiver in waivers(report.violations)]


def told_line(report: Report) -> str:
    """What engineers' stacks are told anew; "" for nothing."""
    if not report.known.changed_outputs:
        return ""
    return f"Engineers' stacks are told other {', '.join(report.known.changed_outputs)} from then on."


def stay_lines(report: Report) -> list[str]:
    """Values that stay, though the settings no longer ask for them, and what to do about each."""
    return [
        f"Stays: {word_of(each.type)} {each.name} keeps {each.path} = {value_text(each.value)}, which the settings no longer"
        f" ask for; {each.way}."
        for each in report.stays
    ]


def drift_line(each: Drift) -> str:
    """`berth bob, RayCluster bob: changed`."""
    place = f"{each.component}, " if each.component else ""
    return f"{place}{each.resource} {each.name}: {'gone' if each.gone else 'changed'}"
