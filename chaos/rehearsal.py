"""`make rehearse`: seeded random edits of an environment in a lab, applied, and their plans scored.

An update has edits of several engineers and of several parts of the environment: each RayCluster
is judged on its own. A wrong plan is tried again with half of its edits, until the smallest set is
found. Exit code 1 if a plan missed a loss, if an update failed, or if too many losses that plans
foresaw did not happen. Ctrl-C ends with the figures so far.
"""

import argparse
import contextlib
import json
import math
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from berth.cli.pulumi.update.score import Score, Wrong, losses_of_pods, observed_clusters
from berth.components.cluster.api import ClusterApi
from berth.components.core import fast_yaml
from berth.components.hardware.names import POOL_LABEL
from chaos.case import Goal, Outcome, chance_of
from chaos.lanes import lab_of
from chaos.record import Figures, continued, err, figures_of, joined, summarize, write
from tests.lab.conftest import Lab
from tests.lab.project import HEAD, SMALL, Project, Settings, environment_settings, eventually

STACK = "rehearsal"
GUESTS = "guests"
ENGINEERS = 30
_TABLE: dict[str, list[Any]] = fast_yaml.load_file(Path(__file__).with_suffix(".yaml"))
_OF_ENGINEERS = "engineers."
_OF_ENVIRONMENT = 6
"""Largest number of edits of the environment in an update."""
_CHARTS = "CHARTS"
_OLDER = "OLDER"
"""Words in the table for the folders of the lab's charts, and of older versions of them."""
_OLDER_VERSIONS = {"kuberay-operator": "1.5.1", "gpu-operator": "v26.3.3", "dranet": "1.3.0"}

Values = Mapping[str, Any]
"""Values by the path of their setting."""


class Edits(Goal):
    """Edits whose plans missed nothing."""

    name = "edits"
    title = "Random edits by `berth up`"
    good = "its plan names all lost pods and replaced resources"
    cases = 1000


class Losses(Goal):
    """Losses that plans foresaw."""

    name = "foreseen losses"
    title = "Losses that plans name"
    good = "pods go"
    bar = 0.98
    cases = 1


class Edit(NamedTuple):
    """Edit of one setting."""

    path: str
    before: Any
    after: Any

    @property
    def of_environment(self) -> bool:
        """The setting is not an engineer's."""
        return not self.path.startswith(_OF_ENGINEERS)

    def __str__(self) -> str:
        return f"{self.path}: {json.dumps(self.before)} → {json.dumps(self.after)}"


class Tried(NamedTuple):
    """Edits that were applied."""

    base: Values
    """Settings before."""
    edits: Sequence[Edit]
    score: Score | None
    """None for edits that berth refused."""
    seconds: float

    @property
    def wrong(self) -> list[Wrong]:
        """Wrong predictions."""
        return [*self.score.missed, *self.score.false_alarms] if self.score else []

    def __str__(self) -> str:
        verdict = f"right about {self.score.right}; {self.score}" if self.score else "refused"
        return f"{'; '.join(map(str, self.edits))}: {verdict} ({self.seconds:.0f} s)"


