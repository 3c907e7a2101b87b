"""A report for programs: docs/preview.md documents every field."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from berth.components.plan.effect import Effect, GpusAway, Sitting
from berth.components.plan.plan import Property
from berth.stacks.policies.policy import waivers
from berth.stacks.preview.cost import Money
from berth.stacks.preview.report import Change, Report

FORMAT = 1
"""Raised when a field changes its meaning; fields may be added without."""


def document(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    known = report.known
    return {
        "format": FORMAT,
        "stack": known.stack,
        "kind": known.kind,
        "refreshed": known.refreshed,
        "verdict": report.verdict,
        "counts": dict(report.counts),
        "changes": [_change(part.title, change) for part in report.parts for change in part.changes],
        "drift": [
            {
                "component": each.title,
                "resource": each.resource,
                "name": each.name,
                "gone": each.gone,
                "properties": [_property(its) for its in each.properties],
            }
            for each in report.drift
        ],
        "gpusAway": [_away(each) for each in report.gpus],
        "gpuHoursADay": [
            {"product": each.product, "now": _bounds(each.now), "after": _bounds(each.after)} for each in report.hours
        ],
        "moneyADay": _money(report.cost),
        "toldToEngineers": list(known.changed_outputs),
        "notAsked": report.partly_asked or None,
        "policies": [
            {"policy": each.policy, "resource": each.resource, "type": each.type, "text": each.message}
            for each in report.against_policies
        ],
        "waived": [asdict(waiver) for waiver in waivers(report.violations)],
        "stays": [asdict(each) for each in report.stays],
        "warnings": list(report.warnings),
    }


def _change(component: str, change: Change) -> dict[str, Any]:
    return {
        "component": component,
        "resource": change.resource,
        "name": change.name,
        "detail": change.detail,
        "urn": change.step.urn,
        "type": change.step.type,
        "operation": change.operation,
        "level": change.level.word,
        "effects": [_effect(each) for each in change.effects],
        "properties": [_property(each) for each in change.step.properties],
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "level": effect.level.word,
        "text": effect.text,
        "sitting": [_sitting(each) for each in effect.sitting],
        "gpusAway": [_away(each) for each in effect.gpus],
    }


def _sitting(each: Sitting) -> dict[str, Any]:
    return {
        "kind": each.occupant.kind,
        "name": each.occupant.name,
        "namespace": each.occupant.namespace,
        "rayCluster": each.occupant.ray_cluster,
        "stack": each.occupant.stack or None,
        "pods": each.pods,
        "gpus": each.gpus,
        "shares": each.shares,
    }


def _away(each: GpusAway) -> dict[str, Any]:
    return {"pool": each.pool, "product": each.product, "gpus": _bounds(each.count), "back": each.back}


def _property(each: Property) -> dict[str, Any]:
    return {"path": each.path, "kind": each.kind, "old": each.old, "new": each.new, "forcesReplacement": each.forces}


def _money(money: Money | None) -> dict[str, Any] | None:
    if money is None:
        return None
    return {
        "currency": money.currency,
        "now": {"min": f"{money.now[0]:.2f}", "max": f"{money.now[1]:.2f}"},
        "after": {"min": f"{money.after[0]:.2f}", "max": f"{money.after[1]:.2f}"},
        "poolsWithoutRate": money.without_rate,
    }


def _bounds(bounds: tuple[int, int]) -> dict[str, int]:
    return {"min": bounds[0], "max": bounds[1]}
