"""Sentences that the tree and the markdown share. Pure."""

import difflib
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from berth.components.core.printable import one_line
from berth.components.plan.effect import GpusAway, Level
from berth.components.plan.fleet import Span, span
from berth.components.plan.plan import Property
from berth.stacks.policies.policy import how_to_waive, waivers
from berth.stacks.preview.cost import Money
from berth.stacks.preview.report import Drift, Report, ResourceChange
from berth.stacks.preview.words import word_of

SIGNS = {"create": "+", "update": "~", "replace": "±", "delete": "−"}
VERBS = {"create": "create", "update": "change", "replace": "replace", "delete": "delete"}

VERDICTS = {
    "nothing": "Nothing to do.",
    "harmless": "Risk: none. Running work goes on.",
    "disturbs": (
        "Risk: disturbs. Something is unavailable or restarts, and comes back automatically."
    ),
    "destroys": "Risk: destroys. Running work, capacity or data is lost.",
}
"""Verdicts on a plan: its risk for what runs, whatever it costs."""
_NOT_KNOWN = "Risk: not known, since the cluster was not asked."
_LONGEST_VALUE = 60

BERTHS_HERE = "the berths of this environment"
NEWS_FOR_ENGINEERS = {
    "format": "the form in which they read this environment",
    "name": "the environment's name",
    "pools": "node pools",
    "sharing": "GPU sharing",
    "defaults": "defaults of berths",
    "demands": BERTHS_HERE,
    "namespaces": BERTHS_HERE,
    "resource_api": "Kubernetes' version of claims on devices",
    "kuberay": "the KubeRay operator",
    "isolation": "isolation",
    "production": "whether this is production",
    "waived": "waived policies",
    "keeper": "working hours, idle time and expiry of berths",
    "gcs_fuse": "whether pods can mount buckets",
    "filestore": "whether pods can mount Filestore volumes",
    "project": "secrets of Secret Manager",
    "login": "the way to log in to the cluster",
    "image_mirror": "the registry with copies of images",
    "currency": "the currency of prices",
}
"""Fields of the contract of an environment (stacks/settings/contract.py), in engineers' words."""


def verdict_line(report: Report) -> str:
    """Return the verdict on a plan; one without the cluster never says that there is no risk."""
    return _NOT_KNOWN if is_unknown(report) else VERDICTS[report.verdict]


def is_unknown(report: Report) -> bool:
    """Return whether only Pulumi's state says that nothing is at risk."""
    return bool(report.context.state_only) and report.level == Level.HARMLESS


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
            change = _several_lines(changed.old, changed.new)
            if not change:
                change = f"{value_text(changed.old)} → {value_text(changed.new)}"
    return f"{changed.path}: {change}"


def _several_lines(old: Any, new: Any) -> str:
    """Return the lines that differ: `− replicas: 4 + replicas: 2`; "" for other values."""
    if not isinstance(old, str) or not isinstance(new, str) or "\n" not in old + new:
        return ""
    changed = []
    for line in difflib.ndiff(old.splitlines(), new.splitlines()):
        if line.startswith("-"):
            changed.append(f"− {line[2:].strip()}")
        elif line.startswith("+"):
            changed.append(f"+ {line[2:].strip()}")
    return value_text(" ".join(changed)) if changed else ""


def change_text(change: ResourceChange) -> str:
    """Return a change without the resource's name: `+ create node pool`."""
    return f"{SIGNS[change.operation]} {VERBS[change.operation]} {change.resource}"


def counts_line(report: Report) -> str:
    """Return counts: `1 to replace, 2 to change, 28 unchanged`."""
    parts = [
        f"{report.counts[key]} to {VERBS[key]}"
        for key in ("replace", "delete", "update", "create")
        if report.counts[key]
    ]
    return ", ".join([*parts, f"{report.counts['same']} unchanged"])


def gpus_line(gpus: Sequence[GpusAway]) -> str:
    """Return lost GPUs: `16 B200 of pool train, back if there is capacity`; "" for none."""
    return "; ".join(map(_gpus_text, gpus))


