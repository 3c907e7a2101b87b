"""The engine killed in the middle of a `berth up` that writes no checkpoints of its state."""

import random
import time
from collections.abc import Sequence
from typing import Any

from berth.cli.pulumi.update.runs import MANY
from chaos.case import Outcome, Part, crashes, strays
from chaos.fleet import ENV, Fleet, environment
from chaos.kills import ORPHANS, differences, own_objects, update_killed

_NAMES = tuple(f"eng-{number:02}" for number in range(MANY))
_WRITES = {True: 6 * len(_NAMES), False: 2 * len(_NAMES)}
"""Writes of an update that makes the berths, and of one that deletes them."""
_UP = ("berth", "up", "-s", ENV, "--yes", "--allow-destroy")


class LargeUpdates(Part):
    """SIGKILL in updates that make or delete many berths, with other settings afterward."""

    name = "large"
    title = (
        f"SIGKILL to the engine in a `berth up` that makes or deletes {MANY} berths; then some"
        " leave the settings"
    )
    good = (
        "the same after `pulumi cancel`, `berth up` and the removal of namespaces that `berth"
        " status` names"
    )
    cases = 100

    def __init__(self) -> None:
        self._undisturbed: dict[int, dict[str, Any]] = {}

    def prepare(self, fleet: Fleet) -> None:
        """Keep the objects of undisturbed updates: all berths, half of them, none."""
        for number in (len(_NAMES), len(_NAMES) // 2, 0):
            _settings(fleet, _NAMES[:number])
            fleet.run("undisturbed", *_UP)
            self._undisturbed[number] = own_objects(fleet, ENV)

    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Kill the engine at one write, change the settings, and go on as a person would."""
        makes = chance.random() < 0.5  # noqa: PLR2004 - a fair coin
        write = chance.randrange(1, _WRITES[makes])
        # Engineers who are removed by a killed update and come back need `pulumi refresh` first.
        rest = chance.choice(list(self._undisturbed)) if makes else 0
        mark = f"large-{number}-{time.monotonic_ns()}"
        if not makes:
            _settings(fleet, _NAMES)
            fleet.run(mark, *_UP)
        _settings(fleet, _NAMES if makes else ())
        killed = update_killed(fleet, mark, _UP, write=write, target="engine")
        problems = crashes(killed) + strays(mark, ORPHANS)
        fleet.run(mark, "pulumi", "cancel", "-s", ENV, "--yes")
        _settings(fleet, _NAMES[:rest])
        again = fleet.run(mark, *_UP)
        if again.code != 0:
            problems.append(f"the next update exits with {again.code}: {again.text.strip()[-800:]}")
        if unknown := fleet.project.status(ENV)["notInState"]:
            fleet.project.run("kubectl", "delete", "namespace", *unknown)
        problems += differences(self._undisturbed[rest], own_objects(fleet, ENV), fleet.known(ENV))
        _settings(fleet, ())
        fleet.run(mark, *_UP)
        facts = {
            "disturbed": killed.code != 0,
            "code": killed.code,
            "seconds": round(again.seconds, 1),
        }
        verb = "makes" if makes else "deletes"
        what = (
            f"killed after write {write} of an update that {verb} berths; {rest} are in the"
            " settings afterward"
        )
        return Outcome(verb, what, problems, facts)


def _settings(fleet: Fleet, names: Sequence[str]) -> None:
    fleet.project.write(
        ENV, environment=environment(fleet.kubeconfig, fleet.lab.home.charts, ["bob", *names])
    )
