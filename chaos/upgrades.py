"""Upgrades of the KubeRay operator with an edit of all pods in the same update."""

import contextlib
import os
import random
import signal
import time
from typing import Any

from chaos.case import Outcome, Part, crashes, strays
from chaos.fleet import ENV, Fleet, environment

BERTHS = 30

_OLDER = "ray.io/kuberay-version=v1.5.1"
_LONGEST_SECONDS = 900.0
_UP = ("berth", "up", "-s", ENV, "--yes", "--allow-destroy")


class Upgrades(Part):
    """The operator is upgraded, and the image of all berths changes, in one update.

    The operator stands still while its heads are marked as an older version's. The upgrade restarts
    it, and KubeRay takes over such a head with the spec of that moment, without a restart.
    """

    name = "upgrades"
    title = f"KubeRay upgraded, the image of {BERTHS} berths edited, in one `berth up`"
    good = "all pods have the new image"
    cases = 20

    def __init__(self, berths: int = BERTHS) -> None:
        self._names = [f"eng-{number:03}" for number in range(berths)]

    def prepare(self, fleet: Fleet) -> None:
        """Make the berths."""
        self._write(fleet, "before")
        fleet.run("undisturbed", *_UP, seconds=_LONGEST_SECONDS)

    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Mark the heads as an older version's, and upgrade the operator and edit the image."""
        edit = f"case-{number}-{chance.randrange(10**6)}"
        mark = f"{edit}-{time.monotonic_ns()}"
        operator = fleet.lab.pids()["kuberay-operator"]
        os.kill(operator, signal.SIGSTOP)
        try:
            heads = ("pods", "-A", "-l", "ray.io/node-type=head")
            fleet.lab.run(["kubectl", "annotate", *heads, "--overwrite", _OLDER])
            image = self._write(fleet, edit)
            ended = fleet.run(mark, *_UP, seconds=_LONGEST_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):  # the upgrade replaced it
                os.kill(operator, signal.SIGCONT)
        pods = [
            pod["spec"]["containers"][0]["image"]
            for pod in fleet.lab.get("pods", "-A", "-l", "ray.io/cluster")["items"]
            if "deletionTimestamp" not in pod["metadata"]
        ]
        problems = crashes(ended)
        if ended.code:
            problems.append(f"the update exits with {ended.code}: {ended.text.strip()[-800:]}")
        if fleet.lab.pids()["kuberay-operator"] == operator:
            problems.append("the operator was not restarted")
        if old := len(pods) - pods.count(image):
            problems.append(f"{old} of {len(pods)} pods have another image")
        facts = {"berths": len(self._names) + 1, "pods": len(pods), "seconds": round(ended.seconds)}
        return Outcome(f"{len(self._names)} berths", edit, [*problems, *strays(mark)], facts)

    def _write(self, fleet: Fleet, edit: str) -> str:
        """Write settings with an edit of the operator and of the image; return the image."""
        image = f"registry.example.com/ray:{edit}"
        settings: dict[str, Any] = environment(
            fleet.kubeconfig, fleet.lab.home.charts, ["bob", *self._names]
        )
        settings["operators"]["kuberay"]["values"] = {"env": [{"name": "EDIT", "value": edit}]}
        settings["defaults"]["image"] = image
        fleet.project.write(ENV, environment=settings)
        return image
