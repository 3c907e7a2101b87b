"""Client of Google Cloud's REST APIs, with the caller's Application Default Credentials."""

import contextlib
import functools
import ipaddress
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import google.auth
import requests
import urllib3
from google.auth import exceptions, external_account
from google.auth.transport.requests import AuthorizedSession, Request
from google.oauth2.credentials import Credentials as UserCredentials

from berth.components.core import fast_yaml
from berth.components.core.errors import BerthError

_TABLES = fast_yaml.load_beside(__file__)

BASES: dict[str, tuple[str, str]] = {api: tuple(base) for api, base in _TABLES["apis"].items()}
"""Environment variable and address of each API."""

SIMULATED_HEADER = "X-Berth-Simulated"
"""Header by which a simulation of Google Cloud names itself."""

LOGIN = "gcloud auth application-default login"

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TIMEOUT_SECONDS = (5.0, 15.0)
_TOKEN_SECONDS = 10
_RETRIES = 1
_PASSING_ERRORS = (429, 500, 502, 503, 504)
_FIRST_ERROR = 400

Kind = Literal["unreachable", "credentials", "disabled", "forbidden", "absent", "refused"]


class GoogleError(BerthError):
    """Google Cloud cannot be asked, or refuses; `kind` `absent`: there is no such resource."""

    def __init__(self, kind: Kind, problem: str, remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.kind = kind


def base_of(service: str) -> str:
    """Return the address of an API, with a slash at its end."""
    variable, default = BASES[service]
    return (os.environ.get(variable) or default).rstrip("/") + "/"


def last(path: object) -> str:
    """Return the name of a resource, the last part of its address."""
    return str(path or "").rsplit("/", 1)[-1]


class Google:
    """Google Cloud as the caller may see it; `simulated` names a simulation, "" the real one."""

    def __init__(self, project: str) -> None:
        """Find the credentials, by default charging calls to the project, and get a token."""
        self.project = project
        self.simulated = ""
        credentials = _credentials(project)
        self.account = str(getattr(credentials, "service_account_email", "") or "")
        only_here = isinstance(credentials, external_account.Credentials) and _is_loopback(
            credentials.info.get("token_url", "")
        )
        for service in BASES:
            _check_base(service, only_here=only_here)
        plain = requests.Session()
        plain.trust_env = not only_here  # a proxy does not know this machine's loopback
        ask = functools.partial(Request(plain), timeout=_TOKEN_SECONDS)
        with _in_own_words():
            credentials.refresh(ask)
        session_of: Any = AuthorizedSession  # has no types
        self._session = session_of(credentials, auth_request=ask)
        self._session.trust_env = plain.trust_env
        retry = urllib3.Retry(
            total=_RETRIES,
            status_forcelist=_PASSING_ERRORS,
            allowed_methods=None,
            backoff_factor=0.3,
            raise_on_status=False,
        )
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))

    def get(self, service: str, path: str, **query: Any) -> dict[str, Any]:
        """Return the answer of an API, a key of BASES, to a GET below its address."""
        return self._call("GET", service, path, params=query)

    def lacking(self, service: str, path: str, permissions: Sequence[str]) -> list[str]:
        """Return the permissions on a resource that the caller does not have."""
        held = self._call(
            "POST", service, f"{path}:testIamPermissions", json={"permissions": list(permissions)}
        )
        return [
            permission
            for permission in permissions
            if permission not in held.get("permissions", [])
        ]

    def exists(self, service: str, path: str, **query: Any) -> dict[str, Any] | None:
        """Return the answer to a GET; None if there is no such resource."""
        try:
            return self.get(service, path, **query)
        except GoogleError as error:
            if error.kind == "absent":
                return None
            raise

    def _call(self, method: str, service: str, path: str, **arguments: Any) -> dict[str, Any]:
        with _in_own_words():
            response = self._session.request(
                method, base_of(service) + path, timeout=_TIMEOUT_SECONDS, **arguments
            )
        self.simulated = response.headers.get(SIMULATED_HEADER, self.simulated)
        try:
            body = response.json()
        except ValueError:
            body = None
        if response.status_code >= _FIRST_ERROR:
            raise refusal(response.status_code, body, self.project, f"{service}.googleapis.com")
        if not isinstance(body, dict):
            raise GoogleError(
                "refused", f"{urlsplit(response.url).netloc} does not answer like Google's API"
            )
        return body


