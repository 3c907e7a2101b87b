"""Sources of the lab: lab/sources.md says of every module what the module answers to."""

import ast
import re

from berth.lab.home import CLONE

_LAB = CLONE / "lab"


def test_the_page_of_sources_names_every_module_that_has_code_and_no_other() -> None:
    files = [path for path in _LAB.rglob("*.py") if not path.is_relative_to(_LAB / "tools")]
    modules = {str(path.relative_to(CLONE)) for path in files if len(ast.parse(path.read_text()).body) > 1}
    named = set(re.findall(r"^- \[(\S+)\]\(\.\./\1\)", (_LAB / "sources.md").read_text(), re.MULTILINE))
    assert named == modules


def test_every_chart_names_the_published_chart_that_it_follows() -> None:
    charts = {path.parent.name: path.read_text() for path in _LAB.glob("charts/*/Chart.yaml")}
    assert charts
    assert [name for name, text in charts.items() if not text.startswith("# Answers to (read): ")] == []
