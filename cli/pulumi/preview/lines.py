"""Sentences that the tree and the markdown share. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from berth.components.core.printable import one_line
from berth.components.plan.effect import GpusAway, Level
from berth.components.plan.fleet import span
from berth.components.plan.plan import Property
from berth.stacks.policies.policy import how_to_waive, waivers
from berth.stacks.preview.cost import Money
from berth.stacks.preview.report import Drift, Report
from berth.stacks.preview.words import word_of

SIGNS = {"create": "+", "update": "~", "replace": "±", "delete": "−"}
VERBS = {"create": "create", "update": "change", "replace": "replace", "delete": "delete"}

_LONGEST_VALUE = 60


def value_text(value: Any) -> str:
    """Return a value on one line, a long one cut."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    text = one_line(text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def property_text(changed: Property) -> str:
    """Return a changed property: `nodeConfig.diskSizeGb: 200 → 300`."""
    match changed.kind:
        case "add" if changed.old is None:
            change = f"+ {value_text(changed.new)}"
        case "delete" if changed.new is None:
            change = f"− {value_text(changed.old)}"
        case _:
            change = (
                _several_lines(changed.old, changed.new) or f"{value_text(changed.old)} → {value_text(changed.new)}"
            )
    return f"{changed.path}: {change}"


def _several_lines(old: Any, new: Any) -> str:
    """Return the lines that differ: `− replicas: 4 + replicas: 2`; "" for other values."""
    if not isinstance(old, str) or not isinstance(new, str) or "\n" not in old + new:
        return ""
    changed = [line for line in difflib.ndiff(old.splitlines(), new.splitlines()) if line[0] in "+-"]
    text = " ".join(f"{'−' if line[0] == '-' else '+'} {line[2:].strip()}" for line in changed)
    return value_text(text) if text else ""


def counts_line(report: Report) -> str:
    """Return counts: `1 to replace, 2 to change, 28 unchanged`."""
    parts = [
        f"{report.counts[key]} to {VERBS[key]}"
        for key in ("replace", "delete", "update", "create")
        if report.counts[key]
    ]
    return ", ".join([*parts, f"{report.counts['same']} unchanged"])


def verdict_line(report: Report) -> str:
    """Return the verdict on a plan: its risk for what runs, whatever it costs."""
    match report.verdict:
        case "nothing":
            return "Nothing to do."
        case "harmless":
            return "Risk: none. Running work goes on."
        case "disturbs":
            return "Risk: disturbs. Something is unavailable or restarts, and comes back automatically."
        case _:
            return "Risk: destroys. Running work, capacity or data is lost."


def gpus_line(gpus: Sequence[GpusAway]) -> str:
    """Return lost GPUs: `16 B200 of pool train, back if there is capacity`; "" for none."""
    return "; ".join(
        f"{span(away.gpus)} {away.product} of pool {away.pool},"
        f" {'back if there is capacity' if away.back else 'for good'}"
        for away in gpus
    )


def sitting_line(report: Report, least: Level) -> str:
    """Return the RayClusters that effects of a level or worse reach; "" for none."""
    return ", ".join(map(str, report.sitting(least)))


def cost_lines(report: Report) -> list[str]:
    """Return the costs a day after the change: GPU-hours by product, then money."""
    found = [
        f"{hours.product}: {_compared(_numbers(hours.after), _numbers(hours.now), ' GPU-hours')}"
        for hours in report.hours
    ]
    return [*found, _money_line(report.cost)] if report.cost else found


def _compared(after: str, now: str, unit: str = "") -> str:
    """Return a cost beside the present one: `384 GPU-hours (now 0)`."""
    return f"{after}{unit} (as now)" if after == now else f"{after}{unit} (now {now})"


def _money_line(money: Money) -> str:
    """Return money: `USD 1,200.00 (now 2,400.00), by …`."""
    without = f"; no rate for {', '.join(money.pools_without_rate)}" if money.pools_without_rate else ""
    amounts = _compared(_amounts(money.after), _amounts(money.now))
    return f"{money.currency} {amounts}, by the hourly rates of the current settings{without}".strip()


def _numbers(bounds: tuple[int, int]) -> str:
    return "–".join(f"{bound:,}" for bound in dict.fromkeys(bounds))


def _amounts(bounds: tuple[Decimal, Decimal]) -> str:
    return "–".join(f"{bound:,.2f}" for bound in dict.fromkeys(bounds))


def not_asked_line(report: Report) -> str:
    """Return why other stacks' RayClusters are not counted; "" if they are, or do not matter."""
    if not report.partly_asked:
        return ""
    return f"The cluster could not be asked ({report.partly_asked}): RayClusters of other stacks are not counted."


def policy_lines(report: Report) -> list[str]:
    """Return violations of policies, and how to waive them."""
    return [f"{violation}, or waive it ({how_to_waive(violation.policy)})" for violation in report.against_policies]


def waiver_lines(report: Report) -> list[str]:
    """Return the waived policies, each with the reason."""
    return [str(waiver) for waiver in waivers(report.violations)]


def told_line(report: Report) -> str:
    """Return which outputs for engineers' stacks change; "" for none."""
    if not report.known.changed_outputs:
        return ""
    return f"From then on, engineers' own stacks read new values of: {', '.join(report.known.changed_outputs)}."


def stay_lines(report: Report) -> list[str]:
    """Return values that outlive their settings, and what to do about each."""
    return [
        f"Stays: {word_of(stay.type)} {stay.name} keeps {stay.path} = {value_text(stay.value)}, which the settings"
        f" no longer ask for; {stay.way}."
        for stay in report.stays
    ]


def drift_line(drift: Drift) -> str:
    """Return a drift: `berth bob, RayCluster bob: changed`."""
    place = f"{drift.component}, " if drift.component else ""
    return f"{place}{drift.resource} {drift.name}: {'gone' if drift.gone else 'changed'}"
