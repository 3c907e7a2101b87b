"""Place of Pulumi's state: on this machine or elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from berth.cli.backend import is_remote

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
