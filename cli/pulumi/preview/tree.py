"""Report for people at a terminal."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from berth.cli.pulumi.preview import lines
from berth.cli.pulumi.preview.folding import Fold, folded_changes, folded_text, folds_of
from berth.components.core.words import counted
from berth.components.plan.effect import Level
from berth.stacks.preview.report import ComponentChanges, Report, ResourceChange

_COLORS = {"create": "green", "update": "yellow", "replace": "magenta", "delete": "red"}
_LEVELS = {
    Level.HARMLESS: ("·", "dim"),
    Level.DISTURBS: ("!", "yellow"),
    Level.DESTROYS: ("✗", "bold red"),
}
_VERDICTS = {"nothing": "green", "harmless": "green", "disturbs": "yellow", "destroys": "bold red"}

_NO_LIMIT = 10_000


def print_tree(
    report: Report, console: Console, *, fields: bool = False, whole: bool = False
) -> None:
    """Print a report, without the warnings; with the fields of manifests, or only their number.

    With `whole`, or the fields, each change has a line of its own, also where many are alike.

    A tree is wrapped at its console's width; a log or a file has none.
    """
    width = None if console.is_terminal else _NO_LIMIT
    Console(stderr=console.stderr, highlight=False, width=width).print(
        report_tree(report, fields=fields, whole=whole)
    )


def report_tree(report: Report, *, fields: bool = False, whole: bool = False) -> RenderableType:
    """Return the whole report: the changes as a tree, and their sum below it."""
    title = Text(report.context.stack, style="bold")
    title.append(f": {lines.counts_line(report)}", style="not bold")
    root = Tree(title, guide_style="dim")
    if report.context.edits:
        branch = root.add(Text("changed settings", style="bold"))
        for edit in report.context.edits:
            branch.add(Text(lines.property_text(edit)))
    if report.drift:
        branch = root.add(Text("changed outside Pulumi", style="yellow"))
        for drift in report.drift:
            leaf = branch.add(Text(lines.drift_line(drift)))
            for changed in drift.properties:
                leaf.add(Text(lines.property_text(changed), style="dim"))
    folds = folds_of(report.parts, whole=whole or fields, with_properties=False)
    for fold in folds:
        branch = root.add(Text(fold.title, style="bold"))
        if fold.is_single:
            _add_part(branch, fold.parts[0], fields=fields, whole=whole or fields)
        else:
            for operation, line in fold.lines:
                branch.add(Text(line, style=_COLORS[operation]))
    return Group(root, *_summary(report, fields=fields, folds=folds))


def _add_part(branch: Tree, part: ComponentChanges, *, fields: bool, whole: bool) -> None:
    for changes in folded_changes(part.changes, whole=whole, with_properties=False):
        if len(changes) == 1:
            _add(branch, changes[0], fields=fields)
        else:
            branch.add(Text(folded_text(changes, str), style=_COLORS[changes[0].operation]))


def _add(branch: Tree, change: ResourceChange, *, fields: bool) -> None:
    color = _COLORS[change.operation]
    label = Text(lines.change_text(change), style=color)
    if change.name not in str(branch.label):
        label.append(f" {change.name}")
    if change.detail:
        label.append(f"  {change.detail}", style="dim")
    leaf = branch.add(label)
    for effect in change.effects:
        sign, style = _LEVELS[effect.level]
        reached = leaf.add(Text(f"{sign} {effect.text}", style=style))
        if effect.sitting:
            reached.add(Text(f"affects: {', '.join(map(str, effect.sitting))}"))
    if change.operation == "replace" and not change.forcing:
        leaf.add(Text("since something that it depends on is replaced", style="dim"))
    for changed in change.properties if fields else change.forcing:
        text = Text(lines.property_text(changed), style="" if changed.forces_replacement else "dim")
        if changed.forces_replacement:
            text.append("  forces the replacement", style="magenta")
        leaf.add(text)


def _summary(report: Report, *, fields: bool, folds: Sequence[Fold]) -> list[Text]:
    texts = []
    if gpus := lines.gpus_line(report.gpus):
        texts.append(Text.assemble(("GPUs that go away: ", "bold"), gpus))
    if work := ", ".join(map(str, report.sitting(Level.DESTROYS))):
        texts.append(Text.assemble(("Work that is lost: ", "bold"), work))
    costs = lines.cost_lines(report)
    if costs:
        texts.append(Text("Cost a day", style="bold"))
        texts += [Text(f"  {cost}") for cost in costs]
    notes = [*lines.report_notes(report), *lines.waiver_lines(report)]
    texts += [Text(note, style="yellow") for note in notes]
    if not fields:
        texts += _hidden_fields(report)
    if not all(fold.is_single for fold in folds):
        command = f"berth preview -s {report.context.stack}{_refresh(report)} --all"
        texts.append(Text(f"Each by itself: {command}", style="dim"))
    texts += [Text(line, style="bold red") for line in lines.policy_lines(report)]
    style = "yellow" if lines.is_unknown(report) else _VERDICTS[report.verdict]
    return [*texts, Text(lines.verdict_line(report), style=style)]


def _hidden_fields(report: Report) -> list[Text]:
    """Return how many fields of manifests are not shown, and the command that shows them."""
    hidden = sum(len(change.properties) - len(change.forcing) for change in report.changes)
    if not hidden:
        return []
    command = f"berth preview -s {report.context.stack}{_refresh(report)} --fields"
    return [Text(f"Also: {counted(hidden, 'field')} of manifests ({command})", style="dim")]


def _refresh(report: Report) -> str:
    """Return the option with which the same report is made again, if it was made with it."""
    return " --refresh" if report.context.refreshed else ""
