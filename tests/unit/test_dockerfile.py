"""Build of Dockerfiles without a container engine (tests/containers/dockerfile.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.lab.errors import LabError
from berth.lab.realnode import debian
from tests.containers import dockerfile
from tests.containers.dockerfile import Built, Instruction, parse

TEXT = """\
# A comment.
ARG BASE=debian:12
FROM ${BASE}
ENV PATH=/opt/bin:$PATH
WORKDIR /work
COPY some.txt /opt/berth/some.txt
USER 1000
RUN first \\
    # between
    && second
"""


def test_continued_lines_are_one_instruction_and_comments_are_none() -> None:
    assert parse(TEXT)[-1] == Instruction("RUN", "first && second")
    assert [instruction.name for instruction in parse(TEXT)] == ["ARG", "FROM", "ENV", "WORKDIR", "COPY", "USER", "RUN"]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would run in the root file system."""
    found: list[list[str]] = []

    def inside(folder: Path, command: list[str], what: str) -> str:  # noqa: ARG001 - as debian.inside
        found.append(command)
        return ""

    monkeypatch.setattr(debian, "inside", inside)
    return found


def context(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "Dockerfile").write_text(text)
    (folder / "some.txt").write_text("text")
    return folder


def test_a_build_does_what_the_instructions_say(tmp_path: Path, commands: list[list[str]]) -> None:
    root = tmp_path / "root"
    root.mkdir()
    base = Built(env={"PATH": "/usr/bin", "LANG": "C.UTF-8"})
    built = dockerfile.build(context(tmp_path / "image", TEXT), root, base=base, environment={"PIP_NO_INDEX": "1"})
    assert built == Built("debian:12", {"PATH": "/opt/bin:/usr/bin", "LANG": "C.UTF-8"}, "1000", "/work")
    assert base.env["PATH"] == "/usr/bin", "the base is another image's too"
    assert (root / "opt/berth/some.txt").read_text() == "text"
    (command,) = commands
    assert command[-3:] == ["sh", "-c", "cd /work && first && second"]
    assert {"PATH=/opt/bin:/usr/bin", "PIP_NO_INDEX=1", "--reuid=1000", "--regid=100"} <= set(command)


@pytest.mark.parametrize("line", ["ADD http://example.invalid/x /x", "USER nobody", "SHELL ['/bin/bash']"])
def test_an_instruction_that_is_not_known_is_no_silent_success(
    tmp_path: Path, line: str, commands: list[list[str]]
) -> None:
    with pytest.raises(LabError, match=r"image/Dockerfile: .* is not an instruction that is known here"):
        dockerfile.build(context(tmp_path / "image", line + "\n"), tmp_path)
    assert commands == []


def test_a_command_that_fails_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def inside(*_: Any) -> str:
        raise LabError("it failed", "fix it")

    monkeypatch.setattr(debian, "inside", inside)
    with pytest.raises(LabError, match="it failed"):
        dockerfile.build(context(tmp_path / "image", TEXT), tmp_path)
