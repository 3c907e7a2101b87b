"""Programs killed in the middle of an update: the next one brings everything in order."""

import contextlib
import random
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import psutil

from berth.components.core.owner import STACK_LABEL, namespace_of
from chaos.case import Outcome, Part, chance_of, crashes, strays
from chaos.fleet import ENV, OWN, Ended, Fleet, marked
from chaos.proxy import Request

Target = Literal["engine", "program", "plugin"]
TARGETS: tuple[Target, ...] = get_args(Target)
MOMENTS = ("before", "after")

ORPHANS = ("pulumi-language-python ", "pulumi-resource-")
"""Programs that ask every five minutes whether their engine is there (pulumi,
sdk/python/cmd/pulumi-language-python/main.go and pkg/resource/provider/main.go). They hold no lock;
a plugin ends what it was asked to do."""

_END_SECONDS = 90.0
_LONGEST_DELAY = 0.05
_UP = ("pulumi", "up", "-s", OWN, "--yes", "--skip-preview")


@dataclass(frozen=True)
class Boundary:
    """Write boundary at which a program is killed.

    Attributes:
        write: number of the write to the API server, counted from 1.
        moment: before the API server has the write, or after it has answered.
        target: program that is killed.
    """

    write: int
    moment: str
    target: Target

    def __str__(self) -> str:
        return f"the {self.target} is killed {self.moment} write {self.write}"


def boundaries(writes: int) -> list[Boundary]:
    """Return all boundaries of an update with this many writes."""
    return [
        Boundary(write, moment, target)
        for write in range(1, writes + 1)
        for moment in MOMENTS
        for target in TARGETS
    ]


