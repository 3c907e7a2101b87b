"""The command in odd places: streams, terminals, signals, names, and files that are no settings."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.lab.home import CLONE

ASCII = [
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


def berth(
    *words: str | bytes, folder: Path = CLONE, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "berth.cli", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(CLONE)} | (variables or {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def in_shell(script: str) -> tuple[int, str]:
    """Run a script where `berth` is this tree's; return the exit code, and both streams."""
    command = f'berth() {{ {sys.executable} -m berth.cli "$@"; }}; set -o pipefail; {script}'
    done = subprocess.run(
        ["bash", "-c", command], cwd=CLONE, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_terminal_of_ascii_gets_ascii() -> None:
    by_encoding = berth("check", variables=ASCII[0])
    by_locale = berth("schema", variables=ASCII[1])
    for done in (by_encoding, by_locale):
        assert done.returncode == 0
        assert (done.stdout + done.stderr).isascii()
        assert "Traceback" not in done.stderr
    assert "\\u2713 lab (environment" in by_encoding.stdout
    assert "properties" in json.loads(by_locale.stdout)


@pytest.mark.parametrize("words", ["check --policies", "chek"])
def test_a_pipe_gets_no_escape_sequences(words: str) -> None:
    assert "\x1b" not in CliRunner().invoke(app, words.split()).output


@pytest.mark.parametrize(
    "words",
    ["check lab --json", "check --policies --json", "engineer list -s lab --json", "schema"],
)
def test_json_stands_alone_on_stdout(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CLONE)
    json.loads(CliRunner().invoke(app, words.split()).stdout)


@pytest.mark.parametrize(
    ("words", "to", "code", "message"),
    [
        ("schema", "| true", 0, ""),
        (
            "check --policies --json",
            "> /dev/full",
            1,
            "error: [Errno 28] No space left on device\n",
        ),
        ("schema", ">&-", 0, ""),
    ],
)
def test_a_stdout_that_takes_nothing(words: str, to: str, code: int, message: str) -> None:
    ended, text = in_shell(f"berth {words} {to}")
    rest = [
        line
        for line in text.splitlines(keepends=True)
        if not line.startswith("  note:") and "warning:" not in line
    ]
    assert (ended, "".join(rest)) == (code, message)


def test_a_missing_stderr_is_no_error() -> None:
    assert in_shell("berth check lab 2>&-") == (0, "✓ lab (environment, 2 policies kept)\n")


LONG = "a" * 300
STACK = "is not a stack's name: at most 100 letters, digits, '-', '_' and '.'"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (LONG, f"'aaaaaaaaaaaaaaaaaaaa…' {STACK}; known are "),
        ("", f"'' {STACK}; known are "),
        ("a\nb", f"'a\\nb' {STACK}; known are "),
        ("ünï", f"'ünï' {STACK}; known are "),
        ("a b", f"'a b' {STACK}; known are "),
        ("\x1b[31m", f"'\\x1b[31m' {STACK}; known are "),
        ("[red]", f"'[red]' {STACK}; known are "),
        ("../../etc/passwd", f"'../../etc/passwd' {STACK}; known are "),
        (b"\xff", f"'\\udcff' {STACK}; known are "),
        (
            "nosuch",
            "there is no stack 'nosuch': stacks/Pulumi.nosuch.yaml does not exist; known are ",
        ),
    ],
)
@pytest.mark.parametrize("words", ["status -s", "doctor -s", "connect -s"])
def test_a_name_that_no_stack_has_is_one_line(words: str, name: str | bytes, problem: str) -> None:
    done = CliRunner().invoke(app, [*words.split(), os.fsdecode(name)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("name", [LONG, "", "a\nb", "ünï", b"\xff"])
@pytest.mark.parametrize("verb", ["connect", "logs", "suspend", "wake", "diagnose"])
def test_a_name_that_no_berth_has_is_one_line(verb: str, name: str | bytes) -> None:
    done = CliRunner().invoke(app, [verb, os.fsdecode(name)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.match(r"error: no stack of stacks/ has a berth '.*'; .*\n\Z", done.stderr)


@pytest.mark.parametrize("name", [LONG, "", "a\nb", "ünï"])
def test_a_check_of_a_name_that_no_stack_has(name: str) -> None:
    done = CliRunner().invoke(app, ["check", name])
    assert (done.exit_code, done.stdout) == (2, "")
    assert [line[:1] for line in done.stderr.splitlines()] == ["✗", " "]


MANY_VALUES = (
    ":8: has more than 100000 values once its anchors are resolved; write the values that are"
    " needed in place of the anchors"
)
BOMB = "\n".join(
    ["config:", "  berth:environment:", "    a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    + [
        f"    {name}: &{name} [{', '.join([f'*{before}'] * 9)}]"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe\x00\x01", ": is not text: a stack's file is YAML in UTF-8; save it as UTF-8"),
        (
            b"",
            (
                ": has no `config:`; write `config:` and under it `berth:environment:` or"
                " `berth:engineer:`"
            ),
        ),
        (
            b"- a\n- b\n",
            (
                ": has no `config:`; write `config:` and under it `berth:environment:` or"
                " `berth:engineer:`"
            ),
        ),
        (
            b"a" * (2 << 20),
            ": is larger than 1 MiB, which no stack's file is; name the stack's own file",
        ),
        (b"config: " + b"[" * 5000, ":1: is nested more than 50 levels deep; write it with fewer"),
        (BOMB.encode(), MANY_VALUES),
        (None, ": is not a file; name a file, not a folder or a device"),
    ],
    ids=["binary", "empty", "list", "huge", "deep", "anchors", "folder"],
)
def test_a_file_that_is_no_stack_is_one_line(
    tmp_path: Path, content: bytes | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\nstackConfigDir: stacks\n")
    file = tmp_path / "stacks" / "Pulumi.odd.yaml"
    file.parent.mkdir()
    file.mkdir() if content is None else file.write_bytes(content)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["check", "odd"])
    assert (done.exit_code, done.stdout, done.stderr) == (
        2,
        "",
        f"✗ odd\n  stacks/Pulumi.odd.yaml{problem}\n",
    )
    done = CliRunner().invoke(app, ["status", "-s", "odd"])
    assert (done.exit_code, done.stderr) == (2, f"error: stacks/Pulumi.odd.yaml{problem}\n")


def test_a_pipe_as_a_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "stacks").mkdir()
    os.mkfifo(tmp_path / "stacks" / "Pulumi.odd.yaml")
    done = berth("check", folder=tmp_path)
    problem = "is not a file; name a file, not a folder or a device"
    assert (done.returncode, done.stderr) == (2, f"✗ odd\n  stacks/Pulumi.odd.yaml: {problem}\n")


# Ctrl-C at the import of module number N: an audit hook sends the signal, without any clock.
INTERRUPT = """
import os, signal, sys
from berth.cli.__main__ import main
left = {number}
def hook(event, _arguments):
    global left
    if event == "import":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
sys.argv = ["berth", *{words!r}]
main()
"""


def interrupted(number: int, words: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT.format(number=number, words=words)],
        cwd=CLONE,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [2, 30, 150])
def test_ctrl_c_while_the_command_starts(number: int) -> None:
    assert interrupted(number, ["check", "lab"]) == (130, "interrupted\n")


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    code, text = in_shell("trap '' INT; berth check lab & kill -INT $!; wait $!")
    assert (code, text) == (0, "✓ lab (environment, 2 policies kept)\n")


def test_a_stacks_file_names_the_stack() -> None:
    done = CliRunner().invoke(app, ["connect", "-s", "stacks/Pulumi.lab.yaml"])
    assert (
        done.stderr == "error: stack lab is an environment; name a berth on it: bob, carol, train\n"
    )
