"""Question to a registry: which digest has a tag.

The API is that of the OCI distribution specification
(https://github.com/opencontainers/distribution-spec/blob/main/spec.md); the way to a token is
https://distribution.github.io/distribution/spec/auth/token/.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit

from berth.cli.images.login import Login, login_of
from berth.cli.images.reference import Reference, is_loopback
from berth.components.core.errors import BerthError

# The list for all platforms comes first: its digest holds on nodes of any architecture.
_KINDS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_MOST_BYTES = 4 << 20
_RETRIES = 2
_LONGEST_PAUSE = 20
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_MANY = 401, 403, 404, 429


class RegistryError(BerthError):
    """Registry that has no answer, with the reason."""


class _Unredirected(urllib.request.HTTPRedirectHandler):
    """Handler that follows no redirect, which would take the login to another host."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Registries:
    """Registries, asked with the user's own logins.

    Attributes:
        login: returns the login of a registry by its name in docker's configuration.
        seconds: longest wait for one answer.
        pause: waits for some seconds.
    """

    login: Callable[[str], Login | None] = login_of
    seconds: float = 20
    pause: Callable[[float], None] = time.sleep
    _authorized: dict[tuple[str, str], str] = field(default_factory=dict, init=False, repr=False)

    def digest_of(self, image: Reference) -> str:
        """Return the digest that a tag has now, after a check of the manifest itself.

        Raises:
            RegistryError: the registry does not answer, refuses, or answers something else.
            BerthError: the login cannot be found out.
        """
        found = self._ask(image, image.tag, "HEAD").headers.get("docker-content-digest", "")
        # A registry need not answer HEAD with the digest, and a manifest proves what it answers.
        answer = self._ask(image, found or image.tag, "GET")
        digest = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
        if found and found != digest:
            raise RegistryError(
                f"{image.host} says that {image.name} has digest {found}, and sends a manifest with {digest}"
            )
        return digest

    def _ask(self, image: Reference, which: str, method: str) -> _Answer:
        """Return the answer to a question for a manifest."""
        url = f"{image.server}/v2/{image.repository}/manifests/{which}"
        key = (image.server, image.repository)
        busy = 0
        while True:
            headers = {"Accept": ", ".join(_KINDS)}
            if key in self._authorized:
                headers["Authorization"] = self._authorized[key]
            answer = self._send(image.host, url, method, headers)
            if answer.status == _UNAUTHORIZED and key not in self._authorized:
                self._authorized[key] = self._authorization(image, answer.headers.get("www-authenticate", ""))
                continue
            if answer.status == _TOO_MANY and busy < _RETRIES:
                busy += 1
                self.pause(_pause(answer.headers.get("retry-after", "")))
                continue
            break
        if answer.status in (_UNAUTHORIZED, _FORBIDDEN):
            raise RegistryError(
                f"{image.host} does not let you read {image.name}; log in with `docker login {image.host}`, or for"
                f" Artifact Registry: gcloud auth configure-docker {image.host}"
            )
        if answer.status == _NOT_FOUND:
            raise RegistryError(f"{image.host} has no image {image.name}")
        if answer.status == _TOO_MANY:
            raise RegistryError(f"{image.host} has had too many requests; try again later, or log in there")
        if answer.status != 200:  # noqa: PLR2004 - OK
            raise RegistryError(f"{image.host} answers the question for {image.name} with HTTP status {answer.status}")
        return answer

    def _authorization(self, image: Reference, challenge: str) -> str:
        """Return the header that a registry's challenge asks for."""
        scheme, _, rest = challenge.partition(" ")
        asked = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        login = self.login(image.login)
        if scheme.lower() == "basic":
            return login.basic if login else ""
        realm = asked.get("realm", "")
        parts = urlsplit(realm)
        secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.netloc))
        if scheme.lower() != "bearer" or not secure:
            raise RegistryError(f"{image.host} asks for a login in a way that berth does not know: {challenge!r}")
        scope = asked.get("scope") or f"repository:{image.repository}:pull"
        query = {"scope": scope} | ({"service": asked["service"]} if "service" in asked else {})
        if login and login.identity_token:
            form = query | {"grant_type": "refresh_token", "refresh_token": login.identity_token, "client_id": "berth"}
            answer = self._send(image.host, realm, "POST", {}, urlencode(form).encode())
        else:
            mark = "&" if parts.query else "?"
            headers = {"Authorization": login.basic} if login else {}
            answer = self._send(image.host, f"{realm}{mark}{urlencode(query)}", "GET", headers)
        try:
            given = json.loads(answer.body) if answer.status == 200 else {}  # noqa: PLR2004 - OK
            token = given.get("token") or given.get("access_token")
        except (ValueError, AttributeError):
            token = None
        if not token:
            raise RegistryError(
                f"{image.host} gives no token for {image.name} (HTTP status {answer.status});"
                f" log in with `docker login {image.host}`"
            )
        return f"Bearer {token}"

    def _send(self, host: str, url: str, method: str, headers: Mapping[str, str], body: bytes | None = None) -> _Answer:
        request = urllib.request.Request(url, body, dict(headers), method=method)  # noqa: S310 - http or https above
        opener = urllib.request.build_opener(_Unredirected())
        try:
            with opener.open(request, timeout=self.seconds) as response:
                return _Answer(response.status, _lower(response.headers), _read(host, response))
        except urllib.error.HTTPError as error:
            with error:
                return _Answer(error.code, _lower(error.headers), b"")
        except (OSError, HTTPException) as error:
            raise RegistryError(f"{host} does not answer: {getattr(error, 'reason', error) or error!r}") from None


def _lower(headers: Message[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in headers.items()}


def _read(host: str, response: Any) -> bytes:
    body = bytes(response.read(_MOST_BYTES + 1))
    if len(body) > _MOST_BYTES:
        raise RegistryError(f"{host} answers with more than {_MOST_BYTES >> 20} MiB, which no manifest has")
    return body


def _pause(text: str) -> float:
    """Return the seconds of a header `Retry-After`."""
    return min(float(text), _LONGEST_PAUSE) if text.isdecimal() else 1.0