def _gpus_text(away: GpusAway) -> str:
    how_long = "back if there is capacity" if away.back else "for good"
    return f"{span(away.gpus)} {away.product} of pool {away.pool}, {how_long}"


def cost_lines(report: Report) -> list[str]:
    """Return the costs a day after the change: GPU-hours by product, then money."""
    costs = []
    for hours in report.hours:
        amounts = _compared(_bounds(hours.after, ","), _bounds(hours.now, ","), " GPU-hours")
        costs.append(f"{hours.product}: {amounts}")
    if report.cost:
        costs.append(_money_line(report.cost))
    return costs


def _money_line(money: Money) -> str:
    """Return the money, and what it lacks: `at least USD 2,880.00 (as now), 16 of 24 GPUs …`."""
    after = f"{money.currency} {_bounds(money.after, ',.2f')}".strip()
    now = _bounds(money.now, ",.2f")
    as_now = (money.after, money.at_least) == (money.now, money.now_at_least)
    after = f"at least {after}" if money.at_least else after
    now = f"at least {now}" if money.now_at_least else now
    line = f"{after} (as now)" if as_now else f"{after} (now {now})"
    if money.month:
        line += f", {_bounds(money.month, ',.2f')} a month"
    if money.gpus_without_rate:
        line += f", {money.gpus_without_rate} of {money.gpus} GPUs have no rate"
    if money.at_least or money.now_at_least:
        line += f"; without hourlyRate: {', '.join(money.pools_without_rate)}"
    return line


def _compared(after: str, now: str, unit: str = "") -> str:
    """Return a cost beside the present one: `384 GPU-hours (now 0)`."""
    return f"{after}{unit} (as now)" if after == now else f"{after}{unit} (now {now})"


def _bounds(bounds: Span[int] | Span[Decimal], form: str) -> str:
    return "–".join(f"{bound:{form}}" for bound in dict.fromkeys(bounds))


def report_notes(report: Report) -> list[str]:
    """Return notes: news for engineers, clusters that were not asked, values that stay."""
    texts = []
    if news := _news_for_engineers(report):
        texts.append(f"New for engineers' own stacks at their next update: {news}.")
    if report.context.state_only:
        why = report.context.state_only
        others = ", without RayClusters of other stacks" if report.partly_asked else ""
        texts.append(
            f"{why[:1].upper()}{why[1:]}, so this compares with Pulumi's state only{others}."
        )
    elif report.partly_asked:
        texts.append(
            f"The cluster could not be asked ({report.partly_asked}): numbers of pods are those of"
            " the last update, and RayClusters of other stacks are not counted."
        )
    texts += [
        f"Stays: {word_of(stay.type)} {stay.name} keeps {stay.path} = {value_text(stay.value)},"
        f" which the settings no longer ask for; {stay.way}."
        for stay in report.stays
    ]
    return texts


def _news_for_engineers(report: Report) -> str:
    """Return what an environment's next contract changes for engineers; empty for nothing.

    Who has a berth, and what it takes, is in the changes already; where there are none, it is said.
    """
    changed = [NEWS_FOR_ENGINEERS[name] for name in report.context.changed_outputs]
    told = [words for words in changed if words != BERTHS_HERE or not report.changes]
    return ", ".join(dict.fromkeys(told))


def policy_lines(report: Report) -> list[str]:
    """Return violations of policies, and how to waive them."""
    return [
        f"{violation}, or waive it ({how_to_waive(violation.policy)})"
        for violation in report.against_policies
    ]


def waiver_lines(report: Report) -> list[str]:
    """Return the waived policies, each with the reason."""
    return [str(waiver) for waiver in waivers(report.violations)]


def drift_line(drift: Drift) -> str:
    """Return a drift: `berth bob, RayCluster bob: changed`."""
    place = f"{drift.component}, " if drift.component else ""
    return f"{place}{drift.resource} {drift.name}: {'gone' if drift.gone else 'changed'}"
