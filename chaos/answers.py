"""Bad answers of the API server, and its outages, while berth works."""

import random
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from chaos.case import Outcome, Part, crashes, strays
from chaos.fleet import ENV, OWN, Ended, Fleet
from chaos.proxy import KINDS, Fault, Request

SHARE = 0.1
"""Part of the answers that is disturbed."""

OUTAGE_SECONDS = 60.0

_LONGEST_SECONDS = 240.0
_WATCH_SECONDS = 4.0
_INTERRUPTED = 130
_CAUSE = re.compile(
    r"API server|does not answer|server is"
    r" busy|TooManyRequests|ServiceUnavailable|[Cc]onnection|EOF"
    r"|IncompleteRead|Response ended|broken|timed? ?out|not in time"
)


@dataclass(frozen=True)
class Verb:
    """A command under disturbance.

    Attributes:
        command: the command line.
        before: settings that it needs.
        ends: whether it ends of its own; a watch is interrupted.
        latest: seconds after its start in which an outage begins.
    """

    command: tuple[str, ...]
    before: Callable[[Fleet, int], None] = lambda _fleet, _number: None
    ends: bool = True
    latest: float = 4.0


def _edit(fleet: Fleet, number: int) -> None:
    """Change the settings at every case, so that the update has something to do."""
    fleet.project.write(
        OWN, engineer={"environment": ENV, "worker": {"memory": f"{2 + number % 3}Gi"}}
    )


VERBS = {
    "up": Verb(("pulumi", "up", "-s", OWN, "--yes", "--skip-preview"), _edit),
    "status": Verb(("berth", "status", "-s", ENV)),
    "status --watch": Verb(
        ("berth", "status", "-s", ENV, "--watch", "--interval", "0.5"), ends=False
    ),
    "suspend": Verb(
        ("berth", "suspend", "bob", "--stack", ENV, "--yes"),
        lambda fleet, _: fleet.suspend(suspended=False),
    ),
    "wake": Verb(
        ("berth", "wake", "bob", "--stack", ENV), lambda fleet, _: fleet.suspend(suspended=True)
    ),
    "keeper": Verb(
        (
            *(sys.executable, "-m", "berth.components.programs.keeper"),
            *("--selector", f"berth/environment={ENV}", "--dashboard", "http://127.0.0.1:1"),
        ),
        latest=0.2,
    ),
}


class _Disturbed(Part):
    """Part that runs commands under disturbance."""

    def prepare(self, fleet: Fleet) -> None:
        """Begin with the engineer's berth."""
        _up(fleet)

    def begin(self, fleet: Fleet, number: int) -> tuple[str, Verb, str]:
        """Prepare a case; return the command's name, the command, and a mark for its processes."""
        name = list(VERBS)[number % len(VERBS)]
        verb = VERBS[name]
        verb.before(fleet, number)
        return name, verb, f"{self.name}-{number}-{time.monotonic_ns()}"


class Answers(_Disturbed):
    """One answer in ten is an error, breaks off or is late."""

    name = "answers"
    title = f"{SHARE:.0%} of the API server's answers are 429, 503, cut off or late"
    good = "the command succeeds, or ends with an error that names the cause, without a stack trace"
    bar = 0.999
    cases = 1000

    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Run one command under disturbance."""
        name, verb, mark = self.begin(fleet, number)
        done: list[str] = []

        def disturb(request: Request) -> Fault | None:
            if chance.random() >= SHARE:
                return None
            fault = Fault(chance.choice(KINDS), chance.random())
            done.append(
                f"{fault.kind} {request.method} {request.path.partition('?')[0].rpartition('/')[2]}"
            )
            return fault

        with fleet.proxy.disturbed(disturb):
            ended = _ended(fleet, mark, verb, _WATCH_SECONDS)
        outcome = _outcome(name, f"{name}: {', '.join(done) or 'no fault'}", mark, verb, ended)
        outcome.facts["disturbed"] = bool(done)
        return outcome


class Outages(_Disturbed):
    """The API server is away for a minute."""

    name = "outages"
    title = (
        f"the API server refuses connections for {OUTAGE_SECONDS:.0f} s, from a random moment on"
    )
    good = (
        "the command waits and succeeds, or ends with an error that names the cause, without a"
        " stack trace"
    )
    bar = 0.999
    cases = 60
    seconds = OUTAGE_SECONDS

    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Run one command, with an outage."""
        name, verb, mark = self.begin(fleet, number)
        moment = chance.uniform(0.0, verb.latest)
        back = threading.Event()

        def outage() -> None:
            time.sleep(moment)
            with fleet.proxy.down():
                time.sleep(self.seconds)
            back.set()

        thread = threading.Thread(target=outage)
        thread.start()
        try:
            ended = _ended(fleet, mark, verb, moment + self.seconds + _WATCH_SECONDS)
        finally:
            thread.join()
        outcome = _outcome(name, f"{name}: outage after {moment:.1f} s", mark, verb, ended)
        outcome.facts["disturbed"] = ended is None or ended.seconds > moment
        return outcome


def _up(fleet: Fleet) -> None:
    """Bring the engineer's berth up, and give the keeper something to look at."""
    _edit(fleet, -1)
    fleet.project.up(OWN)
    fleet.lab.run(["kubectl", "annotate", "namespace", "berth-bob", "berth/idle=2h", "--overwrite"])


def _ended(fleet: Fleet, mark: str, verb: Verb, watch_seconds: float) -> Ended | None:
    """Run a command; None for one that hangs."""
    running = fleet.start(mark, *verb.command)
    if not verb.ends:
        ended = running.end(watch_seconds)
        if ended is not None:
            return ended
        running.process.send_signal(signal.SIGINT)
    ended = running.end(_LONGEST_SECONDS)
    if ended is None:
        running.process.kill()
    return ended


def _outcome(name: str, what: str, mark: str, verb: Verb, ended: Ended | None) -> Outcome:
    if ended is None:
        return Outcome(name, what, [f"does not end within {_LONGEST_SECONDS:.0f} s", *strays(mark)])
    problems = crashes(ended)
    # A watch that is interrupted before its first picture ends with 130.
    succeeded = ended.code == 0 or (ended.code == _INTERRUPTED and not verb.ends)
    if not succeeded and not _CAUSE.search(ended.text):
        problems.append(f"exit code {ended.code}, and no cause: {ended.text.strip()[-800:]}")
    if ended.code < 0:
        problems.append(f"killed by signal {-ended.code}")
    facts = {"code": ended.code, "seconds": round(ended.seconds, 1), "succeeded": succeeded}
    return Outcome(name, what, [*problems, *strays(mark)], facts)
