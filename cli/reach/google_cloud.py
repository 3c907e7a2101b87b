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

from berth.components.core.errors import BerthError

BASES: dict[str, tuple[str, str]] = {
    "compute": ("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", "https://compute.googleapis.com/compute/v1/"),
    "container": ("GOOGLE_CONTAINER_CUSTOM_ENDPOINT", "https://container.googleapis.com/v1/"),
    "serviceusage": (
        "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT",
        "https://serviceusage.googleapis.com/v1/",
    ),
    "cloudresourcemanager": (
        "GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT",
        "https://cloudresourcemanager.googleapis.com/v1/",
    ),
    "cloudquotas": (
        "GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT",
        "https://cloudquotas.googleapis.com/v1/",
    ),
    "iam": ("GOOGLE_IAM_CUSTOM_ENDPOINT", "https://iam.googleapis.com/v1/"),
    "storage": ("GOOGLE_STORAGE_CUSTOM_ENDPOINT", "https://storage.googleapis.com/storage/v1/"),
    "cloudkms": ("GOOGLE_KMS_CUSTOM_ENDPOINT", "https://cloudkms.googleapis.com/v1/"),
}
"""Environment variable and address of each API, as the provider has them
(hashicorp/terraform-provider-google, "Google Provider Configuration Reference")."""

SIMULATED_HEADER = "X-Berth-Simulated"
"""Header by which a simulation of Google Cloud names itself."""

LOGIN = "gcloud auth application-default login"

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TIMEOUT_SECONDS = (5.0, 15.0)
_TOKEN_SECONDS = 10
_RETRIES = 1
_PASSING_ERRORS = (429, 500, 502, 503, 504)
_FIRST_ERROR = 400
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_NOT_FOUND = 404

Kind = Literal["unreachable", "credentials", "disabled", "forbidden", "absent", "refused"]


class GoogleError(BerthError):
    """Google Cloud cannot be asked, or refuses; of kind `absent`, there is no such resource."""

    def __init__(self, kind: Kind, problem: str, remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.kind = kind


def base_of(service: str) -> str:
    """Return the address of an API, with a slash at its end."""
    variable, default = BASES[service]
    return (os.environ.get(variable) or default).rstrip("/") + "/"


def resource_name(path: object) -> str:
    """Return the name of a resource, the last part of its address; empty without one."""
    return str(path or "").rsplit("/", 1)[-1]


class GoogleClient:
    """Google Cloud as the caller may see it.

    Attributes:
        project: the project that calls are about.
        simulated: name of the simulation that answered; empty for Google Cloud itself.
        account: service account of the caller; empty for people.

    Raises:
        GoogleError: there are no credentials that work, or they could leak.
    """

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
        """Return the answer of an API, a key of BASES, to a GET below its address.

        Raises:
            GoogleError: Google Cloud cannot be asked, or refuses.
        """
        return self._call("GET", service, path, params=query)

    def lacking(self, service: str, path: str, permissions: Sequence[str]) -> list[str]:
        """Return the permissions on a resource that the caller does not have.

        Raises:
            GoogleError: Google Cloud cannot be asked, or refuses.
        """
        answer = self._call(
            "POST", service, f"{path}:testIamPermissions", json={"permissions": list(permissions)}
        )
        granted = answer.get("permissions", [])
        return [permission for permission in permissions if permission not in granted]

    def project_policy(self, project: str) -> dict[str, Any]:
        """Return the IAM policy of a project, without what its folder and organization add.

        Raises:
            GoogleError: Google Cloud cannot be asked, or refuses.
        """
        return self._call(
            "POST", "cloudresourcemanager", f"projects/{project}:getIamPolicy", json={}
        )

    def exists(self, service: str, path: str, **query: Any) -> dict[str, Any] | None:
        """Return the answer to a GET; None if there is no such resource.

        Raises:
            GoogleError: Google Cloud cannot be asked, or refuses for another reason.
        """
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
                "refused",
                f"{urlsplit(response.url).netloc} does not answer like Google's API",
                "look at proxies between this machine and Google",
            )
        return body


def _credentials(project: str) -> Any:
    """Return the credentials, which charge calls to a project where they name none."""
    # Outside of Google's machines nobody answers there: one short try is enough.
    os.environ.setdefault("GCE_METADATA_TIMEOUT", "1")
    os.environ.setdefault("GCE_METADATA_DETECT_RETRIES", "1")
    try:
        with _in_own_words(), warnings.catch_warnings():
            # Google warns of credentials without a project, which is set below.
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
    base = urlsplit(base_of(service))
    variable, _ = BASES[service]
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
    """Return an API's error answer as an error (https://docs.cloud.google.com/apis/design/errors).

    Args:
        status: HTTP status of the answer.
        body: the answer, None where it is not JSON.
        project: the project that the call was about.
        api: name of the API, such as `compute.googleapis.com`.
    """
    error = body.get("error") if isinstance(body, dict) else None
    answer = error if isinstance(error, dict) else {}
    message = str(answer.get("message") or f"HTTP status {status}").strip().splitlines()[0]
    reasons = _reasons(answer)
    if status == _NOT_FOUND:
        return GoogleError("absent", message)
    if status == _UNAUTHORIZED:
        problem = f"the Google credentials are not accepted: {message}"
        return GoogleError("credentials", problem, LOGIN)
    if reasons & {"SERVICE_DISABLED", "accessNotConfigured"}:
        service = _named_service(answer) or api
        return GoogleError(
            "disabled",
            f"{service} is not enabled",
            f"gcloud services enable {service} --project={project}",
        )
    if "BILLING_DISABLED" in reasons:
        return GoogleError(
            "forbidden",
            f"project {project} has no billing account",
            f"gcloud billing projects link {project} --billing-account=BILLING_ACCOUNT",
        )
    if "USER_PROJECT_DENIED" in reasons:
        return GoogleError(
            "forbidden",
            f"the credentials count calls for a project that you may not use: {message}",
            f"gcloud auth application-default set-quota-project {project}",
        )
    if status == _FORBIDDEN:
        return GoogleError("forbidden", f"you may not read this: {message}")
    return GoogleError("refused", f"{api} answers {status}: {message}")


def _details(error: dict[str, Any]) -> list[dict[str, Any]]:
    return [detail for detail in error.get("details") or [] if isinstance(detail, dict)]


def _reasons(error: dict[str, Any]) -> set[str]:
    """Return the reasons that an error names, in its details or in the older list of errors."""
    entries = [*_details(error), *(error.get("errors") or [])]
    return {str(entry["reason"]) for entry in entries if entry.get("reason")}


def _named_service(error: dict[str, Any]) -> str:
    """Return the API that an error is about; empty where no detail names one."""
    for detail in _details(error):
        metadata = detail.get("metadata") or {}
        if "service" in metadata:
            return str(metadata["service"])
    return ""


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
