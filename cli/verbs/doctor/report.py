"""Findings for people: a line for each, and below it the command that fixes it."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from berth.cli.verbs.doctor.examine import Examination
from berth.cli.verbs.doctor.findings import Finding, State
from berth.components.core.words import are, counted

_MARKS: dict[State, tuple[str, str]] = {
    "fine": ("✓", "green"),
    "missing": ("✗", "bold red"),
    "unchecked": ("–", "yellow"),
}


def lines(examination: Examination) -> Group:
    """Return the findings of a stack, and a last line that sums them up."""
    head = [Text(f"Google Cloud is simulated by {examination.simulated}.", "yellow")] if examination.simulated else []
    width = max(len(finding.topic) for finding in examination.findings)
    rows = [_entry(finding, width + 4) for finding in examination.findings]
    return Group(*head, *rows, _sum(examination))


def _entry(finding: Finding, column: int) -> Text:
    """Return a finding: its text beside the topic, and its commands below, to paste."""
    mark, style = _MARKS[finding.state]
    lines = finding.remedy.split("\n") if finding.remedy else []
    remedy = [(f"\n{' ' * column}{line}", "cyan") for line in lines]
    topic = finding.topic.ljust(column - 2)
    return Text.assemble((mark, style), " ", (topic, "bold"), finding.text, *remedy)


def _sum(examination: Examination) -> Text:
    unchecked = sum(finding.state == "unchecked" for finding in examination.findings)
    rest = f"; {unchecked} not checked" if unchecked else ""
    missing = len(examination.missing)
    if missing:
        return Text(
            f"{counted(missing, 'thing')} {are(missing)} missing{rest};"
            f" run the commands, then: berth doctor -s {examination.stack}",
            "bold",
        )
    return Text(f"nothing is missing{rest}", "bold")
