"""Place of Pulumi's state: on this machine, where it is read, or elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from berth.cli.backend import is_remote, state_in_folder

BUCKET, FOLDER = "gs://states", "file:///states"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Project without a backend, on a machine where nobody has logged in."""
    (tmp_path / "Pulumi.yaml").write_text("name: berth\nruntime: python\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    monkeypatch.delenv("PULUMI_CREDENTIALS_PATH", raising=False)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    return tmp_path


def log_in(place: Path, url: str) -> None:
    (place / "home").mkdir()
    (place / "home" / "credentials.json").write_text(json.dumps({"current": url, "accounts": {}}))


def test_nothing_says_where() -> None:
    assert not is_remote()


@pytest.mark.parametrize(("url", "remote"), [(BUCKET, True), ("https://api.pulumi.com", True), (FOLDER, False)])
def test_the_login_says_where(place: Path, url: str, remote: bool) -> None:  # noqa: FBT001 (a parameter)
    log_in(place, url)
    assert is_remote() is remote


def test_the_project_comes_before_the_login_and_the_environment_before_both(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(place, FOLDER)
    with (place / "Pulumi.yaml").open("a") as file:
        file.write(f"backend:\n  url: {BUCKET}\n")
    assert is_remote()
    monkeypatch.setenv("PULUMI_BACKEND_URL", FOLDER)
    assert not is_remote()


@pytest.mark.parametrize("text", ["", "null", "[", '{"current": null}', '"text"'])
def test_a_login_that_cannot_be_read_says_nothing(place: Path, text: str) -> None:
    log_in(place, BUCKET)
    (place / "home" / "credentials.json").write_text(text)
    assert not is_remote()


RESOURCES = [{"urn": "urn:pulumi:env::berth::pulumi:pulumi:Stack::berth-env"}]


def write_state(folder: Path, **latest: object) -> None:
    path = folder / ".pulumi/stacks/berth/env.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"version": 3, "checkpoint": {"stack": "env", "latest": latest}}))


def test_a_state_in_a_folder_is_read_from_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place / "a folder"
    write_state(folder, resources=RESOURCES)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"{folder.as_uri()}?metadata=skip")
    assert state_in_folder("env") == {"version": 3, "deployment": {"resources": RESOURCES}}
    assert state_in_folder("other") is None


@pytest.mark.parametrize("url", [BUCKET, "https://api.pulumi.com", "file://~", "file://.", ""])
def test_another_state_is_pulumis_to_read(place: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_state(place, resources=RESOURCES)
    monkeypatch.setenv("PULUMI_BACKEND_URL", url)
    assert state_in_folder("env") is None


@pytest.mark.parametrize("latest", [{}, {"resources": None}, {"resources": []}])
def test_a_stack_that_was_never_up_has_no_state(
    place: Path, latest: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_state(place, **latest)
    monkeypatch.setenv("PULUMI_BACKEND_URL", place.as_uri())
    assert state_in_folder("env") is None
