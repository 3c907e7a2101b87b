"""A program in Pulumi's place: it says what a test has it say, on its streams."""

import json
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """#!{python} -IS
import json, os, signal, sys, time
folder, arguments = {folder!r}, [word for word in sys.argv[1:] if word != "--non-interactive"]
interrupted = []
signal.signal(signal.SIGINT, lambda *_: interrupted.append(1))
with open(os.path.join(folder, "answer.json")) as file:
    answer = json.load(file)
with open(os.path.join(folder, "commands"), "a") as commands:
    commands.write(" ".join(arguments) + "\\n")
with open(os.path.join(folder, "judged"), "w") as judged:
    judged.write(os.environ.get("BERTH_JUDGED", ""))
if arguments[0] in ("stack", "whoami"):
    known = arguments[1] in ("history", "ls", "--json")
    print(json.dumps(answer[arguments[1] if known else "outputs"]))
    sys.exit(answer["code"])
for line in answer["events"]:
    print(line, flush=True)
while answer["waits"] and not interrupted:
    time.sleep(0.01)
if interrupted:
    print(json.dumps({{"diagnosticEvent": {{"severity": "error", "message": "update canceled"}}}}))
sys.stderr.write(answer["stderr"])
fails = answer["code_of_update"] is not None and answer["failing"] in arguments
updates = "--skip-preview" in arguments and fails
sys.exit(1 if interrupted else answer["code_of_update"] if updates else answer["code"])
"""


class FakePulumi:
    """`pulumi` on PATH, in a project of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        (folder / "Pulumi.yaml").write_text("name: berth\n")
        program = folder / "bin" / "pulumi"
        program.parent.mkdir()
        program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(program.parent))
        monkeypatch.chdir(folder)
        self.says()

    def says(  # noqa: PLR0913 - each is a part of an answer
        self,
        *events: Mapping[str, Any],
        recording: Path | None = None,
        stderr: str = "",
        code: int = 0,
        code_of_update: int | None = None,
        failing: str = "--skip-preview",
        outputs: Mapping[str, Any] | None = None,
        history: Sequence[Mapping[str, Any]] = (),
        stacks: Sequence[str] = (),
        waits: bool = False,
        state: str = "file://~",
    ) -> None:
        """Set what the next commands say; with `waits` they end only when interrupted. Updates with
        the word `failing` end with `code_of_update`.
        """
        lines = recording.read_text(encoding="utf-8").splitlines() if recording else []
        lines += [
            json.dumps(event) for event in (*events, {"summaryEvent": {"resourceChanges": {}}})
        ]
        answer = {
            "events": lines,
            "stderr": stderr,
            "code": code,
            "code_of_update": code_of_update,
            "failing": failing,
            "waits": waits,
            "outputs": outputs or {},
            "history": history,
            "ls": [{"name": stack, "resourceCount": 1} for stack in stacks],
            "--json": {"url": state},
        }
        (self.folder / "answer.json").write_text(json.dumps(answer))

    @property
    def commands(self) -> list[str]:
        """Commands so far."""
        path = self.folder / "commands"
        return path.read_text().splitlines() if path.exists() else []


def errors(*messages: str) -> Iterable[dict[str, Any]]:
    """Events of errors."""
    return [
        {"diagnosticEvent": {"severity": "error", "message": f"{message}\n"}}
        for message in messages
    ]
