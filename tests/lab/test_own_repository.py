"""A repository of a user's own, on the installed wheel: `berth new`, then the lab in it. A lab
of its own, so it is long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.conftest import BUILD_SECONDS
from tests.wheel import CLONE, build, install

pytestmark = [pytest.mark.lab, pytest.mark.long]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(build(tmp_path_factory.mktemp("wheel")))


def test_the_lab_comes_up_in_a_repository_of_ones_own(site: Path, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "BERTH_LAB"} | {"PYTHONPATH": str(site)}
    fleet = tmp_path / "my-fleet"

    def berth(*arguments: str, in_the_lab: bool = False) -> str:
        program = f"{sys.executable} -m berth.cli"
        prepare = f'eval "$({program} lab env)" && ' if in_the_lab else ""
        command = ["bash", "-c", f"{prepare}{program} {' '.join(arguments)}"]
        where = fleet if fleet.exists() else tmp_path
        done = subprocess.run(
            command, cwd=where, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    berth("new", "my-fleet")
    # What `make venv` makes there, without a download: the packages are those of the tests, berth
    # is the wheel's.
    (fleet / ".venv").symlink_to(CLONE / ".venv")
    try:
        berth("lab", "up")
        assert (fleet / ".lab" / "kubeconfig.yaml").exists()
        berths = json.loads(berth("status", "-s", "lab", "--json", in_the_lab=True))["berths"]
        assert {entry["name"]: entry["ready"] for entry in berths} == {"bob": True, "carol": True}
        state = json.loads((fleet / ".lab/pulumi/.pulumi/stacks/my-fleet/lab.json").read_text())
        assert len(state["checkpoint"]["latest"]["resources"]) > 60
    finally:
        berth("lab", "clean")
    assert not (fleet / ".lab").exists()
