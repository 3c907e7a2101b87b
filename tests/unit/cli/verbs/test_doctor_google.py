"""Requests of berth doctor to Google: credentials, addresses, and errors as one line each with
their remedy.
"""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from berth.cli.reach.google_cloud import BASES, GoogleClient, GoogleError, refusal
from berth.lab.google_api import addresses
from berth.lab.google_api.server import server
from berth.lab.home import LabHome
from tests.unit.cases import table
from tests.unit.serving import Handler, answer, serving

PROJECT = "your-project"


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of this machine, and none of Google's machines around."""
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", *(variable for variable, _ in BASES.values())):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setattr("google.auth.compute_engine._metadata._NO_GCE_CHECK", True)


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The lab's stand-in for Google, and its variables."""
    home = LabHome(tmp_path / "lab")
    home.cloud.mkdir(parents=True)
    with server(home, 0) as it:
        number = int(it.server_address[1])
        addresses.write_credential(home, number)
        for name, value in addresses.variables(home, number).items():
            monkeypatch.setenv(name, value)
        thread = threading.Thread(target=it.serve_forever, daemon=True)
        thread.start()
        yield number
        it.shutdown()
        thread.join()


def error_of(project: str = PROJECT) -> GoogleError:
    with pytest.raises(GoogleError) as caught:
        GoogleClient(project)
    return caught.value


def test_without_credentials_it_says_so_and_how_to_have_them() -> None:
    error = error_of()
    assert (error.kind, error.problem) == (
        "credentials",
        "there are no Google credentials (Application Default Credentials) on this machine",
    )
    assert error.remedy == "gcloud auth application-default login"


def test_a_credential_file_that_is_none_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "gone.json"))
    error = error_of()
    assert error.kind == "credentials"
    assert str(error).startswith(
        f"GOOGLE_APPLICATION_CREDENTIALS names {tmp_path}/gone.json, which cannot be used: "
    )


def test_the_stand_in_gives_its_token_and_says_that_it_is_simulated(port: int) -> None:
    google = GoogleClient(PROJECT)
    assert google.get("cloudresourcemanager", f"projects/{PROJECT}")["lifecycleState"] == "ACTIVE"
    assert google.simulated.startswith("the lab in ")
    assert port


def test_the_labs_credential_is_not_sent_to_google(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "GOOGLE_COMPUTE_CUSTOM_ENDPOINT", "https://compute.googleapis.com/compute/v1/"
    )
    error = error_of()
    assert error.kind == "credentials"
    assert (
        "GOOGLE_COMPUTE_CUSTOM_ENDPOINT does not name the lab: nothing was sent to"
        " compute.googleapis.com" in str(error)
    )
    assert "unset GOOGLE_APPLICATION_CREDENTIALS" in error.remedy
    assert port


def test_credentials_are_not_sent_in_clear_text(
    port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "adc.json"
    file.write_text(
        json.dumps(
            {
                "type": "authorized_user",
                "client_id": "a",
                "client_secret": "b",
                "refresh_token": "c",
            }
        )
    )
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", "http://203.0.113.7/compute/v1/")
    error = error_of()
    assert "GOOGLE_COMPUTE_CUSTOM_ENDPOINT is not https" in str(error)
    assert error.remedy == "unset GOOGLE_COMPUTE_CUSTOM_ENDPOINT"
    assert port


def test_what_nobody_answers_is_unreachable(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    google = GoogleClient(PROJECT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv(
            "GOOGLE_COMPUTE_CUSTOM_ENDPOINT",
            f"http://127.0.0.1:{free.getsockname()[1]}/compute/v1/",
        )
        with pytest.raises(GoogleError) as caught:
            google.get("compute", f"projects/{PROJECT}")
    assert caught.value.kind == "unreachable"
    assert caught.value.problem.startswith("Google Cloud cannot be reached: ")
    assert "Connection refused" in caught.value.problem
    assert "\n" not in caught.value.problem
    assert port


@contextmanager
def answering(statuses: list[int]) -> Iterator[str]:
    """A server that answers with these statuses, one after another, and then with the last."""

    def handle(handler: Handler) -> None:
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        answer(
            handler, {"name": "there"} if status == 200 else {"error": {"message": "later"}}, status
        )

    with serving(handle) as url:
        yield f"{url}/"


def test_an_error_that_passes_is_tried_once_more(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    google = GoogleClient(PROJECT)
    with answering([503, 200]) as url:
        monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", url)
        assert google.get("compute", "x") == {"name": "there"}
    with answering([503]) as url:
        monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", url)
        with pytest.raises(GoogleError, match=r"compute\.googleapis\.com answers 503: later"):
            google.get("compute", "x")
    assert port


@pytest.mark.parametrize(
    "case", table(__file__, "google_refusals.yaml"), ids=lambda case: case["error"][1]
)
def test_a_refusal_is_one_line_with_its_remedy(case: dict[str, Any]) -> None:
    error = refusal(case["status"], case["body"], PROJECT, "compute.googleapis.com")
    assert [error.kind, error.problem, error.remedy] == case["error"]