class Kills(Part):
    """SIGKILL at write boundaries of a new berth's update."""

    name = "kills"
    title = "SIGKILL to the engine, the program or the Kubernetes plugin, before or after a write"
    good = (
        "after one `pulumi cancel` and one `pulumi up` the cluster has the same objects as after an"
        " undisturbed update; the state knows each of them; no process is left"
    )
    cases = 1050

    def __init__(self) -> None:
        self._wanted: dict[str, Any] = {}
        self._boundaries: list[Boundary] = []
        self._without = b""

    def prepare(self, fleet: Fleet) -> None:
        """Count the writes of an undisturbed update, and keep its objects."""
        fleet.project.write(OWN, engineer={"environment": ENV})
        fleet.unlock(OWN)
        fleet.project.destroy(OWN)
        self._without = fleet.project.state(OWN).read_bytes()
        writes: list[str] = []
        with fleet.proxy.disturbed(
            after=lambda request: writes.append(request.path) if request.writes else None
        ):
            fleet.project.up(OWN)
        self._wanted = own_objects(fleet)
        self._boundaries = boundaries(len(writes))
        # A short campaign has all kinds, too.
        chance_of(0, self.name, 0).shuffle(self._boundaries)
        self._remove(fleet)

    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Kill a program at one boundary, and go on as a person would."""
        boundary = self._boundaries[number % len(self._boundaries)]
        delay = chance.uniform(0.0, _LONGEST_DELAY)
        mark = f"kills-{number}-{time.monotonic_ns()}"
        killer = _Killer(mark, boundary, delay)
        problems: list[str] = []
        with fleet.proxy.disturbed(before=killer.before, after=killer.after):
            killed = fleet.run(mark, *_UP, seconds=_END_SECONDS)
        if killed.stderr == "hung":
            problems.append(f"the update does not end after the {boundary.target} was killed")
        problems += crashes(killed)
        problems += strays(mark, ORPHANS if boundary.target == "engine" else ())
        fleet.run(mark, "pulumi", "cancel", "-s", OWN, "--yes")
        again = fleet.run(mark, *_UP)
        if again.code != 0:
            problems.append(f"the next update exits with {again.code}: {again.text.strip()[-800:]}")
        problems += differences(self._wanted, own_objects(fleet), fleet.known(OWN))
        facts = {
            "disturbed": killer.killed,
            "code": killed.code,
            "seconds": round(again.seconds, 1),
        }
        self._remove(fleet)
        return Outcome(boundary.target, f"{boundary}, {1000 * delay:.0f} ms later", problems, facts)

    def _remove(self, fleet: Fleet) -> None:
        """Remove the engineer's berth, and put its state back to that of none.

        A case does not test a removal, and without the engine it takes a tenth of the CPU.
        """
        namespace = namespace_of(OWN)
        # Gone with the foreground, a RayCluster leaves no pod, for which a namespace would wait.
        gone = ("--all", "--ignore-not-found", "--cascade=foreground")
        fleet.lab.run(["kubectl", "delete", "rayclusters.ray.io", "-n", namespace, *gone])
        outside = {
            item["kind"] for item in self._wanted.values() if "namespace" not in item["metadata"]
        }
        stack = f"{STACK_LABEL}={OWN}"
        fleet.lab.run(
            ["kubectl", "delete", ",".join(sorted(outside)), "-l", stack, "--ignore-not-found"]
        )
        fleet.unlock(OWN)
        fleet.project.state(OWN).write_bytes(self._without)


class _Killer:
    """Kills one program of a case, once."""

    def __init__(self, mark: str, boundary: Boundary, delay: float) -> None:
        self._mark = mark
        self._boundary = boundary
        self._delay = delay
        self._begun = self._answered = 0
        self._lock = threading.Lock()
        self.killed = False

    def before(self, request: Request) -> None:
        if request.writes:
            with self._lock:
                self._begun += 1
                now = self._begun == self._boundary.write
            if now and self._boundary.moment == "before":
                self._kill()

    def after(self, request: Request) -> None:
        if request.writes:
            with self._lock:
                self._answered += 1
                now = self._answered == self._boundary.write
            if now and self._boundary.moment == "after":
                self._kill()

    def _kill(self) -> None:
        time.sleep(self._delay)
        for process in marked(self._mark):
            with contextlib.suppress(psutil.Error):
                if _is(process, self._boundary.target):
                    process.kill()
                    self.killed = True


def _is(process: psutil.Process, target: Target) -> bool:
    words = process.cmdline()
    line = " ".join(words)
    if target == "engine":
        return bool(words) and words[0].endswith("pulumi")
    if target == "program":
        return "pulumi-language-python-exec" in line
    return "pulumi-resource-kubernetes" in line


def differences(
    right: Mapping[str, Any], found: Mapping[str, Any], known: Collection[str]
) -> list[str]:
    """Return what distinguishes objects from those of an undisturbed update and from the state.

    Args:
        right: objects after an undisturbed update, by name.
        found: objects that there are.
        known: names of the objects that the state has.
    """
    problems = [f"missing: {name}" for name in right.keys() - found.keys()]
    problems += [f"orphan: {name}" for name in found.keys() - set(known)]
    problems += [f"beyond the settings: {name}" for name in found.keys() - right.keys()]
    problems += [
        f"differs: {name}: {_first_difference(right[name], found[name])}"
        for name in right.keys() & found.keys()
        if right[name] != found[name]
    ]
    return problems


def update_killed(
    fleet: Fleet,
    mark: str,
    command: Sequence[str],
    *,
    write: int,
    target: Target,
    moment: str = "after",
) -> Ended:
    """Run an update, and kill a program at one of its writes."""
    killer = _Killer(mark, Boundary(write, moment, target), 0.0)
    with fleet.proxy.disturbed(before=killer.before, after=killer.after):
        return fleet.run(mark, *command)


def own_objects(fleet: Fleet, stack: str = OWN) -> dict[str, Any]:
    """Return the objects of a stack that no controller made."""
    return {
        name: item
        for name, item in fleet.objects(stack).items()
        if not item["metadata"].get("owned")
    }


def _first_difference(a: Any, b: Any, path: str = "") -> str:
    """Return the path and the values of the first difference of two objects."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key):
                return _first_difference(a.get(key), b.get(key), f"{path}.{key}")
    return f"{path or '.'} is {str(b)[:200]}, not {str(a)[:200]}"
