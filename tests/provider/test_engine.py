"""Shipped stacks on the real engine and Google's own provider: each previews."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from berth.lab import environment, programs
from berth.lab.home import LabHome
from berth.lab.progress import LabProgress
from berth.lab.toolchain.ensure import programs_of
from berth.lab.toolchain.tools import PULUMI, PULUMI_KUBERNETES, PULUMI_PYTHON
from tests.provider.edits import shipped
from tests.provider.plugin import CLONE, NAME, program
from tests.provider.rest import GoogleApis, serving, variables

pytestmark = pytest.mark.provider


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Environment of the engine, with Google's provider where a lab has its own."""
    plugin = program()
    home = LabHome(tmp_path_factory.mktemp("engine"))
    tools = programs_of([PULUMI, PULUMI_PYTHON, PULUMI_KUBERNETES], LabProgress())
    programs.write_bin(home, tools)
    programs.write_plugins(home, tools)
    installed = next(home.pulumi_home.glob(f"plugins/resource-gcp-v*/{NAME}"))
    installed.unlink()
    installed.symlink_to(plugin)
    home.backend.mkdir(parents=True, exist_ok=True)
    with serving(GoogleApis()) as address:
        own = {"PULUMI_CONFIG_PASSPHRASE": "of this test"}
        yield {**os.environ, **environment.variables(home), **variables(address), **own}


# The lab's own stack takes no passphrase but the lab's, and that one in the lab only.
@pytest.mark.parametrize("stack", sorted(shipped().keys() - {"lab"}))
def test_a_shipped_stack_previews(stack: str, engine: Mapping[str, str], tmp_path: Path) -> None:
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(CLONE / name, tmp_path)
    shutil.copytree(CLONE / "stacks", tmp_path / "stacks")
    for file in (tmp_path / "stacks/gallery").glob("Pulumi.*.yaml"):
        shutil.copy(file, tmp_path / "stacks")

    _pulumi(["stack", "init", stack, "--no-select"], tmp_path, engine)
    preview = json.loads(_pulumi(["preview", "-s", stack, "--json"], tmp_path, engine))

    assert preview["changeSummary"].keys() == {"create"}
    google = [step for step in preview["steps"] if "gcp:" in step["urn"]]
    assert len(google) > len(shipped()[stack].pools)


def _pulumi(command: list[str], folder: Path, variables: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["pulumi", *command, "--non-interactive"],
        cwd=folder,
        env={**variables, "PYTHONPATH": str(CLONE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
