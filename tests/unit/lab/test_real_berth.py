"""Settings of the berth on the real node, which `make lab-real` writes."""

import shutil
from pathlib import Path

import pytest

from berth.lab import real_berth
from berth.stacks.load.stack import load_stack
from tests.pages.page import CLONE


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the lab's environment."""
    (tmp_path / "stacks").mkdir()
    for name in ("Pulumi.yaml", "stacks/Pulumi.lab.yaml"):
        shutil.copy(CLONE / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_settings_are_written_and_valid(project: Path) -> None:
    real_berth.provide_settings()
    assert (project / "stacks/Pulumi.real.yaml").exists()
    load_stack(real_berth.STACK)


def test_settings_of_the_user_stay(project: Path) -> None:
    own = project / "stacks/Pulumi.real.yaml"
    own.write_text("config: {}\n")
    real_berth.provide_settings()
    assert own.read_text() == "config: {}\n"


def test_a_checkout_as_shipped_has_no_engineers_stack() -> None:
    # The walkthroughs create stacks of engineers, and find no file of that name.
    shipped = [path.name for path in (CLONE / "stacks").glob("Pulumi.*.yaml")]
    assert sorted(set(shipped) - {"Pulumi.real.yaml"}) == [
        "Pulumi.dev.yaml",
        "Pulumi.lab.yaml",
        "Pulumi.prod.yaml",
    ]
