"""Requests of berth doctor to Google: credentials, addresses, and errors as one line each with
their remedy.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from berth.cli.verbs.doctor.google import BASES, Google, GoogleError, refusal
from berth.lab.google_api import addresses
from berth.lab.google_api.server import server
from berth.lab.home import Home

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
    home = Home(tmp_path / "lab")
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
        Google(project)
    return caught.value


def test_without_credentials_it_says_so_and_how_to_have_them() -> None:
    error = error_of()
    assert (error.kind, error.problem) == (
        "credentials",
        "there are no Google credentials (Application Default Credentials) on this machine",
    )
    assert error.remedy == "gcloud auth application-default login"


def test_a_credential_file_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "gone.json"))
    error = error_of()
    assert error.kind == "credentials"
    assert str(error).startswith(f"GOOGLE_APPLICATION_CREDENTIALS names {tmp_path}/gone.json, which cannot be used: ")


def test_the_stand_in_gives_its_token_and_says_that_it_is_simulated(port: int) -> None:
    google = Google(PROJECT)
    assert google.get("cloudresourcemanager", f"projects/{PROJECT}")["lifecycleState"] == "ACTIVE"
    assert google.simulated.startswith("the lab in ")
    assert port


def test_the_labs_credential_is_not_sent_to_google(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", "https://compute.googleapis.com/compute/v1/")
    error = error_of()
    assert error.kind == "credentials"
    assert "GOOGLE_COMPUTE_CUSTOM_ENDPOINT does not name the lab: nothing was sent to compute.googleapis.com" in str(
        error
    )
    assert "unset GOOGLE_APPLICATION_CREDENTIALS" in error.remedy
    assert port


def test_credentials_are_not_sent_in_clear_text(port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "adc.json"
    file.write_text(
        json.dumps({"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"})
    )
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", "http://203.0.113.7/compute/v1/")
    error = error_of()
    assert "GOOGLE_COMPUTE_CUSTOM_ENDPOINT is not https" in str(error)
    assert error.remedy == "unset GOOGLE_COMPUTE_CUSTOM_ENDPOINT"
    assert port


def test_what_nobody_answers_is_unreachable(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    google = Google(PROJECT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}/compute/v1/")
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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
            self.send_response(status)
            body = json.dumps({"name": "there"} if status == 200 else {"error": {"message": "later"}}).encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as it:
        thread = threading.Thread(target=it.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{it.server_address[1]}/"
        it.shutdown()
        thread.join()


def test_an_error_that_passes_is_tried_once_more(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    google = Google(PROJECT)
    with answering([503, 200]) as url:
        monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", url)
        assert google.get("compute", "x") == {"name": "there"}
    with answering([503]) as url:
        monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", url)
        with pytest.raises(GoogleError, match=r"compute\.googleapis\.com answers 503: later"):
            google.get("compute", "x")
    assert port


def info(reason: str, **metadata: str) -> dict[str, Any]:
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    return {"error": {"message": "no", "details": [{"@type": kind, "reason": reason, "metadata": metadata}]}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "text", "remedy"),
    [
        (
            403,
            info("SERVICE_DISABLED", service="container.googleapis.com"),
            "disabled",
            "container.googleapis.com is not enabled",
            "gcloud services enable container.googleapis.com --project=your-project",
        ),
        (
            403,
            {
                "error": {
                    "message": "Compute Engine API has not been used",
                    "errors": [{"reason": "accessNotConfigured"}],
                }
            },
            "disabled",
            "compute.googleapis.com is not enabled",
            "gcloud services enable compute.googleapis.com --project=your-project",
        ),
        (
            403,
            info("BILLING_DISABLED"),
            "forbidden",
            "project your-project has no billing account",
            "gcloud billing projects link your-project --billing-account=BILLING_ACCOUNT",
        ),
        (
            403,
            info("USER_PROJECT_DENIED"),
            "forbidden",
            "the credentials count calls for a project that you may not use: no",
            "gcloud auth application-default set-quota-project your-project",
        ),
        (
            403,
            {"error": {"message": "Required 'x' permission\nfor y"}},
            "forbidden",
            "you may not read this: Required 'x' permission",
            "",
        ),
        (
            401,
            {"error": {"message": "expired"}},
            "credentials",
            "the Google credentials are not accepted: expired",
            "gcloud auth application-default login",
        ),
        (404, {"error": {"message": "was not found"}}, "absent", "was not found", ""),
        (500, "<html>", "refused", "compute.googleapis.com answers 500: HTTP status 500", ""),
    ],
)
def test_a_refusal_is_one_line_with_its_remedy(status: int, body: Any, kind: str, text: str, remedy: str) -> None:
    error = refusal(status, body, PROJECT, "compute.googleapis.com")
    assert (error.kind, error.problem, error.remedy) == (kind, text, remedy)
