"""etcd or the API server killed in the middle of an update of many berths, and brought back."""

import random
import threading
import time

from berth.components.core.words import counted
from chaos.case import Outcome, Part, crashes, strays
from chaos.fleet import ENV, Fleet, environment
from chaos.proxy import Request

BERTHS = 100

_LONGEST_SECONDS = 900.0
_UP = ("pulumi", "up", "-s", ENV, "--yes", "--skip-preview")
# Without checkpoints of the state, which a removal between two cases does not need.
_REMOVAL = ("berth", "up", "-s", ENV, "--yes", "--allow-destroy")


class Restarts(Part):
    """A component of the control plane dies in the middle of a large update."""

    name = "restarts"
    title = (
        "SIGKILL to etcd or the API server in the middle of an update that makes many berths; back"
        " after seconds"
    )
    good = "the update goes on to its end, or one more `pulumi up` brings everything in order"
    cases = 20

    def __init__(self, berths: int = BERTHS) -> None:
        self._names = [f"eng-{number:03}" for number in range(berths)]

    def prepare(self, fleet: Fleet) -> None:
        """Begin with the environment as it is: its nodes have room for all berths."""

    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Kill a component at one write of an update, which makes the berths or changes them."""
        component = chance.choice(["etcd", "kube-apiserver"])
        away = chance.uniform(1.0, 10.0)
        at = chance.randrange(1, 6 * len(self._names))
        settings = environment(fleet.kubeconfig, fleet.lab.home.charts, ["bob", *self._names])
        fleet.project.write(ENV, environment=settings)
        killer = _Killer(fleet, component, at, away)
        mark = f"restarts-{number}-{time.monotonic_ns()}"
        began = time.monotonic()
        with fleet.proxy.disturbed(after=killer.after):
            ended = fleet.run(mark, *_UP, seconds=_LONGEST_SECONDS)
        took = time.monotonic() - began
        killer.join()
        problems = crashes(ended)
        if ended.code != 0:
            fleet.run(mark, "pulumi", "cancel", "-s", ENV, "--yes")
            again = fleet.run(mark, *_UP, seconds=_LONGEST_SECONDS)
            if again.code != 0:
                problems.append(
                    f"the next update exits with {again.code}: {again.text.strip()[-800:]}"
                )
        ready = sum(
            (item.get("status") or {}).get("state") == "ready"
            for item in fleet.lab.get("rayclusters", "-A")["items"]
        )
        if ready < len(self._names) + 1:
            problems.append(f"{ready} of {len(self._names) + 1} RayClusters are ready")
        fleet.project.write(ENV, environment=environment(fleet.kubeconfig, fleet.lab.home.charts))
        fleet.run(mark, *_REMOVAL, seconds=_LONGEST_SECONDS)
        facts = {
            "berths": len(self._names),
            "disturbed": killer.killed,
            "code": ended.code,
            "seconds": round(took),
            "succeeded": ended.code == 0,
        }
        what = f"{component} is killed after write {at}, and back after {away:.1f} s"
        return Outcome(
            f"{component}, {counted(len(self._names), 'berth')}",
            what,
            [*problems, *strays(mark)],
            facts,
        )


class _Killer:
    """Kills a component of the lab at a write, and has the lab repair itself."""

    def __init__(self, fleet: Fleet, component: str, at: int, away: float) -> None:
        self._fleet = fleet
        self._component = component
        self._at = at
        self._away = away
        self._writes = 0
        self._thread = threading.Thread(target=self._restart)
        self.killed = False

    def after(self, request: Request) -> None:
        self._writes += request.writes
        if self._writes == self._at and not self.killed:
            self.killed = True
            self._thread.start()

    def join(self) -> None:
        if self.killed:
            self._thread.join()

    def _restart(self) -> None:
        pid = self._fleet.lab.pids()[self._component]
        self._fleet.lab.run(["kill", "-KILL", str(pid)])
        time.sleep(self._away)
        self._fleet.lab.berth("up", "--no-update", check=False)
