"""A program in Pulumi's place: it says what a test has it say, on its streams and as engine
events.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from berth.cli.repository.template import TEMPLATE
from tests.forks import PULUMI, python

ROOT = "urn:pulumi:fleet::berth::pulumi:pulumi:Stack::berth-fleet"
PROGRAM = """#!{python}
import glob, json, os, signal, sys, time
folder = {folder!r}
arguments = sys.argv[1:]
arguments.remove("--non-interactive") if "--non-interactive" in arguments else None
if arguments == ["version"]:
    sys.exit(print("v3.250.0"))
log = arguments[arguments.index("--event-log") + 1] if "--event-log" in arguments else ""
with open(os.path.join(folder, "commands"), "a") as commands:
    commands.write(" ".join(arguments).replace(log, "LOG" if log else "") + "\\n")
with open(os.path.join(folder, "answer.json")) as file:
    answer = json.load(file)
for path in glob.glob(os.environ.get("PULUMI_BACKEND_URL", "").removeprefix("file://") + "/.pulumi/stacks/*/*.json"):
    with open(path) as state, open(os.path.join(folder, "planned.json"), "w") as planned:
        planned.write(state.read())
    if answer["refused"]:
        sys.exit("error: " + answer["refused"])
if not log:
    root = {{"urn": {root!r}, "type": "pulumi:pulumi:Stack", "outputs": answer["outputs"]}}
    state = {{"deployment": {{"resources": [root, *answer["resources"]]}}}}
    print(json.dumps(state if arguments[:2] == ["stack", "export"] else answer["outputs"]))
    sys.exit(answer["code"])

import grpc
from pulumi.runtime.proto import events_pb2, events_pb2_grpc

interrupted = []
signal.signal(signal.SIGINT, lambda *_: interrupted.append(1))

def requests():
    for line in answer["events"]:
        yield events_pb2.EventRequest(event=line)
    while answer["waits"] and not interrupted:
        time.sleep(0.01)
    if interrupted:
        yield events_pb2.EventRequest(event=json.dumps(
            {{"diagnosticEvent": {{"severity": "error", "message": "update canceled"}}}}))

channel = grpc.insecure_channel(log.removeprefix("tcp://"))
events_pb2_grpc.EventsStub(channel).StreamEvents(requests())
sys.stderr.write(answer["stderr"])
sys.exit(1 if interrupted else answer["code"])
"""


class FakePulumi:
    """`pulumi` on PATH, in a project of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        (folder / "Pulumi.yaml").write_text("name: berth\n")
        (folder / "__main__.py").write_text((TEMPLATE / "main.txt").read_text(encoding="utf-8"))
        program = folder / "bin" / "pulumi"
        program.parent.mkdir()
        program.write_text(PROGRAM.format(python=python(*PULUMI), folder=str(folder), root=ROOT))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(program.parent))
        monkeypatch.chdir(folder)
        self.says()

    def says(
        self,
        *events: Mapping[str, Any],
        recording: Path | None = None,
        stderr: str = "",
        code: int = 0,
        outputs: Mapping[str, Any] | None = None,
        resources: Sequence[Mapping[str, Any]] = (),
        waits: bool = False,
        refused: str = "",
    ) -> None:
        """Set what the next commands say; with `waits` they end only when interrupted.

        `outputs` and `resources` are in the state. With `refused`, a plan against another state
        than the backend's fails.
        """
        lines = recording.read_text(encoding="utf-8").splitlines() if recording else []
        lines += [json.dumps(event) for event in (*events, {"summaryEvent": {"resourceChanges": {}}})]
        state = {"outputs": outputs or {}, "resources": list(resources)}
        answer = {"events": lines, "stderr": stderr, "code": code, "waits": waits, "refused": refused, **state}
        (self.folder / "answer.json").write_text(json.dumps(answer))

    @property
    def commands(self) -> list[str]:
        """Commands so far; the event log's address is `LOG`, that of the program `PROGRAM`."""
        path = self.folder / "commands"
        text = path.read_text() if path.exists() else ""
        return re.sub(r"--client=\S+", "--client=PROGRAM", text).splitlines()

    @property
    def planned_without_the_rest(self) -> set[str]:
        """URNs in the last state, other than the backend's, that a plan was asked for."""
        found = json.loads((self.folder / "planned.json").read_text())
        return {item["urn"] for item in found["checkpoint"]["latest"]["resources"]}


def errors(*messages: str) -> Iterable[dict[str, Any]]:
    """Events of errors."""
    return [{"diagnosticEvent": {"severity": "error", "message": f"{message}\n"}} for message in messages]
