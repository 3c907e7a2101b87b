"""Signals at random moments: every verb ends soon, with the signal's exit code, cleaned up."""

import contextlib
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from berth.components.proof import RUN_LABEL
from chaos.case import Outcome, Part, chance_of, crashes, strays
from chaos.fleet import ENV, OWN, Ended, Fleet
from chaos.proxy import Fault, Request

END_SECONDS = 10.0
"""Longest time from the signal to the end of the command."""

_HUNG_SECONDS = 120.0
_KUBECTL = """#!/bin/sh
for word in "$@"; do
    case "$word" in
        *[0-9]:[0-9]*) echo "Forwarding from 127.0.0.1:${word%%:*} -> ${word##*:}" ;;
    esac
done
exec sleep 600
"""
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def _nothing(_fleet: Fleet, _chance: random.Random) -> None:
    pass


def _something_to_do(fleet: Fleet, chance: random.Random) -> None:
    """Change the settings of the engineer's stack, so that an update has work."""
    memory = chance.choice(["2Gi", "3Gi", "4Gi"])
    fleet.project.write(OWN, engineer={"environment": ENV, "worker": {"memory": memory}})


def _there(fleet: Fleet, chance: random.Random) -> None:
    """Bring the engineer's berth up."""
    _something_to_do(fleet, chance)
    # An earlier interrupt may have left deletions that went on without the engine.
    fleet.project.run(
        "pulumi", "refresh", "-s", OWN, "--yes", "--skip-preview", "--clear-pending-creates"
    )
    fleet.project.up(OWN)


def _awake(fleet: Fleet, _chance: random.Random) -> None:
    fleet.suspend(suspended=False)


def _suspended(fleet: Fleet, _chance: random.Random) -> None:
    fleet.suspend(suspended=True)


def _ready(fleet: Fleet, _chance: random.Random) -> None:
    fleet.project.run("berth", "wake", "bob", "--stack", ENV)


def _broken(fleet: Fleet, _chance: random.Random) -> None:
    """Kill a process of the lab that no other case needs, so that the lab has to be repaired."""
    with contextlib.suppress(KeyError, ProcessLookupError):
        os.kill(fleet.lab.pids()["google-api"], signal.SIGKILL)


@dataclass(frozen=True)
class Verb:
    """A verb that is interrupted.

    Attributes:
        command: the command line.
        seconds: time within which the signal comes, for a verb without an end of its own. None: the
            verb's usual duration, which `prepare` measures.
        codes: exit codes beside the signal's that are right, as the verb's help says.
        before: brings the fleet into the state that the verb needs.
        stack: stack whose lock it may take; "" for none.
        real: let the nodes count as real, whose logs go on and whose ports are forwarded.
    """

    command: tuple[str, ...]
    seconds: float | None = None
    codes: frozenset[int] = frozenset()
    before: Callable[[Fleet, random.Random], None] = _nothing
    stack: str = ""
    real: bool = False


VERBS = {
    "up": Verb(
        ("berth", "up", "-s", OWN, "--yes", "--allow-destroy"), before=_something_to_do, stack=OWN
    ),
    "preview": Verb(("berth", "preview", "-s", OWN), stack=OWN),
    "destroy": Verb(
        ("berth", "destroy", "-s", OWN, "--yes", "--allow-destroy"), before=_there, stack=OWN
    ),
    # Ctrl-C is the end of a watch that people mean.
    "status --watch": Verb(
        ("berth", "status", "-s", ENV, "--watch", "--interval", "0.5"), 4.0, frozenset({0})
    ),
    "suspend": Verb(("berth", "suspend", "bob", "--stack", ENV, "--yes"), before=_awake),
    "wake": Verb(("berth", "wake", "bob", "--stack", ENV), before=_suspended),
    "verify gpu": Verb(("berth", "verify", "gpu", "-s", ENV)),
    "connect": Verb(
        ("berth", "connect", "bob", "--stack", ENV), 4.0, frozenset({0}), before=_ready, real=True
    ),
    "logs": Verb(
        ("berth", "logs", "bob", "--stack", ENV, "--follow"), 4.0, before=_ready, real=True
    ),
    # No Ray answers: the verb is interrupted on its way to the head.
    "submit": Verb(
        ("berth", "submit", "bob", "--stack", ENV, "--", "sleep", "600"),
        4.0,
        before=_ready,
        real=True,
    ),
    "lab up": Verb(("berth", "lab", "up", "--no-update"), before=_broken),
}


