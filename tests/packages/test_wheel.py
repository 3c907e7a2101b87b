"""The wheel: one top-level name, with data files, and it works where no checkout is."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from berth.components.core.distribution import installed_version
from tests.references import references, texts_of
from tests.wheel import CLONE, build, build_sdist, copy_tree, install, pip, virtual_environment

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
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_tree(tmp_path_factory.mktemp("tree") / "source")


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"), source)


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


def test_the_source_distribution_builds_the_same_wheel(
    source: Path, wheel: Path, tmp_path: Path
) -> None:
    sdist = build_sdist(source, tmp_path)
    assert content(build(tmp_path, sdist)) == content(wheel)


def content(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {
            info.filename: info.CRC
            for info in archive.infolist()
            if not info.filename.endswith("/RECORD")
        }


def test_a_wheel_has_the_data_that_modules_read(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    data = {
        f"berth/{file.relative_to(CLONE)}"
        for top in ("components", "lab")
        for file in (CLONE / top).rglob("*")
        if file.suffix in {".conf", ".json", ".yaml", ".mod", ".sh", ".sum", ".go", ".tpl", ".txt"}
    }
    assert data - packed == set()


def test_an_installed_berth_checks_a_project_of_its_own(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks/Pulumi.mine.yaml").write_text(STACK)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\nstackConfigDir: stacks\n")
    run = (
        "import berth, sys; from berth.cli.main import main; print(berth.__file__,"
        " file=sys.stderr); main()"
    )
    done = python(installed, tmp_path, "-c", run, "check", "mine")
    assert done.returncode == 0, done.stderr
    assert str(installed) in done.stderr
    assert "mine" in done.stdout
    (tmp_path / "stacks/Pulumi.mine.yaml").write_text(
        STACK.replace("worker: {pool: dev}", "worker: {pool: gpu}")
    )
    done = python(installed, tmp_path, "-c", run, "check", "mine")
    assert done.returncode == 2
    assert "stacks/Pulumi.mine.yaml:9: " in done.stderr


# Prints each document that an argument names; ends with the names of those that are not there.
DOCS = """\
import sys
from berth.cli.main import app
missing = [name for name in sys.argv[1:] if app(["docs", name], standalone_mode=False)]
sys.exit(", ".join(missing) or 0)
"""


def test_every_page_that_a_text_names_is_there_in_a_repository_of_ones_own(
    installed: Path, tmp_path: Path
) -> None:
    """The texts are those of the installed package, and of a repository that it wrote."""
    fleet = tmp_path / "fleet"
    new = python(installed, tmp_path, "-m", "berth.cli", "new", "fleet", "--from", "prod")
    assert new.returncode == 0, new.stderr
    files = [file for folder in (installed, fleet) for file in folder.rglob("*") if file.is_file()]
    texts = [text.text for file in files for text in texts_of(file)]
    names = references(texts)
    assert {"gke#reservation", "gke#permissions", "gallery", "images"} <= names
    printed = python(installed, fleet, "-c", DOCS, *sorted(names))
    assert printed.returncode == 0, printed.stderr
    pages = json.loads(python(installed, fleet, "-m", "berth.cli", "docs", "--json").stdout)
    printed = python(installed, fleet, "-c", DOCS, *(page["page"] for page in pages))
    linked = references([printed.stdout])
    assert {"stacks/gallery/Pulumi.solo.yaml", "fabric#nccl"} <= linked
    printed = python(installed, fleet, "-c", DOCS, *sorted(linked))
    assert printed.returncode == 0, printed.stderr


def test_what_a_check_imports_is_there_without_pulumi(installed: Path, tmp_path: Path) -> None:
    names = (
        "import sys, berth.stacks.load.stack; print([name for name in sys.modules if"
        " name.startswith('pulumi')])"
    )
    done = python(installed, tmp_path, "-c", names)
    assert done.stdout == "[]\n", done.stdout + done.stderr


BIG = {"matplotlib", "numpy", "pillow", "psutil", "pytest", "mypy", "ruff"}


def run(bin_folder: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "BERTH_LAB")
    }
    return subprocess.run(
        [str(bin_folder / arguments[0]), *arguments[1:]],
        cwd=folder,
        env=environment | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def packages(bin_folder: Path) -> set[str]:
    return {
        package["name"].lower()
        for package in json.loads(pip(bin_folder, "list", "--format", "json"))
    }


@pytest.mark.long
def test_the_base_is_small_and_works(wheel: Path, tmp_path: Path) -> None:
    """Settings, explanations and new repositories need no extra; the rest names its extra."""
    base = virtual_environment(tmp_path / "venv", wheel)
    installed = packages(base)
    assert "berth-gpu" in installed
    assert installed & BIG == set()
    assert len(installed) < 70

    def berth(*arguments: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return run(base, folder, "berth", *arguments)

    assert berth("--version").stdout == f"berth {installed_version()}\n"
    assert "pools.NAME.capacity" in berth("explain", "pools.capacity").stdout
    assert berth("new", "my-fleet").returncode == 0
    checked = berth("check", folder=tmp_path / "my-fleet")
    assert checked.returncode == 0, checked.stderr
    refused = berth("lab", "up", folder=tmp_path / "my-fleet")
    assert refused.returncode == 2, refused.stderr
    assert 'run: pip install "berth-gpu[lab]"' in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.long
def test_the_extra_of_the_lab_brings_what_the_lab_imports(wheel: Path, tmp_path: Path) -> None:
    lab = virtual_environment(tmp_path / "venv", wheel, ["lab"])
    assert "psutil" in packages(lab)
    assert "pytest" not in packages(lab)
    # The lab's own programs, with what they import.
    for module in (
        "berth.lab.lifecycle",
        "berth.lab.devices.controller",
        "berth.lab.google_api.server",
    ):
        assert run(lab, tmp_path, "python", "-c", f"import {module}").stderr == ""
    assert run(lab, tmp_path, "berth", "new", "fleet").returncode == 0
    assert run(lab, tmp_path / "fleet", "berth", "lab", "status").returncode == 3
