"""`make rehearse`: seeded random edits of an environment in a lab, applied, and their plans scored.

A wrong plan of several edits is tried again with each of them alone. Exit code 1 if a plan called
something harmless that cost pods, if an update failed, or if a plan foresaw too many losses that
did not happen. Ctrl-C ends with the figures so far.
"""

import argparse
import contextlib
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from berth.components.core import fast_yaml
from chaos.case import chance_of
from tests.lab.conftest import Lab, brought_up
from tests.lab.project import SMALL, Project, environment_settings

STACK = "rehearsal"
MOST_FALSE_ALARMS = 0.02
_MOST_EDITS = 3
_VALUES: dict[str, list[Any]] = fast_yaml.read(Path(__file__).with_suffix(".yaml"))

Edits = Mapping[str, Any]
"""Values by the path of their setting."""

err = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Rehearsed:
    """Outcome of some edits."""

    edits: Edits
    right: int = 0
    missed: Sequence[str] = ()
    false_alarms: Sequence[str] = ()
    refused: bool = False

    def __str__(self) -> str:
        verdict = "refused" if self.refused else f"right about {self.right}"
        wrong = [*(f"not foreseen: {text}" for text in self.missed), *(f"false: {text}" for text in self.false_alarms)]
        return "; ".join([f"{json.dumps(self.edits)}: {verdict}", *wrong])


class Rehearsal:
    """An environment in a lab, with the edits that it has had."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self._project = Project.make(folder, lab)
        self._lab = lab
        self._values = {path: values[0] for path, values in _VALUES.items()}
        self._write(self._values)
        self._project.up(STACK)

    def case(self, chance: random.Random) -> Iterator[Rehearsed]:
        """Apply a few edits; yield what came of them, and of one of them alone that is wrong."""
        paths = chance.sample(sorted(_VALUES), chance.randint(1, _MOST_EDITS))
        edits = {
            path: chance.choice([value for value in _VALUES[path] if value != self._values[path]]) for path in paths
        }
        before = dict(self._values)
        found = self._apply(edits)
        yield found
        if len(edits) > 1 and (found.missed or found.false_alarms):
            for path, value in edits.items():
                self._apply(before)
                alone = self._apply({path: value})
                if alone.missed or alone.false_alarms:
                    yield alone
                    return

    def _apply(self, edits: Edits) -> Rehearsed:
        values = self._values | dict(edits)
        self._write(values)
        done = self._project.run("berth", "up", "-s", STACK, "--yes", "--allow-destroy", "--json", check=False)
        if done.returncode == 2:  # noqa: PLR2004 - bad input
            self._write(self._values)
            return Rehearsed(edits, refused=True)
        self._values = values
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            return Rehearsed(edits, missed=errors or [f"exit code {done.returncode}"])
        plan = json.loads(done.stdout)["plan"] or {"right": 0, "missed": [], "falseAlarms": []}
        return Rehearsed(edits, plan["right"], plan["missed"], plan["falseAlarms"])

    def _write(self, values: Edits) -> None:
        profile = {"kind": "time-slicing"}
        settings = environment_settings(
            self._lab,
            {"dev": {}},
            "gpu",
            defaults=SMALL | {"worker": SMALL["worker"] | {"pool": "dev"}},
            sharing={"two": dict(profile), "four": dict(profile)},
            engineers={"ann": {}, "ben": {}},
        )
        for path, value in values.items():
            *way, last = path.split(".")
            target = settings
            for part in way:
                target[part] = dict(target.get(part) or {})
                target = target[part]
            if value is not None:
                target[last] = value
        self._project.write(STACK, environment=settings)


def figures(found: Sequence[Rehearsed]) -> tuple[str, bool]:
    """Return the figures of some cases, and whether they are good enough."""
    missed = sum(bool(one.missed) for one in found)
    false_alarms = sum(len(one.false_alarms) for one in found)
    judged = sum(one.right + len(one.missed) + len(one.false_alarms) for one in found)
    share = false_alarms / judged if judged else 0.0
    refused = sum(one.refused for one in found)
    text = (
        f"{len(found)} updates, {refused} refused before they began; {judged} verdicts on RayClusters:"
        f" {missed} updates with something not foreseen, {false_alarms} false alarms ({share:.1%})"
    )
    return text, not missed and share <= MOST_FALSE_ALARMS


def main() -> int:
    """Rehearse in a lab of its own; return the exit code."""
    parser = argparse.ArgumentParser(prog="make rehearse", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found: list[Rehearsed] = []
    with tempfile.TemporaryDirectory() as folder, brought_up(Path(folder) / "lab") as lab:
        rehearsal = Rehearsal(Path(folder) / "project", lab)
        with contextlib.suppress(KeyboardInterrupt):
            for number in range(options.cases):
                for one in rehearsal.case(chance_of(options.seed, STACK, number)):
                    found.append(one)
                    err.print(f"{number}: {one}", markup=False)
    text, good = figures(found)
    sys.stdout.write(f"{text}; seed {options.seed}\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
