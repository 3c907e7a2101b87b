"""The first hour of docs/engineer.md, block by block, where containers run; then the home again.

The page names its engineer alice and its environment lab; both have other names here.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from berth.components.core.image import full_name
from berth.components.hardware.versions import RAY_IMAGE
from berth.lab.progress import LabProgress
from berth.lab.realnode import layout, lifecycle
from tests.pages.checkout import do
from tests.pages.page import CLONE, Block, Marks, blocks
from tests.pages.shell import opened
from tests.real.conftest import POOL, RealNode, environment, home

pytestmark = [pytest.mark.real, pytest.mark.long]

PAGE = CLONE / "docs" / "engineer.md"
NAME = "erin"
NOTES = "learning rate 0.1"
_NAMES = {r"\balice\b": NAME, r"(-[se]|environment:) lab\b": r"\1 env"}


def named(text: str) -> str:
    """Text of the page with the names of this test."""
    for pattern, name in _NAMES.items():
        text = re.sub(pattern, name, text)
    return text


def hour() -> list[Block]:
    """Blocks of the first hour, with what their commands do where containers run."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = lines.index("## The first hour")
    end = next(
        number for number, line in enumerate(lines) if number > begin and line.startswith("## ")
    )
    return [_where_containers_run(block) for block in blocks(PAGE) if begin < block.line <= end]


def _where_containers_run(block: Block) -> Block:
    marks = block.marks
    assert not marks.not_run, f"{block}: each block of the hour is done"
    # A simulated job is ended by hand.
    there = (
        Marks()
        if marks.stop_after
        else replace(marks, exits=0 if marks.exits == 1 else marks.exits)
    )
    answers = [(prompt, named(answer)) for prompt, answer in there.answers]
    there = replace(there, answers=answers, written_to=named(marks.written_to))
    return replace(block, text=named(block.text), marks=there)


@pytest.fixture(scope="module")
def project(real: RealNode) -> Iterator[RealNode]:
    """Environment whose berths are on the real node by default, as small as that needs."""
    small = {
        "head": {"pool": POOL, "cpu": 1, "memory": "3Gi"},
        "worker": {"pool": POOL},
        "home": home("10Gi"),
        "wait": {"timeout": "8m"},
    }
    real.project.write("env", environment=environment(real.lab) | {"defaults": small})
    real.project.up("env")
    (real.project.folder / ".venv").symlink_to(CLONE / ".venv")
    yield real
    real.project.write("env", environment=environment(real.lab))
    real.project.up("env")


def read(real: RealNode, file: str) -> str:
    return real.project.run("berth", "exec", NAME, "--", "cat", f"/mnt/home/{file}").stdout


def test_the_page_from_top_to_bottom(project: RealNode, tmp_path: Path) -> None:
    # OpenSSH's client gets its key by name, so that the user's own home stays as it is.
    with opened(project.project.folder, project.lab.env | {"HOME": str(tmp_path)}) as shell:
        output = [
            ran.output for block in hour() if (ran := do(shell, project.project.folder, block))
        ]
    shown = "".join(output)
    assert f"a token of 13 characters, {NOTES}" in shown
    assert "hf_first_hour" not in shown, "the value is not shown while it is typed"
    assert f"{NOTES}\nstep 100" in output[-2], "the home is there after the suspension"
    assert "Traceback" not in shown


def test_the_home_is_there_with_a_new_image(project: RealNode) -> None:
    other = f"{RAY_IMAGE}-next"
    ctr = str(lifecycle.programs(LabProgress()).built["ctr"])
    at = ["--address", str(layout.Layout.socket), "--namespace", "k8s.io"]
    project.inside(ctr, *at, "images", "tag", full_name(RAY_IMAGE), full_name(other))
    stack = project.project.folder / "stacks" / f"Pulumi.{NAME}.yaml"
    settings = yaml.safe_load(stack.read_text())
    settings["config"]["berth:engineer"]["image"] = other
    stack.write_text(yaml.safe_dump(settings))
    project.project.run("berth", "up", "-s", NAME, "--yes", "--allow-destroy")
    (pod,) = project.project.get("pods", "-n", f"berth-{NAME}", "-l", "ray.io/node-type=head")
    assert pod["spec"]["containers"][0]["image"] == other
    assert NOTES in read(project, "notes.txt")


def test_the_home_is_there_when_the_berth_comes_back(project: RealNode) -> None:
    project.project.run("berth", "destroy", "-s", NAME, "--yes", "--allow-destroy")
    assert project.project.get("pods", "-n", f"berth-{NAME}") == []
    project.project.run("berth", "up", "-s", NAME, "--yes")
    assert NOTES in read(project, "notes.txt")


def test_the_folder_goes_with_the_home(project: RealNode) -> None:
    (claim,) = project.project.get("persistentvolumeclaims", "-n", f"berth-{NAME}")
    folder = layout.folder(project.lab.home) / "disks" / claim["spec"]["volumeName"]
    assert NOTES in (folder / "notes.txt").read_text()
    project.project.run("berth", "destroy", "-s", NAME, "--yes", "--allow-destroy")
    project.project.run("berth", "home", "remove", NAME, "-s", "env", "--yes")
    assert not folder.exists()
