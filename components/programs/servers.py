"""Servers that the keeper asks: the API server, and heads, of which none may stop the keeper.

A head runs its tenant's programs, so nothing that it answers is trusted: an answer has a largest
size, and all questions to one head together have a deadline by the clock. This file also runs in
the keeper's pod, and imports only the standard library.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import socket
import ssl
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Object = dict[str, Any]

SECONDS = 15
"""Longest time of one answer of the API server, and of all answers of one head."""

MOST_BYTES = 2**20
"""Largest answer of a head: the list of a few thousand jobs. Sixteen of them at once, parsed, fit
into the keeper's 256 Mi."""

_MOST_BYTES_OF_API = 2**24
_PAGE = 100

SMALL_PAGE = 5
"""Objects of a page of a tenant's objects, each of which may have etcd's 1.5 MiB."""

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ApiError(Exception):
    """Error: the server does not answer or refuses; the message names the server and the reason."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class JsonServer:
    """Server that answers JSON over HTTP. It cannot redirect, and no proxy is asked."""

    url: str
    """Address of the server."""
    token: str = ""
    """Token of every request; "" for none."""
    tls: ssl.SSLContext | None = None
    """Trust and client certificate of an HTTPS server."""
    most_bytes: int = _MOST_BYTES_OF_API
    """Largest answer."""
    until: float | None = field(default=None, compare=False)
    """End of all answers, by the monotonic clock; None for `SECONDS` for each answer."""

    def ask(self, path: str, method: str = "GET", body: Object | None = None) -> str:
        """Return the text of an answer.

        Raises:
            ApiError: the server does not answer in time, answers too much, or refuses.
        """
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        now = time.monotonic()
        until = now + SECONDS if self.until is None else self.until
        try:
            with _connected(self.url, self.tls, until - now) as connection:
                connection.request(
                    method,
                    urllib.parse.urlsplit(self.url).path + path,
                    None if body is None else json.dumps(body),
                    headers,
                )
                response = connection.getresponse()
                answer = response.read(self.most_bytes + 1).decode(errors="replace")
        except (OSError, ValueError, http.client.HTTPException) as error:
            late = time.monotonic() >= until
            raise ApiError(
                f"{self.url} does not answer: {'not in time' if late else error}"
            ) from None
        if time.monotonic() >= until:
            # The end of a connection that is shut down looks like the end of an answer.
            raise ApiError(f"{self.url} does not answer: not in time")
        if response.status >= http.client.MULTIPLE_CHOICES:
            raise ApiError(
                f"{self.url} answers {response.status}: {_message(answer)}", response.status
            )
        if len(answer) > self.most_bytes:
            raise ApiError(f"{self.url} answers more than {self.most_bytes // 2**20} MiB")
        return answer

    def get(self, path: str) -> Object:
        """Return the object of an answer.

        Raises:
            ApiError: the server does not answer, refuses, or answers something else.
        """
        try:
            answer = json.loads(self.ask(path))
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ApiError(f"{self.url}{path.partition('?')[0]} does not answer an object")
        return answer

    def items(self, path: str, page_size: int = _PAGE, **query: str) -> Iterator[Object]:
        """Yield the items of a list of the API server, asked page by page.

        Raises:
            ApiError: the server does not answer, or refuses.
        """
        page = {**query, "limit": str(page_size)}
        while True:
            answer = self.get(f"{path}?{urllib.parse.urlencode(page)}")
            yield from answer["items"]
            following = (answer.get("metadata") or {}).get("continue")
            if not following:
                return
            page["continue"] = following


@contextlib.contextmanager
def _connected(
    url: str, tls: ssl.SSLContext | None, seconds: float
) -> Iterator[http.client.HTTPConnection]:
    """Connect to a server; the connection ends after a time, also if bytes drip in until then."""
    if seconds <= 0:
        raise TimeoutError
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    connection = http.client.HTTPConnection(host, parts.port, timeout=seconds)
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=tls)
    try:
        connection.connect()
        timer = threading.Timer(seconds, _shut, [connection.sock])
        timer.daemon = True
        timer.start()
        try:
            yield connection
        finally:
            timer.cancel()
    finally:
        connection.close()


def _shut(connected: socket.socket) -> None:
    """End a connection below its TLS, which another thread may be reading from."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def _message(answer: str) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return answer.strip()[:200]


def server_of_pod() -> JsonServer:
    """Return the API server of the pod that this program runs in.

    Raises:
        ApiError: the program does not run in a pod with a service account.
    """
    try:
        token = (_ACCOUNT / "token").read_text().strip()
        tls = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
        host = os.environ["KUBERNETES_SERVICE_HOST"]
        port = os.environ["KUBERNETES_SERVICE_PORT_HTTPS"]
    except (OSError, KeyError) as error:
        raise ApiError(f"neither a pod with a service account nor KUBECONFIG: {error}") from None
    address = f"[{host}]" if ":" in host else host
    return JsonServer(f"https://{address}:{port}", token, tls)


def server_of_kubeconfig(path: Path) -> JsonServer:
    """Return the API server of a kubeconfig's current context, without credential plugins.

    Raises:
        ApiError: the file cannot be read, or has no such context.
    """
    try:
        config = _parsed(path.read_text(encoding="utf-8"))
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        tls = ssl.create_default_context(
            cafile=cluster.get("certificate-authority"),
            cadata=_decoded(cluster, "certificate-authority-data") or None,
        )
        with tempfile.TemporaryDirectory() as folder:
            if certificate := _file(user, "client-certificate", Path(folder)):
                tls.load_cert_chain(certificate, _file(user, "client-key", Path(folder)))
        return JsonServer(cluster["server"].rstrip("/"), user.get("token", ""), tls)
    except (OSError, KeyError, TypeError, ValueError, StopIteration) as error:
        raise ApiError(f"{path} cannot be used: {error!r}") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # An image with Ray has a YAML library, which Ray needs.
        import yaml  # noqa: PLC0415

        return yaml.safe_load(text)


def _named(entries: Iterable[Object], name: str) -> Object:
    return next(entry for entry in entries if entry["name"] == name)


def _decoded(holder: Object, key: str) -> str:
    return base64.b64decode(holder.get(key, "")).decode()


def _file(user: Object, key: str, folder: Path) -> str | None:
    """Return the file of a certificate or key; data in the kubeconfig is written to a new file."""
    if text := _decoded(user, f"{key}-data"):
        path = folder / key
        path.touch(mode=0o600)
        path.write_text(text)
        return str(path)
    return user.get(key)