class Interrupts(Part):
    """Signals at random moments."""

    name = "signals"
    title = "SIGINT or SIGTERM to a verb at a random moment"
    good = (
        f"ends within {END_SECONDS:.0f} s, with the signal's exit code, without a stack trace; no"
        " Job, lock, child process or credential file is left"
    )
    cases = 50 * len(VERBS)

    def __init__(self, verbs: tuple[str, ...] = tuple(VERBS)) -> None:
        self._verbs = verbs
        self._usual: dict[str, float] = {}

    def prepare(self, fleet: Fleet) -> None:
        """Measure how long each verb takes undisturbed: signals come within that time."""
        for name in self._verbs:
            verb = VERBS[name]
            if verb.seconds is None:
                verb.before(fleet, chance_of(0, self.name, 0))
                self._usual[name] = fleet.run("usual", *verb.command).seconds

    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Interrupt one verb."""
        name = self._verbs[number % len(self._verbs)]
        verb = VERBS[name]
        sent = chance.choice(list(_CODES))
        # A terminal's Ctrl-C reaches the whole group.
        to_group = chance.choice([False, True])
        moment = chance.uniform(0.02, verb.seconds or self._usual[name])
        verb.before(fleet, chance)
        whom = "its group" if to_group else "it alone"
        what = f"{name}: {signal.Signals(sent).name} to {whom} after {moment:.2f} s"
        mark = f"signals-{number}-{time.monotonic_ns()}"
        with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
            more = _forwarding(fleet, Path(temporary)) if verb.real else {}
            with fleet.proxy.disturbed(_as_real if verb.real else None):
                process = fleet.start(
                    mark, *verb.command, TMPDIR=temporary, XDG_RUNTIME_DIR=temporary, **more
                )
                early = process.end(moment)
            if early is not None:
                return Outcome(
                    name,
                    f"{what}: had ended",
                    crashes(early),
                    {"code": early.code, "disturbed": False},
                )
            (os.killpg if to_group else os.kill)(process.process.pid, sent)
            began = time.monotonic()
            ended = process.end(_HUNG_SECONDS)
            took = time.monotonic() - began
            if ended is None:
                process.process.kill()
                return Outcome(
                    name, what, [f"does not end within {_HUNG_SECONDS:.0f} s", *strays(mark)]
                )
            if _before_berth(ended):
                return Outcome(
                    name, f"{what}: Python was starting", strays(mark), {"disturbed": False}
                )
            problems = _problems(fleet, verb, sent, ended, took)
            # The lab goes on, with the processes that it has recorded.
            problems += strays(mark, lasting=fleet.lab.pids().values() if name == "lab up" else ())
            problems += [f"file left: {path.name}" for path in _credentials(Path(temporary))]
        if verb.stack:
            fleet.unlock(verb.stack)
        return Outcome(name, what, problems, {"code": ended.code, "seconds": round(took, 2)})


def _before_berth(ended: Ended) -> bool:
    """Return whether a signal came while Python itself started, which then prints its own trace."""
    return ended.code == 1 and "<frozen site>" in ended.stderr and "berth/cli" not in ended.stderr


def _credentials(folder: Path) -> list[Path]:
    """Return berth's own files in a folder, and other programs' files with a private key."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if path.match("berth-*") or b"PRIVATE KEY" in path.read_bytes()]


def _as_real(request: Request) -> Fault | None:
    """Hide that nodes are simulated, and give their pods a log."""
    path = request.path.partition("?")[0]
    if path == "/api/v1/nodes":
        return Fault("403")
    return Fault("endless") if path.endswith("/log") else None


def _forwarding(fleet: Fleet, folder: Path) -> dict[str, str]:
    """Put a kubectl first on PATH that forwards no port, and never ends."""
    program = folder / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(_KUBECTL)
    program.chmod(0o700)
    return {"PATH": f"{program.parent}:{fleet.lab.env['PATH']}"}


def _problems(
    fleet: Fleet, verb: Verb, sent: signal.Signals, ended: Ended, took: float
) -> list[str]:
    problems = crashes(ended)
    if took > END_SECONDS:
        problems.append(f"ended after {took:.1f} s")
    # Before its first import and after its last step, a verb leaves signals to the system.
    right = {_CODES[sent], -sent, *verb.codes}
    finished = ended.code == 0 and bool(ended.stdout.strip())
    if ended.code not in right and not finished:
        problems.append(f"exit code {ended.code}: {ended.text.strip()[-600:]}")
    if verb.stack and (locks := fleet.locks(verb.stack)):
        problems.append(
            f"locks left: {', '.join(path.name for path in locks)}; {ended.text.strip()[-600:]}"
        )
    if verb.command[1] == "verify":
        left = fleet.lab.get("namespaces,jobs", "-A", "-l", RUN_LABEL)["items"]
        # A second signal, and 8 s, end a clean-up; what the API server is deleting by then goes.
        staying = [item for item in left if "deletionTimestamp" not in item["metadata"]]
        names = [f"{item['kind']} {item['metadata']['name']}" for item in staying]
        if names:
            problems.append(f"left: {', '.join(names)}; {ended.text.strip()[-600:]}")
            fleet.lab.run(
                ["kubectl", "delete", "namespace", "berth-verify", "--ignore-not-found"],
                check=False,
            )
    return problems
