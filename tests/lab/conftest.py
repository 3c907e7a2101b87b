"""Lab of the tests, beside the clone's: other folder, other ports, other state."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from berth.lab import environment
from berth.lab.home import CLONE, LabHome
from berth.lab.plugins.gcp import conditions
from tests.lab.database import Database

COMMAND_SECONDS = 600.0
BUILD_SECONDS = 3600.0

# The servers, the engine, helm and kubectl spend up to a third of their CPU on collecting garbage.
os.environ.setdefault("GOGC", "400")


@dataclass(frozen=True)
class Lab:
    """A lab in a folder of its own.

    Attributes:
        home: its paths.
        database: what `forget` goes back to; None for the lab of one file.
    """

    home: LabHome
    database: Database | None = field(default=None, kw_only=True)

    @property
    def env(self) -> dict[str, str]:
        return environment.complete(self.home)

    @property
    def kubeconfig(self) -> Path:
        return self.home.kubeconfig

    def run(
        self,
        args: Sequence[str],
        cwd: Path | None = None,
        *,
        check: bool = True,
        timeout: float = COMMAND_SECONDS,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the environment of `berth lab env`; a failure shows its output."""
        result = subprocess.run(
            list(args),
            cwd=cwd or CLONE,
            env=self.env,
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and result.returncode != 0:
            pytest.fail(
                f"{' '.join(args)} ended with"
                f" {result.returncode}:\n{result.stdout}\n{result.stderr}"
            )
        return result

    def berth(
        self, *args: str, check: bool = True, timeout: float = COMMAND_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """`berth lab …` on this lab."""
        return self.run(
            [sys.executable, "-m", "berth.cli", "lab", *args], check=check, timeout=timeout
        )

    def up(self) -> str:
        """Bring it up without `pulumi up`; return its progress lines."""
        shown = self.berth("up", "--no-update", timeout=BUILD_SECONDS).stderr
        # The engine encrypts and writes all that it does to this folder, a quarter of its CPU, and
        # no setting turns that off; it goes on without where there is no folder.
        shutil.rmtree(self.home.pulumi_home / "logs", ignore_errors=True)
        (self.home.pulumi_home / "logs").touch()
        return shown

    def forget(self) -> None:
        """Remove what earlier tests have left: stacks, resources in the cloud, and objects."""
        assert self.database is not None
        shutil.rmtree(self.home.backend / ".pulumi", ignore_errors=True)
        shutil.rmtree(self.home.cloud, ignore_errors=True)
        conditions.place(self.home.cloud)
        self.database.empty()

    def restart(self) -> None:
        """Start with an empty database, without definitions of kinds too, and an empty cloud."""
        self.berth("down")
        for folder in (self.home.root / "kwok/clusters/berth/etcd", self.home.cloud):
            shutil.rmtree(folder)
        self.up()

    def get(self, *args: str) -> Any:
        """`kubectl get … -o json`."""
        return json.loads(self.run(["kubectl", "get", *args, "-o", "json"]).stdout)

    def pids(self) -> dict[str, int]:
        """Pids of the recorded processes by name."""
        records = [json.loads(path.read_text()) for path in self.home.run.glob("*.json")]
        return {record["name"]: record["pid"] for record in records}


@contextlib.contextmanager
def brought_up(folder: Path) -> Iterator[Lab]:
    lab = Lab(LabHome(folder))
    try:
        lab.up()
        yield lab
    finally:
        lab.berth("down", check=False)


@pytest.fixture(scope="session")
def _shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with brought_up(tmp_path_factory.mktemp("shared") / "lab") as lab:
        yield replace(lab, database=Database(lab.home))


@pytest.fixture(scope="module")
def lab(_shared_lab: Lab) -> Lab:
    """Lab that the files of a worker share: up, without resources and stacks at a file's beginning.

    A file leaves its environment up. The definitions of the operators' kinds stay, as in a cluster
    that had an environment before.
    """
    _shared_lab.forget()
    return _shared_lab
