"""Modules that a program or command does without, since they take long to import."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from berth.lab.home import CLONE

PROGRAM = {"pulumi_gcp", "kubernetes", "berth.lab"}
PULUMI = {"pulumi", "grpc", "kubernetes"}
COMPLETES = {
    "_BERTH_COMPLETE": "complete_bash",
    "COMP_WORDS": "berth status -s d",
    "COMP_CWORD": "3",
}
STATEMENTS: dict[str, tuple[str, set[str]]] = {
    "an environment on an existing cluster": (
        "import berth.stacks.program.environment, berth.components.operators.installation",
        PROGRAM,
    ),
    # The types of new networks are half of what the program of such an environment takes to start.
    "an environment on an existing network": (
        "import berth.stacks.program.google",
        {"pulumi_gcp.compute._inputs"},
    ),
    "an engineer's stack": (
        "import berth.stacks.program.main, berth.stacks.program.engineer",
        PROGRAM,
    ),
    "status": ("import berth.cli.reach.fleet", PULUMI - {"kubernetes"}),
    "check": (
        "from berth.cli.main import app; app(['check', 'dev'], standalone_mode=False)",
        PULUMI,
    ),
    "completion": (
        (
            f"os.environ |= {COMPLETES}; sys.argv = ['berth']; from berth.cli.__main__ import main;"
            " main()"
        ),
        {*PULUMI, "pulumi_gcp", "pulumi_kubernetes", "google", "urllib3"},
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_what_takes_long_is_not_imported(tmp_path: Path, name: str) -> None:
    statement, slow = STATEMENTS[name]
    report = tmp_path / "modules"
    at_exit = (
        f"import atexit, os, sys; atexit.register(lambda: open({str(report)!r}, 'w').write('"
        " '.join(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{at_exit}\n{statement}"],
        cwd=CLONE,
        env=os.environ | {"PYTHONPATH": str(CLONE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    modules = report.read_text(encoding="utf-8").split()
    assert "berth.stacks" in modules
    assert [
        module
        for module in modules
        for name in slow
        if module == name or module.startswith(f"{name}.")
    ] == []
