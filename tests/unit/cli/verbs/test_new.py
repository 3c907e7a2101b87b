"""A repository that `berth new` writes: checked as it is, and nothing overwritten."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.components.core.distribution import installed_version
from tests.unit.cases import table

CLONE = Path(__file__).resolve().parents[4]
COPIED = {
    "__main__.py": "__main__.py",
    ".github/workflows/berth.yml": ".github/workflows/berth.yml",
    ".github/workflows/preview.yml": ".github/workflows/preview.yml",
    ".github/actions/set-up/action.yml": ".github/actions/set-up/action.yml",
    "stacks/Pulumi.lab.yaml": "stacks/Pulumi.lab.yaml",
    "stacks/schema.json": "stacks/schema.json",
}


def new(folder: Path, *arguments: str) -> Result:
    """Run `berth new` in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(app, ["new", *arguments])


def berth(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that loads modules of the new repository."""
    command = [sys.executable, "-m", "berth.cli", *arguments]
    environment = os.environ | {"PYTHONPATH": str(CLONE), "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_new_repository_passes_its_own_check(tmp_path: Path) -> None:
    done = new(tmp_path, "my-fleet", "--project", "acme-dev", "--zone", "europe-west4-b", "--json")
    assert done.exit_code == 0, done.stderr
    fleet = tmp_path / "my-fleet"
    files = {str(file.relative_to(fleet)) for file in fleet.rglob("*") if file.is_file()}
    assert set(json.loads(done.stdout)["files"]) == files
    checked = berth(fleet, "check")
    assert checked.returncode == 0, checked.stderr
    assert all(f"✓ {stack}" in checked.stdout for stack in ("dana", "dev", "lab"))
    settings = yaml.safe_load((fleet / "stacks/Pulumi.dev.yaml").read_text())
    environment = settings["config"]["berth:environment"]
    assert (environment["project"], environment["zone"]) == ("acme-dev", "europe-west4-b")
    assert "encryptionsalt" not in settings, "a stack on Google Cloud gets a key of its own"
    assert yaml.safe_load((fleet / "Pulumi.yaml").read_text())["name"] == "my-fleet"
    assert f"berth-gpu[lab]=={installed_version()}" in (fleet / "requirements.txt").read_text()


STARTS = {
    "dev": "stacks/Pulumi.dev.yaml",
    "prod": "stacks/Pulumi.prod.yaml",
    "mixed": "stacks/gallery/Pulumi.mixed.yaml",
    "solo": "stacks/gallery/Pulumi.solo.yaml",
}


@pytest.mark.parametrize("start", STARTS)
def test_a_repository_starts_with_a_shipped_environment(tmp_path: Path, start: str) -> None:
    done = new(tmp_path, "fleet", "--from", start, "--project", "acme-ml", "--zone", "asia-east1-c")
    assert done.exit_code == 0, done.stderr
    fleet = tmp_path / "fleet"
    stacks = [file.name for file in (fleet / "stacks").glob("Pulumi.*.yaml")]
    assert sorted(stacks) == sorted(["Pulumi.lab.yaml", "Pulumi.dana.yaml", f"Pulumi.{start}.yaml"])
    written = (fleet / f"stacks/Pulumi.{start}.yaml").read_text()
    assert "us-central1" not in written
    expected = (CLONE / STARTS[start]).read_text()
    for placeholder in ("your-prod-project", "your-dev-project", "your-project"):
        expected = expected.replace(placeholder, "acme-ml")
    expected = expected.replace("us-central1-b", "asia-east1-c").replace(
        "us-central1", "asia-east1"
    )
    assert written == expected
    assert f"berth doctor -s {start}" in (fleet / "README.md").read_text()
    checked = berth(fleet, "check")
    assert checked.returncode == 0, checked.stderr
    assert f"✓ {start} (environment" in checked.stdout


def test_an_unknown_start_is_refused(tmp_path: Path) -> None:
    done = new(tmp_path, "fleet", "--from", "pord")
    assert done.exit_code == 2
    assert "'pord' is not one of 'dev', 'prod', 'mixed', 'solo'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_images_that_a_start_names_can_be_built_in_the_repository(tmp_path: Path) -> None:
    assert new(tmp_path, "fleet", "--from", "prod").exit_code == 0
    for image in ("ray-a4", "ray-podman"):
        for file in ("Dockerfile", "requirements.txt"):
            written = tmp_path / f"fleet/images/{image}/{file}"
            assert written.read_text() == (CLONE / f"images/{image}/{file}").read_text()


def test_the_readme_and_the_makefile_name_the_wheel_that_exists(tmp_path: Path) -> None:
    assert new(tmp_path, "fleet").exit_code == 0
    for file in ("README.md", "Makefile"):
        text = (tmp_path / "fleet" / file).read_text()
        assert "make upgrade BERTH=FOLDER/berth_gpu-VERSION-py3-none-any.whl" in text, file
        assert not re.search(r"\$(name|start|wheel|project)\b", text), file


def test_a_repository_from_before_there_were_starts_is_upgraded(tmp_path: Path) -> None:
    assert new(tmp_path, "fleet").exit_code == 0
    record = tmp_path / "fleet/.berth.yaml"
    record.write_text(record.read_text().replace("  start: dev\n", ""))
    done = berth(tmp_path / "fleet", "upgrade", "--dry-run")
    assert (done.returncode, done.stdout) == (
        0,
        f"fleet is up to date with berth {installed_version()}\n",
    ), done.stderr


def test_what_a_new_repository_shares_with_the_clone_is_the_same(tmp_path: Path) -> None:
    assert new(tmp_path, "fleet").exit_code == 0
    for written, source in COPIED.items():
        assert (tmp_path / "fleet" / written).read_text() == (CLONE / source).read_text(), written


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    done = new(tmp_path, "taken")
    assert done.exit_code == 2
    assert "taken exists and is not an empty folder" in done.stderr
    assert [file.name for file in (tmp_path / "taken").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(("arguments", "problem"), table(__file__, "new.yaml"))
def test_a_bad_input_gets_one_error_and_nothing_is_written(
    tmp_path: Path, arguments: list[str], problem: str
) -> None:
    (tmp_path / "file").write_text("")
    done = new(tmp_path, *arguments)
    assert done.exit_code == 2
    assert done.stderr.count("error:") == 1
    assert problem in done.stderr
    assert "nothing was written" in done.stderr
    assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_record_has_the_version_and_no_settings(tmp_path: Path) -> None:
    assert new(tmp_path, "fleet", "--project", "acme-dev").exit_code == 0
    record = yaml.safe_load((tmp_path / "fleet/.berth.yaml").read_text())
    assert record["version"] == installed_version()
    assert record["values"] == {
        "name": "fleet",
        "start": "dev",
        "project": "acme-dev",
        "zone": "us-central1-b",
    }
    assert {"Makefile", "stacks/schema.json", "policies/image_registry.py"} <= set(record["files"])
    assert not any(path.startswith("stacks/Pulumi.") for path in record["files"])
    done = berth(tmp_path / "fleet", "upgrade")
    assert (done.returncode, done.stdout) == (
        0,
        f"fleet is up to date with berth {installed_version()}\n",
    )


def test_a_policy_of_ones_own_is_applied(tmp_path: Path) -> None:
    assert new(tmp_path, "fleet").exit_code == 0
    fleet = tmp_path / "fleet"
    (fleet / "policies/_helper.py").write_text("raise ValueError\n")
    assert "image-registry" in berth(fleet, "check", "--policies").stdout
    stack = fleet / "stacks/Pulumi.dev.yaml"
    stack.write_text(
        stack.read_text().replace("defaults:", "defaults:\n      image: example.com/ray:2.60.0")
    )
    done = berth(fleet, "check", "dev")
    assert done.returncode == 2
    assert "policy image-registry: Ray of bob runs the image example.com/ray:2.60.0" in done.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "import nonsense_of_nobody\n",
            "policies/broken.py: cannot be loaded, so no stack is checked: Module",
        ),
        (
            "POLICY = 1\n",
            "policies/broken.py: has no POLICY of the class berth.stacks.policies.policy.Policy",
        ),
        (
            "from policies.image_registry import POLICY\n",
            "there is a policy 'image-registry' already",
        ),
    ],
)
def test_a_policy_that_cannot_be_loaded_is_never_left_out_silently(
    tmp_path: Path, text: str, problem: str
) -> None:
    assert new(tmp_path, "fleet").exit_code == 0
    fleet = tmp_path / "fleet"
    (fleet / "policies/broken.py").write_text(text)
    done = berth(fleet, "check", "dev")
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