class Rehearsal:
    """An environment in a lab, with the edits that it has had."""

    def __init__(self, folder: Path, lab: Lab, engineers: int = ENGINEERS) -> None:
        self._project = Project.make(folder, lab)
        self._lab = lab
        names = [f"eng-{number:02}" for number in range(engineers)]
        self._choices = {
            path.replace("ENGINEER", name): values
            for path, values in _TABLE.items()
            for name in (names if "ENGINEER" in path else [""])
        }
        self._names = names
        self._older = folder / "older"
        for chart, version in _OLDER_VERSIONS.items():
            copied = shutil.copytree(lab.home.charts / chart, self._older / chart) / "Chart.yaml"
            copied.write_text(
                re.sub(r"(?m)^version: .*", f"version: {version}", copied.read_text())
            )
        self._values: Values = {path: values[0] for path, values in self._choices.items()}
        self._write(self._values)
        self._project.up(STACK)
        guests = self._project.folder / "guests.json"
        guests.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": _guests()}))
        self._project.run("kubectl", "apply", "-f", str(guests))
        head_and_worker = 2
        eventually(
            lambda: len(self._project.get("pods", "-n", GUESTS)) == head_and_worker,
            "the guest has its pods",
        )
        self._api = ClusterApi(lab.kubeconfig.read_text())
        self._seen = observed_clusters(self._api) or {}

    def chosen(self, chance: random.Random) -> list[Edit]:
        """Return edits of different parts of the environment, and one each of some engineers."""
        environment = [path for path in self._choices if not path.startswith(_OF_ENGINEERS)]
        parts = {path.split(".")[0]: path for path in chance.sample(environment, len(environment))}
        paths = list(parts.values())[: chance.randint(2, _OF_ENVIRONMENT)]
        for name in sorted(
            chance.sample(self._names, chance.randint(len(self._names) // 2, len(self._names)))
        ):
            whole = f"{_OF_ENGINEERS}{name}"
            own = [path for path in self._choices if path == whole or path.startswith(f"{whole}.")]
            paths.append(whole if self._values[whole] is None else chance.choice(own))
        edits = []
        for path in paths:
            before = self._values[path]
            others = [value for value in self._choices[path] if value != before]
            edits.append(Edit(path, before, chance.choice(others)))
        return edits

    def update(self, edits: Sequence[Edit]) -> Iterator[Tried]:
        """Apply edits, in halves where berth refuses them together."""
        tried = self.apply(self._values, edits)
        if tried.score or len(edits) == 1:
            yield tried
            return
        half = len(edits) // 2
        yield from self.update(edits[:half])
        yield from self.update(edits[half:])

    def smallest(self, tried: Tried) -> Iterator[Tried]:
        """Yield the smallest sets of edits whose plans are wrong, too."""
        edits = tried.edits
        names = {wrong.name for wrong in tried.wrong}
        suspects = [
            edit for edit in edits if edit.of_environment or names & set(edit.path.split("."))
        ]
        half = len(edits) // 2
        splits: list[list[Sequence[Edit]]] = [[suspects]] if len(suspects) < len(edits) else []
        splits += [[edits[:half], edits[half:]]] if len(edits) > 1 else []
        for split in splits:
            repeated = [self._again(tried.base, part) for part in split]
            wrong = [again for again in repeated if again.wrong]
            for again in wrong:
                yield from self.smallest(again)
            if wrong:
                return
        yield tried

    def _again(self, base: Values, edits: Sequence[Edit]) -> Tried:
        self.apply(base, ())
        return self.apply(base, edits)

    def apply(self, base: Values, edits: Sequence[Edit]) -> Tried:
        """Apply edits to settings, and judge the plan."""
        began = time.monotonic()
        values = {**base, **{edit.path: edit.after for edit in edits}}
        self._write(values)
        done = self._project.run(
            "berth", "up", "-s", STACK, "--yes", "--allow-destroy", "--json", check=False
        )
        score = None
        if done.returncode == 2:  # noqa: PLR2004 - bad input
            self._write(self._values)
        else:
            self._values = values
            score = self._judged(done.returncode, done.stdout, done.stderr)
        return Tried(base, edits, score, time.monotonic() - began)

    def _judged(self, code: int, stdout: str, stderr: str) -> Score:
        """Return the score, with losses after the end of the update before."""
        before = self._seen
        self._seen = observed_clusters(self._api) or {}
        if code:
            errors = [line for line in stderr.splitlines() if line.startswith("error: ")]
            return Score(0, [], [Wrong("", error) for error in errors or [f"exit code {code}"]], [])
        document = json.loads(stdout)
        plan = document.get("plan") or {
            "right": 0,
            "lost": [],
            "missed": [],
            "falseAlarms": [],
            "foreseen": [],
        }
        missed = [Wrong(**wrong) for wrong in plan["missed"]]
        false = [Wrong(**wrong) for wrong in plan["falseAlarms"]]
        late = [
            Wrong(key[1], f"{loss} after an update")
            for key, loss in losses_of_pods(before, self._seen).items()
            if loss and key[1] not in (*plan["lost"], *plan["foreseen"])
        ]
        return Score(plan["right"], plan["lost"], [*missed, *late], false)

    def _write(self, values: Values) -> None:
        profile = {"kind": "time-slicing"}
        settings = environment_settings(
            self._lab,
            {
                "cpu": {"machineType": "n2-standard-96"},
                "dev": {},
                "train": {"machineType": "g2-standard-96"},
                "queue": {"machineType": "g2-standard-96"},
                "claims": {
                    "machineType": "a4-highgpu-8g",
                    "gpuAllocation": "dra",
                    "rdma": "networks",
                },
            },
            "gpuDra",
            network={},
            defaults={"head": HEAD | {"pool": "cpu"}, "worker": SMALL["worker"] | {"pool": "dev"}},
            sharing={"two": dict(profile), "four": dict(profile)},
        )
        given = {path: value for path, value in values.items() if value is not None}
        for path in sorted(given):  # what holds others comes first
            _set(settings, path, given[path])
        for name in self._names:
            if values[f"{_OF_ENGINEERS}{name}"] is None:
                del settings["engineers"][name]
        text = (
            json.dumps(settings)
            .replace(_CHARTS, str(self._lab.home.charts))
            .replace(_OLDER, str(self._older))
        )
        self._project.write(STACK, environment=json.loads(text))


def _guests() -> list[dict[str, Any]]:
    """Return a RayCluster that no stack has, with 6 GPUs of pool `queue`."""

    def group(pool: str, **resources: Any) -> dict[str, Any]:
        container = {
            "name": "ray",
            "image": "rayproject/ray:2.60.0",
            "resources": {"limits": resources},
        }
        spec = {
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
            "nodeSelector": {POOL_LABEL: pool},
        }
        return {"rayStartParams": {}, "template": {"spec": spec}}

    worker = {"groupName": "w", "replicas": 1, "minReplicas": 1, "maxReplicas": 1}
    worker |= group("queue", cpu="1", memory="4Gi", **{"nvidia.com/gpu": "6"})
    spec = {
        "rayVersion": "2.60.0",
        "headGroupSpec": group("cpu", **HEAD),
        "workerGroupSpecs": [worker],
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GUESTS}},
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": "guest", "namespace": GUESTS},
        }
        | {"spec": spec},
    ]


