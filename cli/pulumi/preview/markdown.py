"""Report as the comment on a pull request, or a job's summary."""

import html
import re

from berth.cli.pulumi.preview import lines
from berth.components.core.printable import one_line
from berth.components.plan.effect import Level
from berth.stacks.preview.report import Change, Part, Report

MOST_CHARACTERS = 60_000
"""Length limit: GitHub takes 65,536 characters for a comment, and CI adds some."""

_SIGNS = {"nothing": "✅", "harmless": "✅", "disturbs": "⚠️", "destroys": "🛑"}


def marker(stack: str) -> str:
    """Return the hidden line by which CI finds its comment again."""
    return f"<!-- berth-preview:{stack} -->"


def markdown(report: Report) -> str:
    """Return the report, losses first; one that is too long is cut, and says so."""
    head = [marker(report.known.stack), f"## {_sign(report)} berth preview: {_code(report.known.stack)}", ""]
    head += [f"**{lines.verdict_line(report)}** {lines.counts_line(report)}.", ""]
    body = [*_policies(report), *_destroyed(report), *_cost(report), *_notes(report), *_drift(report)]
    for part in report.parts:
        body += _part(part)
    body += _warnings(report)
    return _cut("\n".join([*head, *body]).rstrip() + "\n")


def _sign(report: Report) -> str:
    return "🛑" if report.against_policies else _SIGNS[report.verdict]


def _policies(report: Report) -> list[str]:
    """Return violations of policies, and waived policies with their reasons."""
    broken = [f"- 🛑 {_escaped(line)}" for line in lines.policy_lines(report)]
    waived = [f"- {_escaped(line)}" for line in lines.waiver_lines(report)]
    return ["### Policies", "", *broken, *waived, ""] if broken or waived else []


def _destroyed(report: Report) -> list[str]:
    """Return a table of changes that end work or take capacity."""
    rows = [
        f"| {_cell(change)} | {_escaped(effect.text)} | {_escaped(', '.join(map(str, effect.sitting)) or '–')} |"
        f" {_escaped(lines.gpus_line(effect.gpus_away) or '–')} |"
        for change in report.changes
        for effect in change.effects
        if effect.level == Level.DESTROYS
    ]
    return (
        ["| what | what happens | who is there | GPUs that go away |", "|---|---|---|---|", *rows, ""] if rows else []
    )


def _cell(change: Change) -> str:
    text = f"{lines.SIGNS[change.operation]} {lines.VERBS[change.operation]} {change.resource} {_code(change.name)}"
    if change.forcing:
        text += ", forced by " + ", ".join(_code(lines.property_text(forcing)) for forcing in change.forcing)
    return text.replace("|", "\\|")


def _cost(report: Report) -> list[str]:
    costs = lines.cost_lines(report)
    return ["### Cost a day", "", *(f"- {_escaped(cost)}" for cost in costs), ""] if costs else []


def _notes(report: Report) -> list[str]:
    notes = [f"- {_escaped(note)}" for note in lines.notes(report)]
    return [*notes, ""] if notes else []


def _drift(report: Report) -> list[str]:
    if not report.drift:
        return []
    found = ["### Changed outside Pulumi", ""]
    for drift in report.drift:
        found.append(f"- {_escaped(lines.drift_line(drift))}")
        found += [f"  - {_code(lines.property_text(changed))}" for changed in drift.properties]
    return [*found, ""]


def _part(part: Part) -> list[str]:
    signs = " ".join(dict.fromkeys(lines.SIGNS[change.operation] for change in part.changes))
    worst = f" — {part.level.word}" if part.level > Level.HARMLESS else ""
    found = [f"<details><summary>{signs} {_html(part.title)}{worst}</summary>", ""]
    for change in part.changes:
        detail = f" ({_escaped(change.detail)})" if change.detail else ""
        sign, verb = lines.SIGNS[change.operation], lines.VERBS[change.operation]
        found.append(f"- {sign} {verb} {change.resource} {_code(change.name)}{detail}")
        for effect in change.effects:
            who = f" — affects: {', '.join(map(str, effect.sitting))}" if effect.sitting else ""
            level = f"**{effect.level.word}**: " if effect.level > Level.HARMLESS else ""
            found.append(f"  - {level}{_escaped(effect.text + who)}")
        found += [
            f"  - {_code(lines.property_text(changed))}"
            f"{' **forces the replacement**' if changed.forces_replacement else ''}"
            for changed in change.properties
        ]
    return [*found, "", "</details>", ""]


def _warnings(report: Report) -> list[str]:
    if not report.warnings:
        return []
    lines_of_all = [f"- {_escaped(' '.join(line.split()))}" for line in report.warnings]
    return ["<details><summary>Warnings</summary>", "", *lines_of_all, "", "</details>", ""]


def _cut(text: str) -> str:
    """Cut a text at a line's end, and close what is open."""
    if len(text) <= MOST_CHARACTERS:
        return text
    end = "\n\n*Cut: the whole report is longer than a comment can be. See `berth preview --json`.*\n"
    close = "\n\n</details>"
    start = text[: MOST_CHARACTERS - len(end) - len(close)].rsplit("\n", 1)[0]
    still_open = start.count("<details>") > start.count("</details>")
    return start + (close if still_open else "") + end


def _code(text: str) -> str:
    """Return text as code, whatever backticks it has."""
    text = one_line(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"


def _escaped(text: str) -> str:
    """Escape what means something to markdown; settings can hold any text."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", one_line(text))


def _html(text: str) -> str:
    return html.escape(one_line(text), quote=False)
