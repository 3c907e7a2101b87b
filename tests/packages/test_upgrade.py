"""A repository moves from one wheel of berth to a newer one, as a user would do it, offline."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from berth.cli.main import app
from tests.wheel import build, copy_tree, pip, virtual_environment

OLD = "0.1.0"
NEW = "0.2.0"
ENTRY = "## Unreleased\n\n### Changed\n\n- deletionProtection is protectDeletion.\n\n"


def rewrite(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, f"{file} has no {old!r}"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def set_version(source: Path, version: str) -> None:
    lines = (source / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    changed = [
        f'version = "{version}"' if line.startswith("version = ") else line for line in lines
    ]
    (source / "pyproject.toml").write_text("\n".join(changed) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = copy_tree(tmp_path_factory.mktemp("old") / "source")
    set_version(source, OLD)
    return build(tmp_path_factory.mktemp("wheels"), source)


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A newer berth: another template, a changelog, and a setting with another name."""
    source = copy_tree(tmp_path_factory.mktemp("new") / "source")
    set_version(source, NEW)
    (source / "CHANGELOG.md").write_text(f"# Changelog\n\n{ENTRY}## {OLD}\n\nThe first version.\n")
    template = source / "cli/template"
    rewrite(template / "Makefile", "check settings and policies", "check all settings and policies")
    rewrite(template / "README.md", "Environments of berth", "The environments of berth")
    (template / "OWNERS").write_text("ml-platform\n")
    (template / "policies/image_registry.py").unlink()
    rewrite(
        source / "components/gke/cluster_settings.py",
        "    deletion_protection: bool = True\n",
        '    other_words = {"deletionProtection": '
        """"it is 'protectDeletion' in this version of berth"}\n"""
        '    deletion_protection: bool = Field(default=True, alias="protectDeletion")\n',
    )
    return build(tmp_path_factory.mktemp("wheels"), source)


