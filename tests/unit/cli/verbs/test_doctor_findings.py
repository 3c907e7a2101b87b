"""A finding of berth doctor says what to do, in words of its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

from berth.cli.verbs.doctor import findings
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic

STATES = {"fine", "warning", "missing", "unchecked"}


def findings_in_code() -> Iterator[tuple[str, list[str]]]:
    """State and texts of each finding that a check makes."""
    for file in sorted(Path(findings.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=topic), attr=state)):
                    if state in STATES and topic.isupper():
                        yield state, [ast.unparse(argument) for argument in node.args]


def test_what_is_missing_comes_with_what_fixes_it() -> None:
    without = [texts[0] for state, texts in findings_in_code() if texts[-1] == "''"]
    # Their texts say it, but for a project that Google alone can make active again.
    assert sorted(without) == [
        "'you can undo the isolation of berths: only admins and their CI should apply this stack'",
        "f'project {project} is {state}'",
        "problem",
        "str(error)",
        "str(problem)",
    ]
    assert {state for state, _ in findings_in_code()} == STATES


def test_a_topic_names_the_state_of_its_findings() -> None:
    quota = Topic("quota")
    assert quota.fine("enough") == DoctorFinding("quota", "fine", "enough", "")
    assert quota.warning("few", "ask") == DoctorFinding("quota", "warning", "few", "ask")
    assert quota.missing("none", "ask") == DoctorFinding("quota", "missing", "none", "ask")
    assert quota.unchecked("unknown") == DoctorFinding("quota", "unchecked", "unknown", "")
