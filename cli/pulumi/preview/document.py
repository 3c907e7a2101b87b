"""Report for programs: docs/preview.md documents every field."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from pydantic.alias_generators import to_camel

from berth.components.plan.effect import Level
from berth.components.plan.fleet import Span
from berth.stacks.policies.policy import waivers
from berth.stacks.preview.report import Report

FORMAT = 1
"""Version of the format, raised when a field changes its meaning; fields may be added without."""


def report_document(report: Report) -> dict[str, Any]:
    """Return the report as plain data."""
    context = report.context
    content: dict[str, Any] = {
        "format": FORMAT,
        "stack": context.stack,
        "kind": context.kind,
        "refreshed": context.refreshed,
        "verdict": report.verdict,
        "counts": report.counts,
        "changes": report.changes,
        "drift": report.drift,
        "gpusAway": report.gpus,
        "gpuHoursADay": report.hours,
        "moneyADay": report.cost,
        "toldToEngineers": context.changed_outputs,
        "edits": context.edits,
        "notAsked": report.partly_asked or None,
        "stateOnly": context.state_only or None,
        "policies": [
            {
                "policy": found.policy,
                "resource": found.resource,
                "type": found.type,
                "text": found.message,
            }
            for found in report.against_policies
        ],
        "waived": waivers(report.violations),
        "stays": report.stays,
        "waits": report.shortages,
        "warnings": report.warnings,
    }
    return dict(plain_data(content))


def plain_data(value: Any) -> Any:
    """Return a value as JSON has it: a dataclass as an object with camelCase keys."""
    if isinstance(value, Level):
        return value.word
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    if isinstance(value, Span):
        return {"min": plain_data(value.min), "max": plain_data(value.max)}
    if is_dataclass(value):
        return {
            to_camel(field.name): plain_data(getattr(value, field.name)) for field in fields(value)
        }
    if isinstance(value, Mapping):
        return {key: plain_data(inner) for key, inner in value.items()}
    return [plain_data(inner) for inner in value] if isinstance(value, list | tuple) else value
