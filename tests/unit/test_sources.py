"""Sources of the lab: lab/sources.md says of every module what the module answers to."""

import ast
import re

from berth.lab.home import CLONE

_LAB = CLONE / "lab"


def test_the_page_of_sources_names_every_module_that_has_code_and_no_other() -> None:
    files = [path for path in _LAB.rglob("*.py") if not path.is_relative_to(_LAB / "tools")]
    modules = {
        str(path.relative_to(CLONE)) for path in files if len(ast.parse(path.read_text()).body) > 1
    }
    named = set(
        re.findall(r"^- \[(\S+)\]\(\.\./\1\)", (_LAB / "sources.md").read_text(), re.MULTILINE)
    )
    assert named == modules
