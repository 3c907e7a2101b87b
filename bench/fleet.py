"""Lab of a benchmark: an existing cluster with simulated nodes, and a project on it."""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.figures import Run
from bench.measured import Measured, measured
from chaos import fleet as chaos
from tests.lab.conftest import Lab, brought_up
from tests.lab.project import Project, Settings

ENV = "env"
"""Stack of the environment."""

_BERTHS_ON_A_NODE = 50
Object = dict[str, Any]

err = Console(stderr=True, highlight=False, soft_wrap=True)


def engineers(count: int) -> list[str]:
    return [f"eng-{number:04}" for number in range(count)]


@dataclass
class Bench:
    """Lab, project and the figures of one run.

    Attributes:
        lab: the lab.
        folder: folder of the run.
        size: number of engineers that nodes are there for, besides a few.
        run: the figures.
        env: environment of all commands.
    """

    lab: Lab
    folder: Path
    size: int
    run: Run = field(default_factory=Run)
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.env = self.lab.env
        self.project = Project.make(self.folder / "project", self.lab)

    def do(
        self, *command: str, cwd: Path | None = None, stdin: str = "", codes: Sequence[int] = (0,)
    ) -> Measured:
        """Run a command that is not a figure.

        Raises:
            BenchError: it fails.
        """
        return measured(command, cwd or self.project.folder, self.env, stdin=stdin, codes=codes)

    def timed(
        self, what: str, *commands: Sequence[str], cwd: Path | None = None, stdin: str = ""
    ) -> Measured:
        """Run commands one after the other, as one figure.

        Raises:
            BenchError: one fails.
        """
        total = Measured(0)
        for command in commands:
            done = self.do(*command, cwd=cwd, stdin=stdin)
            total.seconds += done.seconds
            total.cpu += done.cpu
            total.stdout = done.stdout
            names = total.memory.keys() | done.memory.keys()
            programs = total.programs.keys() | done.programs.keys()
            total.programs = {
                name: total.programs.get(name, 0) + done.programs.get(name, 0)
                for name in sorted(programs)
            }
            total.memory = {
                name: max(total.memory.get(name, 0), done.memory.get(name, 0))
                for name in sorted(names)
            }
        self.note(what, total)
        return total

    def note(self, what: str, done: Measured) -> None:
        """Add a command to the figures."""
        self.run.seconds[what] = done.seconds
        self.run.cpu[what] = done.cpu
        self.run.memory[what] = done.memory
        self.run.programs[what] = done.programs
        memory = done.memory.get("all", 0)
        err.print(f"  {what}: {done.seconds:.1f} s, of CPU {done.cpu:.1f} s, {memory:.0f} MB")

    def write(self, names: Sequence[str]) -> None:
        """Write the environment's stack with a list of engineers."""
        self.project.write(ENV, environment=self.environment(names))

    def environment(self, names: Sequence[str]) -> Settings:
        settings = chaos.environment(self.lab.kubeconfig, self.lab.home.charts, names)
        settings["pools"] = {"cpu": settings["pools"]["cpu"] | {"nodes": self._nodes}}
        settings["defaults"]["wait"] = {"timeout": "60m"}
        return settings

    @property
    def _nodes(self) -> int:
        return self.size // _BERTHS_ON_A_NODE + 2

    def add_nodes(self) -> None:
        """Create the nodes that all berths fit on."""
        nodes = [chaos.node(f"cpu-{number}", "cpu", number) for number in range(self._nodes)]
        self.apply(nodes)

    def apply(self, objects: Sequence[Object]) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.do("kubectl", "apply", "--server-side", "-f", "-", stdin=text)

    def init(self, *stacks: str) -> None:
        for stack in stacks:
            self.do("pulumi", "stack", "init", stack, "--no-select")

    def state_kilobytes(self, stack: str) -> float:
        """Return the size of a stack's file in the lab's backend."""
        return self.project.state(stack).stat().st_size / 1000

    def objects(self) -> list[Object]:
        """Return the objects of all berths as somebody would write them."""
        managed = chaos.managed_objects(self.lab)
        plain = [
            chaos.plain(item) for item in managed if not item["metadata"].get("ownerReferences")
        ]
        for item in plain:
            del item["metadata"]["owned"]
        return [item for item in plain if owner(item).startswith("berth-eng-")]


def owner(item: Object) -> str:
    """Return the namespace of an object, or its own name."""
    return str(item["metadata"].get("namespace", item["metadata"]["name"]))


@contextlib.contextmanager
def launched(folder: Path, size: int) -> Iterator[Bench]:
    """Yield a bench on a lab of its own, which is gone afterward."""
    os.environ.setdefault("PULUMI_SKIP_UPDATE_CHECK", "true")
    with brought_up(folder / "lab") as lab:
        bench = Bench(lab, folder, size)
        bench.add_nodes()
        yield bench
