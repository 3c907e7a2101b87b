"""Report as the comment on a pull request, or a job's summary."""

import html
import re
from collections.abc import Sequence

from berth.cli.pulumi.preview import lines
from berth.cli.pulumi.preview.folding import Fold, folded_changes, folded_text, folds_of
from berth.components.core.printable import one_line
from berth.components.plan.effect import Effect, Level
from berth.stacks.preview.report import ComponentChanges, Report, ResourceChange

MOST_CHARACTERS = 60_000
"""Length limit: GitHub takes 65,536 characters for a comment, and CI adds some."""

_SIGNS = {"nothing": "✅", "harmless": "✅", "disturbs": "⚠️", "destroys": "🛑"}


def comment_marker(stack: str) -> str:
    """Return the hidden line by which CI finds its comment again."""
    return f"<!-- berth-preview:{stack} -->"


def report_markdown(report: Report, *, whole: bool = False) -> str:
    """Return the report, losses first; one that is too long is cut, and says so.

    With `whole`, each change has a line of its own, also where many are alike.
    """
    sign = "🛑" if report.against_policies else _SIGNS[report.verdict]
    if lines.is_unknown(report) and not report.against_policies:
        sign = "⚠️"
    head = [
        comment_marker(report.context.stack),
        f"## {sign} berth preview: {_code(report.context.stack)}",
        "",
    ]
    head += [f"**{lines.verdict_line(report)}** {lines.counts_line(report)}.", ""]
    body = [*_section("### Policies", _policies(report)), *_destroyed(report)]
    body += _section("### Cost a day", [f"- {_escaped(cost)}" for cost in lines.cost_lines(report)])
    body += _section("", [f"- {_escaped(note)}" for note in lines.report_notes(report)])
    body += _section("### Changed outside Pulumi", _drift(report))
    for fold in folds_of(report.parts, whole=whole, with_properties=True):
        body += _part(fold.parts[0], whole=whole) if fold.is_single else _fold(fold)
    body += _details(
        "Warnings", [f"- {_escaped(' '.join(line.split()))}" for line in report.warnings]
    )
    return _cut("\n".join([*head, *body]).rstrip() + "\n")


def _section(title: str, content: Sequence[str]) -> list[str]:
    """Return lines below a title, or without one; none if there is no content."""
    if not content:
        return []
    head = [title, ""] if title else []
    return [*head, *content, ""]


def _details(title: str, content: Sequence[str]) -> list[str]:
    """Return lines that a reader can open; none if there is no content."""
    if not content:
        return []
    return [f"<details><summary>{title}</summary>", "", *content, "", "</details>", ""]


def _policies(report: Report) -> list[str]:
    broken = [f"- 🛑 {_escaped(line)}" for line in lines.policy_lines(report)]
    return broken + [f"- {_escaped(line)}" for line in lines.waiver_lines(report)]


def _destroyed(report: Report) -> list[str]:
    """Return the table of what is lost."""
    rows: list[str] = []
    for change in report.changes:
        losses = [effect for effect in change.effects if effect.level == Level.DESTROYS]
        rows += [_row(change, effect) for effect in losses]
    if not rows:
        return []
    heads = ["| what | what happens | who is there | GPUs that go away |", "|---|---|---|---|"]
    return [*heads, *rows, ""]


def _row(change: ResourceChange, effect: Effect) -> str:
    who = ", ".join(map(str, effect.sitting)) or "–"
    gpus = lines.gpus_line(effect.gpus_away) or "–"
    return f"| {_cell(change)} | {_escaped(effect.text)} | {_escaped(who)} | {_escaped(gpus)} |"


def _cell(change: ResourceChange) -> str:
    text = f"{lines.change_text(change)} {_code(change.name)}"
    if change.forcing:
        text += ", forced by " + ", ".join(
            _code(lines.property_text(forcing)) for forcing in change.forcing
        )
    return text.replace("|", "\\|")


def _drift(report: Report) -> list[str]:
    items = []
    for drift in report.drift:
        items.append(f"- {_escaped(lines.drift_line(drift))}")
        items += [f"  - {_code(lines.property_text(changed))}" for changed in drift.properties]
    return items


def _fold(fold: Fold) -> list[str]:
    """Return several components that change alike."""
    signs = " ".join(lines.SIGNS[operation] for operation, _ in fold.lines)
    items = [f"- {_escaped(line)}" for _, line in fold.lines]
    for change in fold.parts[0].changes:
        items += [f"  - {_code(lines.property_text(changed))}" for changed in change.properties]
    return _details(f"{signs} {html.escape(one_line(fold.title), quote=False)}", items)


def _part(part: ComponentChanges, *, whole: bool) -> list[str]:
    signs = " ".join(dict.fromkeys(lines.SIGNS[change.operation] for change in part.changes))
    worst = f" — {part.level.word}" if part.level > Level.HARMLESS else ""
    items: list[str] = []
    for changes in folded_changes(part.changes, whole=whole, with_properties=True):
        if len(changes) == 1:
            items += _change(changes[0])
        else:
            items.append(f"- {folded_text(changes, _code)}")
    return _details(f"{signs} {html.escape(one_line(part.title), quote=False)}{worst}", items)


def _change(change: ResourceChange) -> list[str]:
    """Return a change, with its effects and its properties below it."""
    detail = f" ({_escaped(change.detail)})" if change.detail else ""
    items = [f"- {lines.change_text(change)} {_code(change.name)}{detail}"]
    for effect in change.effects:
        who = f" — affects: {', '.join(map(str, effect.sitting))}" if effect.sitting else ""
        level = f"**{effect.level.word}**: " if effect.level > Level.HARMLESS else ""
        items.append(f"  - {level}{_escaped(effect.text + who)}")
    for changed in change.properties:
        forces = " **forces the replacement**" if changed.forces_replacement else ""
        items.append(f"  - {_code(lines.property_text(changed))}{forces}")
    return items


def _cut(text: str) -> str:
    """Cut a text at a line's end, and close what is open."""
    if len(text) <= MOST_CHARACTERS:
        return text
    end = (
        "\n\n*Cut: the whole report is longer than a comment can be. See `berth preview --json`.*\n"
    )
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