class Site:
    """A repository with a virtual environment of its own, without a package index."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.bin = virtual_environment(folder / "venv", wheel, ["lab"], with_pip=True)
        self.fleet = folder / "my-fleet"
        self.fleet.parent.mkdir(exist_ok=True)
        assert self.run(str(self.bin / "berth"), "new", "my-fleet", folder=folder).returncode == 0
        (self.fleet / ".venv").symlink_to(folder / "venv")

    def run(self, *command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        dropped = ("PYTHONPATH", "BERTH_LAB", "MAKEFLAGS", "MAKELEVEL")
        environment = {key: value for key, value in os.environ.items() if key not in dropped}
        return subprocess.run(
            command,
            cwd=folder or self.fleet,
            env=environment | {"COLUMNS": "200", "PIP_NO_INDEX": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def berth(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(".venv/bin/berth", *arguments)

    def texts(self) -> dict[str, str]:
        files = (
            path for path in self.fleet.rglob("*") if path.is_file() and ".venv" not in path.parts
        )
        return {
            path.relative_to(self.fleet).as_posix(): path.read_text(encoding="latin-1")
            for path in files
        }


@pytest.mark.long
def test_a_repository_moves_to_a_newer_berth(old: Path, new: Path, tmp_path: Path) -> None:
    site = Site(tmp_path, old)
    fleet = site.fleet
    assert f"./wheels/{old.name}[lab]" in (fleet / "requirements.txt").read_text()
    checked = site.run("make", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr

    edited = {
        "README.md": (fleet / "README.md").read_text() + "\nAsk us first.\n",
        "Pulumi.yaml": (fleet / "Pulumi.yaml").read_text() + "author: ml-platform\n",
    }
    for path, text in edited.items():
        (fleet / path).write_text(text)
    rewrite(fleet / "requirements.txt", "# The lab", "rich\n# The lab")
    (fleet / ".github/workflows/berth.yml").unlink()
    assert site.berth("upgrade").stdout == f"my-fleet is up to date with berth {OLD}\n"

    refused = site.run("make", "upgrade")
    assert refused.returncode == 2
    assert "name the berth to move to" in refused.stderr

    pip(site.bin, "install", "--no-index", "--no-deps", str(new))
    before = site.texts()
    tried = site.berth("upgrade", "--dry-run")
    assert site.texts() == before
    assert "nothing was written" in tried.stderr
    upgraded = site.run("make", "upgrade", f"BERTH={new}")
    assert upgraded.stdout == tried.stdout, upgraded.stderr
    check_output(upgraded)
    check_files(site, before, edited, new)

    settings = (fleet / "stacks/Pulumi.dev.yaml").read_text().splitlines()
    (line,) = (
        number for number, text in enumerate(settings, start=1) if "deletionProtection" in text
    )
    renamed = f"stacks/Pulumi.dev.yaml:{line}: environment.cluster.deletionProtection: unknown key"
    assert (
        f"{renamed} 'deletionProtection'; it is 'protectDeletion' in this version of berth"
        in upgraded.stderr
    )
    assert upgraded.returncode == 2, "make's own exit code for a command that failed"

    for stack in ("dev", "lab"):
        text = (fleet / f"stacks/Pulumi.{stack}.yaml").read_text()
        (fleet / f"stacks/Pulumi.{stack}.yaml").write_text(
            text.replace("deletionProtection", "protectDeletion")
        )
    after = site.texts()
    again = site.berth("upgrade")
    assert (again.returncode, again.stdout) == (
        0,
        f"my-fleet is up to date with berth {NEW}\n",
    ), again.stderr
    assert site.texts() == after
    checked = site.run("make", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr

    pip(site.bin, "install", "--no-index", "--no-deps", str(old))
    older = site.berth("upgrade")
    assert older.returncode == 2
    assert (
        f"my-fleet is at berth {NEW}, and the older {OLD} is installed; nothing was changed"
        in older.stderr
    )
    assert site.texts() == after


def check_output(upgraded: subprocess.CompletedProcess[str]) -> None:
    assert f"my-fleet: berth {OLD} → {NEW}" in upgraded.stdout
    assert f"## {NEW}\n\n### Changed\n\n- deletionProtection is protectDeletion." in upgraded.stdout
    assert "The first version." not in upgraded.stdout
    actions = dict(
        line.split()[::-1] for line in upgraded.stdout.splitlines() if line.startswith("  ")
    )
    assert actions == {
        "Makefile": "update",
        "OWNERS": "add",
        "README.md": "merge",
        "policies/image_registry.py": "remove",
        "requirements.txt": "update",
        f"wheels/berth_gpu-{OLD}-py3-none-any.whl": "remove",
    }
    assert "-Ask us first." in upgraded.stdout, "the difference is shown"
    assert "README.md.new" in upgraded.stderr


def check_files(site: Site, before: dict[str, str], edited: dict[str, str], wheel: Path) -> None:
    after = site.texts()
    assert {path: after[path] for path in edited} == edited
    assert "The environments of berth" in after["README.md.new"]
    assert "check all settings and policies" in after["Makefile"]
    assert after["OWNERS"] == "ml-platform\n"
    assert after["requirements.txt"] == before["requirements.txt"].replace(OLD, NEW)
    assert ".github/workflows/berth.yml" not in after, "what the user removed stays away"
    assert [path for path in after if path.startswith("wheels/")] == [f"wheels/{wheel.name}"]
    settings = [path for path in before if path.startswith("stacks/Pulumi.")]
    assert {path: after[path] for path in settings} == {path: before[path] for path in settings}
    assert yaml.safe_load(after[".berth.yaml"])["version"] == NEW
    assert set(before) - set(after) == {
        "policies/image_registry.py",
        f"wheels/berth_gpu-{OLD}-py3-none-any.whl",
    }


@pytest.mark.long
def test_programs_get_the_move_as_json(old: Path, new: Path, tmp_path: Path) -> None:
    bin_folder = virtual_environment(tmp_path / "venv", old)
    subprocess.run(
        [str(bin_folder / "berth"), "new", "fleet"], cwd=tmp_path, check=True, capture_output=True
    )
    pip(bin_folder, "install", "--no-index", "--no-deps", str(new))
    shutil.rmtree(tmp_path / "fleet/policies")
    command = [str(bin_folder / "berth"), "upgrade", "--dry-run", "--json"]
    done = subprocess.run(
        command, cwd=tmp_path / "fleet", capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert (found["from"], found["to"], found["changelog"][0]["version"]) == (OLD, NEW, NEW)
    assert {"path": "OWNERS", "action": "add"} in found["files"]
    assert [stack["stack"] for stack in found["stacks"] if stack["problems"]] == ["dev", "lab"]
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (None, "has no .berth.yaml"),
        ("files: [", ".berth.yaml cannot be read"),
        ("version: new\nvalues: {}\nfiles: {}\n", "'new' is not a version"),
        ("version: 0.1.0\nvalues: {}\nfiles: {}\n", "lacks the value 'name'"),
    ],
)
def test_a_repository_without_a_readable_record_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str | None, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\nstackConfigDir: stacks\n")
    if record:
        (tmp_path / ".berth.yaml").write_text(record)
    done = CliRunner().invoke(app, ["upgrade"])
    assert done.exit_code == 2
    assert problem in done.stderr
    assert "nothing was changed" in done.stderr
