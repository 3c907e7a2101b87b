"""`make tasks`: tasks of a new user, done with the commands of the pages and timed.

The user has a folder with a fresh clone, a home folder and an environment with nothing in it but
PATH and what the network needs. Blocks of the pages that are part of a task have a mark:
`<!-- task: NAME -->`. `--cache` gives the user the lab's tools and packages of earlier runs. The
repository of one's own and the program in it are of berth's wheel.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.pages.checkout import copy, do
from tests.pages.page import CLONE, PAGES, Block, blocks
from tests.pages.shell import BlockError, Shell, opened

OWN = "own repository"
PROGRAM = "own program"
TASKS = {
    "lab up": ("README.md",),
    "first berth": ("docs/engineer.md",),
    "GPU share": ("docs/sharing.md",),
    OWN: ("README.md",),
    PROGRAM: ("README.md",),
    "teardown": ("docs/engineer.md", "README.md"),
}
"""Tasks in order, with the pages that have them."""

_NETWORK = re.compile(
    r"(?i)(https?|no|all)_proxy|.*(_CERT|_CERTS|_CA_BUNDLE|_CERT_FILE|_CERT_DIR|CAINFO)|PIP_INDEX_URL"
)
_PATH = "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

err = Console(stderr=True)


@dataclass
class Outcome:
    """Result of a task.

    Attributes:
        task: its name.
        commands: number of commands of the pages.
        seconds: time that they took.
        error: why it failed; "" if it did not.
        blocks: where the pages have it.
    """

    task: str
    commands: int = 0
    seconds: float = 0.0
    error: str = ""
    blocks: list[str] = field(default_factory=list)


def blocks_of(task: str) -> Iterator[Block]:
    """Yield the blocks of a task, in the order of its pages."""
    for page in TASKS[task]:
        yield from (block for block in blocks(CLONE / page) if task in block.marks.tasks)


def unknown_marks() -> list[str]:
    """Return marks that name no task, or a page that is not in its list."""
    marked = [block for page in PAGES for block in blocks(page) if block.marks.tasks]
    return [
        str(block)
        for block in marked
        for task in block.marks.tasks
        if block.page not in TASKS.get(task, ())
    ]


@dataclass(frozen=True)
class User:
    """Someone new, with a folder of their own.

    Attributes:
        root: home folder, clone and a virtual environment.
        cache: the lab's tools of earlier runs; None for none.
    """

    root: Path
    cache: Path | None

    @property
    def clone(self) -> Path:
        return self.root / "berth"

    def environment(self) -> dict[str, str]:
        network = {name: value for name, value in os.environ.items() if _NETWORK.fullmatch(name)}
        cache = {"XDG_CACHE_HOME": str(self.cache)} if self.cache else {}
        return {
            "HOME": str(self.root / "home"),
            "PATH": _PATH,
            "LANG": "C.UTF-8",
            **network,
            **cache,
        }

    def arrive(self) -> None:
        """Clone berth."""
        (self.root / "home").mkdir(parents=True)
        copy(self.clone)

    def with_pip(self) -> dict[str, str]:
        """Make a virtual environment for what pip installs; return the variables with it."""
        environment = self.environment()
        venv = self.root / "venv"
        subprocess.run(["python3", "-m", "venv", venv], env=environment, check=True)
        return {**environment, "PATH": f"{venv / 'bin'}:{environment['PATH']}"}

    def do(self, task: str, terminal: Shell) -> Outcome:
        """Do a task; a failure is a part of the outcome."""
        parts = list(blocks_of(task))
        outcome = Outcome(
            task,
            sum(len(block.commands) for block in parts),
            blocks=[str(block) for block in parts],
        )
        began = time.monotonic()
        try:
            for block in parts:
                if ran := do(terminal, self.clone, block, all_commands=True):
                    print(ran.output, file=sys.stderr)
        except BlockError as error:
            outcome.error = str(error)
        outcome.seconds = round(time.monotonic() - began, 1)
        return outcome

    def leave(self) -> None:
        """End what is left of the labs."""
        for folder in (self.clone, self.clone / "my-fleet"):
            berth = folder / ".venv/bin/berth"
            if berth.exists():
                subprocess.run(
                    [berth, "lab", "clean"], cwd=folder, env=self.environment(), check=False
                )


def measure(root: Path, cache: Path | None) -> list[Outcome]:
    """Do all tasks in a folder; after a failure the rest is not tried."""
    user = User(root, cache)
    user.arrive()
    outcomes: list[Outcome] = []
    try:
        with (
            opened(user.clone, user.environment()) as terminal,
            opened(user.clone, user.with_pip()) as installed,
        ):
            for task in TASKS:
                err.print(f"[bold]{task}[/]")
                if any(outcome.error for outcome in outcomes):
                    outcomes.append(Outcome(task, error="not tried"))
                else:
                    outcomes.append(
                        user.do(task, installed if task in (OWN, PROGRAM) else terminal)
                    )
    finally:
        user.leave()
    return outcomes


def table(outcomes: list[Outcome]) -> Table:
    rows = Table("task", "pages", "commands", "seconds", "result")
    for outcome in outcomes:
        result = outcome.error.partition("\n")[0] or "done"
        places = "\n".join(outcome.blocks)
        rows.add_row(outcome.task, places, str(outcome.commands), f"{outcome.seconds:.0f}", result)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tasks", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--cache",
        type=Path,
        help="cache folder with tools of earlier runs; without it all is built",
    )
    options = parser.parse_args()
    if wrong := unknown_marks():
        err.print(f"marks of unknown tasks: {', '.join(wrong)}")
        return 2
    root = Path(tempfile.mkdtemp(prefix="berth-tasks-"))
    try:
        outcomes = measure(root, options.cache.absolute() if options.cache else None)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if options.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=2))
    else:
        Console().print(table(outcomes))
    for outcome in outcomes:
        if outcome.error:
            err.print(f"{outcome.task}: {outcome.error}", markup=False)
    return 1 if any(outcome.error for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
