"""SIGKILL in the middle of a Helm upgrade of an operator."""

import json
import random
import time
from typing import Any

from berth.components.cluster.api import ClusterApi
from berth.components.operators import KubeRay
from berth.components.operators.record import revisions_of
from chaos.case import Outcome, Part, chance_of, crashes, strays
from chaos.fleet import ENV, Fleet, environment
from chaos.kills import ORPHANS, Boundary, boundaries, update_killed

_RELEASE = KubeRay.release
_ANNOTATION = "berth-chaos/edit"
_UP = ("pulumi", "up", "-s", ENV, "--yes", "--skip-preview")
_BETWEEN: tuple[tuple[str, ...], ...] = ((), ("pulumi", "refresh", "-s", ENV, "--yes"))
"""Commands between the kill and the next update: none, or a refresh, which reads the record."""


class Releases(Part):
    """SIGKILL at write boundaries of a Helm upgrade, with other settings or a refresh after it."""

    name = "releases"
    title = "SIGKILL to the same programs during a Helm upgrade"
    good = (
        "after the same two commands, the operator has the settings' values, and a preview has"
        " nothing to do"
    )
    cases = 200

    def __init__(self) -> None:
        self._boundaries: list[Boundary] = []

    def prepare(self, fleet: Fleet) -> None:
        """Count the writes of an undisturbed upgrade."""
        writes: list[str] = []
        _settings(fleet, "undisturbed")
        with fleet.proxy.disturbed(
            after=lambda request: writes.append(request.path) if request.writes else None
        ):
            fleet.project.up(ENV)
        self._boundaries = boundaries(len(writes))
        chance_of(0, self.name, 0).shuffle(self._boundaries)

    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Kill a program at one boundary, and go on as a person would."""
        boundary = self._boundaries[number % len(self._boundaries)]
        between = chance.choice(_BETWEEN)
        before = _edit(fleet)
        after = chance.choice((f"case-{number}", before))
        mark = f"releases-{number}-{time.monotonic_ns()}"
        _settings(fleet, f"case-{number}")
        killed = update_killed(
            fleet, mark, _UP, write=boundary.write, target=boundary.target, moment=boundary.moment
        )
        left = _status(fleet)
        problems = crashes(killed)
        fleet.run(mark, "pulumi", "cancel", "-s", ENV, "--yes")
        if between:
            fleet.run(mark, *between)
        _settings(fleet, after)
        again = fleet.run(mark, *_UP)
        if again.code != 0:
            problems.append(f"the next update exits with {again.code}: {again.text.strip()[-800:]}")
        if (status := _status(fleet)) != "deployed":
            problems.append(f"the release is {status}")
        if (edit := _edit(fleet)) != after:
            problems.append(f"the operator has edit {edit!r} in place of {after!r}")
        problems += [f"not done: {rest}" for rest in _planned(fleet)]
        # The plugin of an engine that was killed goes on with Helm's operation beside the next
        # update.
        problems += strays(mark, ORPHANS if boundary.target == "engine" else ())
        facts = {
            "disturbed": killed.code != 0,
            "code": killed.code,
            "seconds": round(again.seconds, 1),
            "left": left,
        }
        then = "refreshed" if between else "not refreshed"
        return Outcome(
            left,
            f"{boundary}; {then}; then the edit is {after!r}, before {before!r}",
            problems,
            facts,
        )


def _settings(fleet: Fleet, edit: str) -> None:
    settings: dict[str, Any] = environment(fleet.kubeconfig, fleet.lab.home.charts)
    settings["operators"]["kuberay"]["values"] = {"annotations": {_ANNOTATION: edit}}
    fleet.project.write(ENV, environment=settings)


def _planned(fleet: Fleet) -> list[str]:
    """Return what a preview would do: resource, operation and changed properties."""
    steps = json.loads(fleet.project.run("pulumi", "preview", "-s", ENV, "--json").stdout)["steps"]
    return [
        f"{step['urn'].rpartition('::')[2]}: {step['op']} {json.dumps(step.get('detailedDiff'))}"
        for step in steps
        if step["op"] != "same"
    ]


def _status(fleet: Fleet) -> str:
    found = revisions_of(ClusterApi(fleet.lab.kubeconfig.read_text()), _RELEASE, _RELEASE)
    return found[-1].status if found else "no release"


def _edit(fleet: Fleet) -> str:
    (deployment,) = fleet.lab.get("deployments", "-n", _RELEASE)["items"]
    return str(
        deployment["spec"]["template"]["metadata"].get("annotations", {}).get(_ANNOTATION, "")
    )
