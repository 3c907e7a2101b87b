"""Commands of the README, run in order on a fresh clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.lab.home import CLONE

README = (CLONE / "README.md").read_text(encoding="utf-8")

NOT_RUN = {"make test": "it is what runs this test"}
"""Commands that this test leaves out, with the reason. Blocks marked `console` need a Google Cloud
account."""

BUILD_SECONDS = 3000
_OF_A_LAB = ("BERTH_", "GOOGLE_", "HELM_", "KUBECONFIG", "PULUMI_", "PYTHONPATH", "VIRTUAL_ENV")


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line and line not in NOT_RUN]


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """Files of a fresh clone, with this working tree's changes."""
    folder = tmp_path / "berth"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=CLONE,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        source, target = CLONE / name, folder / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    yield folder
    subprocess.run(["make", "lab-clean"], cwd=folder, check=False, capture_output=True)


@pytest.mark.lab
def test_every_command_runs_on_a_fresh_clone(clone: Path) -> None:
    # The tests' own environment must not help: no virtual environment on PATH, no lab.
    variables = {name: value for name, value in os.environ.items() if not name.startswith(_OF_A_LAB)}
    variables["PATH"] = os.pathsep.join(part for part in variables["PATH"].split(os.pathsep) if ".venv" not in part)
    script = "set -e\n" + "".join(f"echo '$ {line}' >&2\n{line}\n" for line in commands())
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=clone,
        env=variables,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stdout + done.stderr
    assert "berth-alice" in done.stdout
    changed = subprocess.run(
        ["diff", "-rq", CLONE / "stacks", clone / "stacks"], capture_output=True, text=True, check=False
    )
    assert "Pulumi." not in changed.stdout, "trying berth must not change the stacks' files"


def test_every_command_of_berth_is_in_the_readme() -> None:
    report = CliRunner().invoke(app, ["--help"]).output
    for verb in re.findall(r"^│ (\w+) ", report, flags=re.MULTILINE):
        assert f"`berth {verb}" in README, f"the README says nothing of `berth {verb}`"


def test_every_berth_command_in_the_readme_exists() -> None:
    for line in sorted(
        {match for match in re.findall(r"berth ((?:lab )?[a-z]+)", README) if match.split()[0] in _verbs()}
    ):
        assert CliRunner().invoke(app, [*line.split(), "--help"]).exit_code == 0, line


def _verbs() -> set[str]:
    return {command.name or "" for command in app.registered_commands} | {"lab", "check", "schema", "status"}
