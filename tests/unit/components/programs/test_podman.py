"""The program that stands before podman in a pod's PATH."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from berth.components.programs import cdi, podman
from tests.unit.cases import table

OURS = ["--device", "nvidia.com/gpu=all"]
IDENTITY = ["--uidmap", "1000:0:1", "--gidmap", "100:0:1", "--user", "1000:100"]


def test_both_programs_mean_the_same_devices() -> None:
    assert f"{cdi.KIND}={cdi.ALL}" == podman.DEVICES
    assert Path(cdi.__file__).name == podman.WRITER


@pytest.mark.parametrize(("given", "added", "rest"), table(__file__, "podman.yaml"))
def test_run_gets_the_gpus_and_the_identity_of_the_pod_once(
    given: str, added: list[str], rest: str
) -> None:
    command, *arguments = given.split()
    before = [word for kind in added for word in {"gpus": OURS, "identity": IDENTITY}[kind]]
    assert podman.arguments_with_gpus([command, *arguments], 1000, 100) == [
        command,
        *before,
        *rest.split(),
    ]


def test_global_options_and_the_long_form_are_understood() -> None:
    given = ["--log-level", "run", "--runtime=crun", "container", "run", "image"]
    assert podman.arguments_with_gpus(given, 1000, 100) == [*given[:-1], *OURS, *IDENTITY, "image"]


@pytest.mark.parametrize(
    "given", ["ps -a", "images", "exec box run", "--version", "", "pull run", "container ls"]
)
def test_other_commands_are_as_they_were(given: str) -> None:
    assert podman.arguments_with_gpus(given.split(), 1000, 100) == given.split()


def test_root_keeps_its_users() -> None:
    assert podman.arguments_with_gpus(["run", "--userns=keep-id", "image"], 0, 0) == [
        "run",
        *OURS,
        "--userns=keep-id",
        "image",
    ]


def program(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "podman"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_it_is_not_taken_for_the_real_one_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "podman").symlink_to(podman.__file__)
    real = program(tmp_path / "second", "#!/bin/sh\n")
    path = os.pathsep.join(str(tmp_path / name) for name in ("first", "none", "second"))
    assert podman.real_podman({"PATH": path}) == str(real)
    assert podman.real_podman({"PATH": str(tmp_path / "first")}) is None


def test_an_image_without_podman_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, podman.__file__, "run", "image"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        127,
        (
            "error: this image has no podman, which Ray's image_uri and container need; add podman"
            " (4.1 or newer) and crun to it\n"
        ),
    )
