"""Report of an examination, as lines for people."""

from collections.abc import Iterator

from rich.console import Group
from rich.text import Text

from berth.cli.verbs.doctor.examination import Examination
from berth.cli.verbs.doctor.findings import DoctorFinding, State
from berth.components.core.words import counted, is_or_are

_MARKS: dict[State, tuple[str, str]] = {
    "fine": ("✓", "green"),
    "warning": ("!", "yellow"),
    "missing": ("✗", "bold red"),
    "unchecked": ("–", "yellow"),
}


def report_lines(examination: Examination) -> Group:
    """Return the findings of a stack, and a last line that sums them up."""
    lines = []
    if examination.simulated:
        lines.append(Text(f"Google Cloud is simulated by {examination.simulated}.", "yellow"))
    width = max(len(finding.topic) for finding in examination.findings)
    for finding in examination.findings:
        lines += _lines_of(finding, width + 4)
    return Group(*lines, _summary(examination))


def _lines_of(finding: DoctorFinding, column: int) -> Iterator[Text]:
    """Yield a finding's text beside the topic, and its commands below, each unbroken, to paste."""
    mark, style = _MARKS[finding.state]
    yield Text.assemble((mark, style), " ", (finding.topic.ljust(column - 2), "bold"), finding.text)
    if finding.remedy:
        for line in finding.remedy.split("\n"):
            yield Text(f"{' ' * column}{line}", "cyan", no_wrap=True, overflow="ignore")


def _summary(examination: Examination) -> Text:
    unchecked = sum(finding.state == "unchecked" for finding in examination.findings)
    rest = f"; {unchecked} not checked" if unchecked else ""
    missing = len(examination.missing)
    if missing:
        return Text(
            f"{counted(missing, 'thing')} {is_or_are(missing)} missing{rest};"
            f" run the commands, then: berth doctor -s {examination.stack}",
            "bold",
        )
    return Text(f"nothing is missing{rest}", "bold")
