"""Blocks of all pages: a test runs each block of commands, or its mark says why none does."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from bench.tasks import TASKS, blocks_of, unknown_marks
from tests.pages.page import CLONE, COMMANDS, PAGES, RUN, Block, Marks, blocks
from tests.pages.shell import BlockError, opened

STUBS = """
set -eu
command_not_found_handle() { :; }
function . { :; }
function cd { :; }
function mkdir { /bin/mkdir "$@"; }
"""
"""Beginning of a script in which no program runs."""

_PROGRAM_BY_PATH = re.compile(r"^~/\S*/(?=\S)", flags=re.MULTILINE)

ADVICE = (
    "name its page in tests/pages/page.py, or write <!-- not run: REASON --> on the line before the"
    " block"
)


def shown(page: Path) -> str:
    return str(page.relative_to(CLONE))


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_block_of_commands_runs_or_says_why_not(page: Path) -> None:
    idle = [str(block) for block in blocks(page) if block.runs and block.page not in RUN]
    assert idle == [], ADVICE


@pytest.mark.parametrize("page", [CLONE / page for page in RUN], ids=shown)
def test_settings_that_a_page_tells_to_write_are_written(page: Path) -> None:
    settings = [
        block
        for block in blocks(page)
        if block.language == "yaml" and block.text.startswith("config:")
    ]
    idle = [
        str(block) for block in settings if not (block.marks.written_to or block.marks.not_written)
    ]
    assert idle == [], (
        "write <!-- written to FILE --> or <!-- not written: REASON --> on the line before"
    )


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_block_is_shell_without_undefined_variables(page: Path, tmp_path: Path) -> None:
    """Every program of the blocks is a stub here: what is left is the shell's part."""
    (tmp_path / "stacks").mkdir()
    commands = [block for block in blocks(page) if block.language in COMMANDS]
    script = "".join([STUBS, *(f"{_PROGRAM_BY_PATH.sub('', block.text)}\n" for block in commands)])
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=tmp_path,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{shown(page)}: {done.stderr}"


def block(text: str, language: str = "sh", **marks: object) -> Block:
    return Block("page.md", 1, language, text, Marks(**marks))  # type: ignore[arg-type]


def test_a_block_that_fails_is_noticed(tmp_path: Path) -> None:
    with (
        opened(tmp_path, os.environ) as shell,
        pytest.raises(BlockError, match=r"page\.md:1 failed"),
    ):
        shell.run(block("echo before\nfalse\necho after\n"))
    with (
        opened(tmp_path, os.environ) as shell,
        pytest.raises(BlockError, match="exit code 1, not 3"),
    ):
        shell.run(block("false\n", exits=3))
    with opened(tmp_path, os.environ) as shell, pytest.raises(BlockError, match="Do it"):
        shell.run(block("true\n", answers=[("Do it?", "y")]))


def test_every_task_has_its_commands_in_the_pages() -> None:
    assert unknown_marks() == []
    assert [task for task in TASKS if not any(blocks_of(task))] == []