def _set(settings: Settings, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for part in way:
        settings[part] = dict(settings.get(part) or {})
        settings = settings[part]
    settings[last] = value


def outcomes(tried: Tried, smallest: Sequence[Tried]) -> tuple[list[Outcome], list[Outcome]]:
    """Return the outcomes of an update's edits, and of the losses that its plan foresaw.

    Args:
        tried: the update.
        smallest: the smallest sets of its edits whose plans are wrong, of which the first edits
            count.
    """
    if tried.score is None:
        return [], []
    missed = {found.edits[0].path: found.score.missed for found in smallest if found.score}
    edits = [
        Outcome(
            edit.path.split(".")[0], str(edit), [wrong.text for wrong in missed.get(edit.path, ())]
        )
        for edit in tried.edits
    ]
    unforeseen = {wrong.name for wrong in tried.score.missed}
    losses_seen = [
        Outcome("RayCluster", name, []) for name in tried.score.lost if name not in unforeseen
    ]
    alarms = [
        Outcome("RayCluster", "; ".join(map(str, found.edits)), [wrong.text])
        for found in smallest
        for wrong in (found.score.false_alarms if found.score else ())
    ]
    return edits, [*losses_seen, *alarms]


def run(
    rehearsal: Rehearsal, options: argparse.Namespace, earlier: Mapping[str, Figures]
) -> Iterator[dict[str, Figures]]:
    """Yield the figures after each update, those of earlier runs included."""
    count = earlier[Edits.name]["cases"] if earlier else 0
    chance = chance_of(options.seed, STACK, count)
    deadline = time.monotonic() + 60 * (options.minutes or math.inf)
    found: dict[type[Goal], list[tuple[int, Outcome, float]]] = {Edits: [], Losses: []}
    while count + len(found[Edits]) < options.edits and time.monotonic() < deadline:
        for tried in rehearsal.update(rehearsal.chosen(chance)):
            err.print(str(tried), markup=False)
            smallest = list(rehearsal.smallest(tried)) if tried.wrong else []
            for wrong in smallest:
                err.print(f"smallest: {wrong}", markup=False, style="red")
            for goal, results in zip(found, outcomes(tried, smallest), strict=True):
                begin = (earlier[goal.name]["cases"] if earlier else 0) + len(found[goal])
                found[goal] += [
                    (number, outcome, 0.0) for number, outcome in enumerate(results, begin)
                ]
        later = {
            goal.name: figures_of(goal(), options.seed, results) for goal, results in found.items()
        }
        yield {
            name: joined(earlier[name], part) if earlier else part for name, part in later.items()
        }


def main() -> int:
    """Rehearse in a lab; return the exit code."""
    parser = argparse.ArgumentParser(prog="make rehearse", description=__doc__)
    parser.add_argument(
        "--edits", type=int, default=Edits.cases, help="number of edits; %(default)s"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of all choices; %(default)s")
    parser.add_argument("--minutes", type=float, help="begin no update after that time")
    parser.add_argument("--lab", type=Path, help="use this lab, which stays; by default a new one")
    parser.add_argument("--record", type=Path, help="write the figures into this file")
    parser.add_argument(
        "--resume", action="store_true", help="go on after the edits that the recorded file has"
    )
    options = parser.parse_args()
    figures = earlier = continued([Edits.name, Losses.name], options)
    with (
        contextlib.suppress(KeyboardInterrupt),
        tempfile.TemporaryDirectory() as folder,
        lab_of(Path(folder), options.lab) as lab,
    ):
        for figures in run(Rehearsal(Path(folder) / "project", lab), options, earlier):
            if options.record:
                write(options.record, figures)
    return summarize(figures)


if __name__ == "__main__":
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        signal.signal(interrupt, signal.default_int_handler)
    sys.exit(main())
