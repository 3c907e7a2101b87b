"""`make bench`: cost of an engineer's stack, and its growth with the number of engineers.

It brings a lab of its own up in a temporary folder, with real engine, API server and operator, and
takes it down again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.lab.conftest import Lab, brought_up
from tests.lab.project import Project, Settings, environment_settings

MANY = 100
ROUNDS = 5

err = Console(stderr=True)


@dataclass(frozen=True)
class Ratio:
    """Figure of the benchmark.

    Attributes:
        what: what was compared.
        a: median of the first, in seconds.
        b: median of the second, in seconds.
        goal: the largest ratio that is good, None where there is no goal.
    """

    what: str
    a: float
    b: float
    goal: float | None

    @property
    def ratio(self) -> float:
        return self.a / self.b


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def update(project: Project, stack: str) -> None:
    """Run `pulumi up` alone, the timed part."""
    project.run("pulumi", "up", "-s", stack, "--yes", "--skip-preview")


def environment(lab: Lab, engineers: int) -> Settings:
    pools = {
        "cpu": {"machineType": "n2-standard-128", "nodes": 4},
        "dev": {"machineType": "a4-highgpu-8g", "nodes": 16},
    }
    names = [f"eng-{number}" for number in range(engineers)]
    return environment_settings(
        lab, pools, project="berth-bench", defaults={"wait": {}}, engineers={name: {} for name in names}
    )


def empty_program(folder: Path, lab: Lab) -> Project:
    """Create an empty Pulumi project, which measures Pulumi itself."""
    project = Project.make(folder, lab)
    (folder / "__main__.py").write_text("import pulumi\n")
    project.up("empty")
    return project


def adding_an_engineer(project: Project) -> float:
    """Median time to make an engineer's berth from its own stack."""
    project.write("alice", engineer={"environment": "env"})
    times = []
    project.up("alice")
    for _ in range(ROUNDS):
        project.destroy("alice")
        times.append(seconds(lambda: update(project, "alice")))
    project.destroy("alice")
    return statistics.median(times)


def measure(lab: Lab, folder: Path) -> list[Ratio]:
    empty, project = empty_program(folder / "empty", lab), Project.make(folder / "project", lab)
    err.print("environment of 1 engineer …")
    project.write("env", environment=environment(lab, 1))
    project.up("env")
    alone = adding_an_engineer(project)
    project.up("alice")
    err.print("no-op updates …")
    nothing, noop = [], []
    for _ in range(ROUNDS):
        nothing.append(seconds(lambda: update(empty, "empty")))
        noop.append(seconds(lambda: update(project, "alice")))
    project.destroy("alice")
    err.print(f"environment of {MANY} engineers …")
    project.write("env", environment=environment(lab, MANY))
    project.up("env")
    among_many = adding_an_engineer(project)
    project.destroy("env")
    return [
        Ratio(
            "no-op up: engineer's stack / empty program", statistics.median(noop), statistics.median(nothing), goal=2.0
        ),
        Ratio(f"new engineer's stack: among {MANY} / alone", among_many, alone, goal=1.1),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder, brought_up(Path(folder) / "lab") as lab:
        ratios = measure(lab, Path(folder))
    if arguments.json:
        sys.stdout.write(json.dumps([asdict(entry) | {"ratio": entry.ratio} for entry in ratios], indent=2) + "\n")
        return 0
    table = Table("what", "seconds", "seconds", "ratio", "goal")
    for item in ratios:
        goal = "" if item.goal is None else f"≤ {item.goal}"
        table.add_row(item.what, f"{item.a:.2f}", f"{item.b:.2f}", f"{item.ratio:.2f}", goal)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
