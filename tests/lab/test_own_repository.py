"""A repository of a user's own, on the installed wheel: `berth new`, `make check` and `make lab` in
it, and its own environment previewed there. It has a lab of its own.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.lab.conftest import BUILD_SECONDS
from tests.wheel import build, virtual_environment

pytestmark = pytest.mark.lab


def test_the_lab_comes_up_in_a_repository_of_ones_own(tmp_path: Path) -> None:
    """A virtual environment with the wheel and the extra of the lab stands in for a download."""
    bin_folder = virtual_environment(tmp_path / "venv", build(tmp_path), ["lab"], with_pip=True)
    dropped = ("BERTH_LAB", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL")
    environment = {key: value for key, value in os.environ.items() if key not in dropped} | {
        "PIP_NO_INDEX": "1"
    }
    fleet = tmp_path / "my-fleet"

    def shell(line: str, where: Path = fleet) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=where,
            env=environment,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shell(f"{bin_folder}/berth new my-fleet --from prod", tmp_path)
    (fleet / ".venv").symlink_to(tmp_path / "venv")
    checked = shell("make check")
    assert all(f"✓ {stack} (" in checked for stack in ("dana", "lab", "prod"))
    try:
        shell("make lab")
        assert (fleet / ".lab" / "kubeconfig.yaml").exists()
        status = shell('eval "$(.venv/bin/berth lab env)" && .venv/bin/berth status -s lab --json')
        berths = json.loads(status)["berths"]
        assert {entry["name"]: entry["ready"] for entry in berths} == {"bob": True, "carol": True}
        in_lab = 'eval "$(.venv/bin/berth lab env)" && '
        shell(f"{in_lab}.venv/bin/berth engineer add alice -s prod")
        shell(f"{in_lab}pulumi stack init prod --no-select")
        plan = shell(f"{in_lab}.venv/bin/berth preview -s prod")
        assert "+ create node pool  2 × a4-highgpu-8g, 16 B200 GPUs" in plan
        assert "berth alice" in plan
        state = json.loads((fleet / ".lab/pulumi/.pulumi/stacks/my-fleet/lab.json").read_text())
        assert len(state["checkpoint"]["latest"]["resources"]) > 60
    finally:
        shell("make lab-clean")
    assert not (fleet / ".lab").exists()
