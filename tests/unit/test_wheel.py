"""The wheel: one top-level name, with data files, and it works where no checkout is."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.wheel import CLONE, build, install

STACK = """\
config:
  berth:environment:
    project: your-project
    zone: us-central1-b
    pools:
      cpu: {machineType: n2-standard-16, nodes: 1}
      dev: {machineType: g2-standard-24, nodes: 1}
    engineers:
      alice: {worker: {pool: dev}}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A folder with nothing but what the wheel installs."""
    return install(wheel)


def python(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(installed), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_wheel_has_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"berth"}


def test_a_wheel_has_the_data_that_modules_read(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    data = {
        f"berth/{file.relative_to(CLONE)}"
        for top in ("components", "lab")
        for file in (CLONE / top).rglob("*")
        if file.suffix in {".json", ".yaml", ".mod", ".sum", ".go", ".tpl", ".txt"}
    }
    assert data - packed == set()


def test_an_installed_berth_checks_a_project_of_its_own(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks/Pulumi.mine.yaml").write_text(STACK)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\nstackConfigDir: stacks\n")
    run = "import berth, sys; from berth.cli.main import main; print(berth.__file__, file=sys.stderr); main()"
    done = python(installed, tmp_path, "-c", run, "check", "mine")
    assert done.returncode == 0, done.stderr
    assert str(installed) in done.stderr
    assert "mine" in done.stdout
    (tmp_path / "stacks/Pulumi.mine.yaml").write_text(STACK.replace("worker: {pool: dev}", "worker: {pool: gpu}"))
    done = python(installed, tmp_path, "-c", run, "check", "mine")
    assert done.returncode == 2
    assert "stacks/Pulumi.mine.yaml:9: " in done.stderr


def test_what_a_check_imports_is_there_without_pulumi(installed: Path, tmp_path: Path) -> None:
    names = "import sys, berth.stacks.load; print([name for name in sys.modules if name.startswith('pulumi')])"
    done = python(installed, tmp_path, "-c", names)
    assert done.stdout == "[]\n", done.stdout + done.stderr