def _credentials(project: str) -> Any:
    """Return the credentials, which charge calls to a project where they name none."""
    # Outside of Google's machines nobody answers there: one short try is enough.
    os.environ.setdefault("GCE_METADATA_TIMEOUT", "1")
    os.environ.setdefault("GCE_METADATA_DETECT_RETRIES", "1")
    try:
        with (
            _in_own_words(),
            warnings.catch_warnings(),
        ):  # about credentials without a project, which is set below
            warnings.simplefilter("ignore")
            credentials: Any = google.auth.default(scopes=[_SCOPE])[0]
    except (exceptions.GoogleAuthError, OSError, ValueError) as error:
        problem = (
            "there are no Google credentials (Application Default Credentials) on this machine"
        )
        if named := os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
            problem = (
                f"GOOGLE_APPLICATION_CREDENTIALS names {named}, which cannot be used:"
                f" {_first(error)}"
            )
        raise GoogleError("credentials", problem, LOGIN) from None
    if isinstance(credentials, UserCredentials) and credentials.quota_project_id is None:
        return credentials.with_quota_project(project)
    return credentials


@contextlib.contextmanager
def _in_own_words() -> Iterator[None]:
    """Turn failures of the connection and of the credentials into errors of berth."""
    try:
        yield
    except exceptions.RefreshError as error:
        raise GoogleError(
            "credentials", f"the Google credentials no longer work: {_first(error)}", LOGIN
        ) from None
    except (exceptions.TransportError, requests.RequestException) as error:
        raise GoogleError(
            "unreachable",
            f"Google Cloud cannot be reached: {_cause(error)}",
            "curl -sS -o /dev/null https://compute.googleapis.com   # network, proxy (HTTPS_PROXY)"
            " or firewall",
        ) from None


def _check_base(service: str, *, only_here: bool) -> None:
    """Send the lab's credential to the lab alone, and no real one in clear text."""
    base, variable = urlsplit(base_of(service)), BASES[service][0]
    if only_here and not _is_loopback(base.geturl()):
        raise GoogleError(
            "credentials",
            f"the Google credentials are a lab's, but {variable} does not name the lab: nothing was"
            f" sent to {base.netloc}",
            'eval "$(.venv/bin/berth lab env)", or for a real project: unset'
            " GOOGLE_APPLICATION_CREDENTIALS",
        )
    if base.scheme != "https" and not _is_loopback(base.geturl()):
        raise GoogleError(
            "refused",
            f"{variable} is not https: credentials are not sent there",
            f"unset {variable}",
        )


def refusal(status: int, body: Any, project: str, api: str) -> GoogleError:
    """Return an API's error answer as an error."""
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    message = str(error.get("message") or f"HTTP status {status}").strip().splitlines()[0]
    details = [detail for detail in error.get("details") or [] if isinstance(detail, dict)]
    reasons = {
        str(item.get("reason"))
        for item in (*details, *(error.get("errors") or []))
        if item.get("reason")
    }
    services = [
        detail["metadata"]["service"]
        for detail in details
        if "service" in (detail.get("metadata") or {})
    ]
    facts = {
        "message": message,
        "project": project,
        "api": api,
        "status": status,
        "service": [*services, api][0],
    }
    row = next(
        row
        for row in _TABLES["refusals"]
        if row.get("status", status) == status
        and ("reasons" not in row or reasons & set(row["reasons"]))
    )
    return GoogleError(
        row["kind"], row["problem"].format(**facts), row.get("remedy", "").format(**facts)
    )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _first(error: Exception) -> str:
    text = str(error.args[0] if error.args else error).strip().splitlines()
    return text[0] if text else type(error).__name__


def _cause(error: BaseException) -> str:
    """Return the innermost reason; each layer wraps the one below in its own words."""
    inner = [
        part
        for part in (*error.args, getattr(error, "reason", None))
        if isinstance(part, BaseException)
    ]
    return _cause(inner[0]) if inner else str(error).split(": ", 1)[-1] or type(error).__name__
