"""Lab of the project's folder: whose variables a command has, and what is said while it is down."""

import json
import os
from pathlib import Path

import pytest

from berth.cli.shell import lab_here
from berth.components.core.errors import BerthError


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lab of a project, which is down."""
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / ".lab").mkdir()
    (tmp_path / ".lab" / "berth-lab").touch()
    monkeypatch.chdir(tmp_path)
    for name in ("BERTH_LAB", "PULUMI_BACKEND_URL", "KUBECONFIG"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PATH", "/usr/bin")
    return tmp_path / ".lab"


def test_a_lab_that_is_up_is_used(lab: Path) -> None:
    variables = {"PATH": "/lab/bin", "BERTH_LAB": str(lab), "KUBECONFIG": "/lab/kubeconfig"}
    (lab / "environment.json").write_text(json.dumps(variables))
    lab_here.enter_lab()
    assert os.environ["PATH"] == "/lab/bin:/usr/bin"
    assert os.environ["KUBECONFIG"] == "/lab/kubeconfig"
    lab_here.require_up()


def test_a_lab_that_is_down_is_named_in_the_place_of_a_real_backend(lab: Path) -> None:
    assert lab.is_dir()
    lab_here.enter_lab()
    assert os.environ["KUBECONFIG"] == ""
    with pytest.raises(BerthError, match=r"the lab in \.lab is not up") as caught:
        lab_here.require_up()
    assert "make lab" in caught.value.remedy


def test_the_lab_of_a_shell_that_was_ended_since_is_named(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERTH_LAB", str(lab))
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{lab}/pulumi")
    with pytest.raises(BerthError, match=r"the lab in \.lab is not up"):
        lab_here.require_up()


@pytest.mark.parametrize("variable", ["BERTH_LAB", "PULUMI_BACKEND_URL"])
def test_a_shell_that_names_another_backend_has_it(
    lab: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab / "environment.json").write_text(
        json.dumps({"PATH": "/lab/bin", "KUBECONFIG": "/lab/kubeconfig"})
    )
    monkeypatch.setenv(variable, "elsewhere")
    lab_here.enter_lab()
    lab_here.require_up()
    assert os.environ["KUBECONFIG"] == ""
