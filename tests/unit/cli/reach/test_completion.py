"""Completion through the shells' own protocol."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.lab.home import CLONE
from tests.unit.cases import table

ENVIRONMENT = """
config:
  berth:environment:
    pools: {small: {}, large: {}}
    engineers: {alice: {}, bob: {}}
    clusters: {train: {}}
    jobs: {nightly: {}}
    services: {chat: {}}
"""
OTHER = "config: {berth:environment: {pools: {tiny: {}}, engineers: {zoe: }}}\n"
OWN = "config: {berth:engineer: {environment: team}}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two environments, an engineer's stack, and files that cannot be read."""
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\nstackConfigDir: stacks\n")
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    for stack, text in {
        "team": ENVIRONMENT,
        "test": OTHER,
        "erin": OWN,
        "torn": "config: {",
        "text": "x",
    }.items():
        (stacks / f"Pulumi.{stack}.yaml").write_text(text)
    (stacks / "Pulumi.bytes.yaml").write_bytes(b"\xff\xfe\x00")
    (stacks / "Pulumi.folder.yaml").mkdir()
    return tmp_path


@pytest.fixture(autouse=True)
def _inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def words_for(**variables: str) -> list[str]:
    """The words that a shell gets for its variables."""
    done = CliRunner().invoke(app, [], prog_name="berth", env=variables)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


def completed(line: str) -> list[str]:
    """The words for the end of a line, as bash asks for them."""
    at = str(len(line.split(" ")) - 1)
    return [
        word
        for word in words_for(
            _BERTH_COMPLETE="complete_bash", COMP_WORDS=line.strip(), COMP_CWORD=at
        )
        if word
    ]


@pytest.mark.parametrize(("line", "words"), table(__file__, "completion.yaml"))
def test_words(line: str, words: list[str]) -> None:
    assert completed(line) == words


@pytest.mark.parametrize("line", ["berth status -s ", "berth logs ", "berth create x --pool "])
def test_outside_of_a_project_there_are_no_words(
    line: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert completed(line) == []


def test_zsh_and_fish_ask_in_their_ways() -> None:
    zsh = words_for(_BERTH_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="berth status -s tea")
    assert zsh == ["_arguments '*: :((\"team\"))'"]
    fish = words_for(
        _BERTH_COMPLETE="complete_fish",
        _TYPER_COMPLETE_ARGS="berth connect -s test ",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )
    assert fish == ["zoe"]


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder of commands: `berth`, and shells by name, which are bash."""
    folder = tmp_path / "bin"
    folder.mkdir()
    berth = folder / "berth"
    berth.write_text(f'#!/bin/sh\nexec {sys.executable} -m berth.cli "$@"\n')
    berth.chmod(0o755)
    bash = shutil.which("bash")
    assert bash
    for shell in ("bash", "zsh", "fish"):
        shutil.copy(bash, folder / shell)
    return folder


def in_shell(
    shell: str, script: str, commands: Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    path = f"{commands}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(CLONE), "HOME": str(folder), "PATH": path}
    return subprocess.run(
        [str(commands / shell), "-c", f"{script}; :"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("shell", "script", "file"),
    [
        ("bash", "complete -o default -F _berth_completion berth", ".bash_completions/berth.sh"),
        ("zsh", "compdef _berth_completion berth", ".zfunc/_berth"),
        ("fish", "complete --command berth", ".config/fish/completions/berth.fish"),
    ],
)
def test_each_shell_gets_its_script(
    shell: str, script: str, file: str, commands: Path, tmp_path: Path
) -> None:
    shown = in_shell(shell, "berth --show-completion", commands, tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert script in shown.stdout
    installed = in_shell(shell, "berth --install-completion", commands, tmp_path)
    assert (installed.returncode, installed.stderr) == (0, "")
    path = tmp_path / file
    assert f"{shell} completion installed in {path}" in installed.stdout
    assert path.read_text().strip() == shown.stdout.strip()


def test_bash_completes_with_the_script_that_it_gets(commands: Path, project: Path) -> None:
    script = (
        "source <(berth --show-completion); COMP_WORDS=(berth status -s te) COMP_CWORD=3;"
        ' _berth_completion berth; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = in_shell("bash", script, commands, project)
    assert (done.stdout.split(), done.stderr) == (["team", "test", "text"], "")
