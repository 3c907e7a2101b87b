"""Dashboard of a berth's head: requests through kubectl, with Ray's token.

kubectl forwards a port of the head, as `berth connect` does; NetworkPolicies stay closed. The token
goes in the header `x-ray-authorization` (ray 2.60.0,
python/ray/_private/authentication/http_token_authentication.py).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import IO, Any, Self

import urllib3
import websocket

from berth.cli.reach.berths import Berth
from berth.cli.reach.head import DASHBOARD, forwarding, local_port, read_token, ready_head
from berth.cli.reach.kubectl import Kubectl, private_folder
from berth.components.cluster.api import Object
from berth.components.core.errors import BerthError
from berth.components.core.printable import loads

_HEADER = "X-Ray-Authorization"
_SECONDS = 60.0
_UPLOAD_SECONDS = 600.0
_SILENT_SECONDS = 3.0
_NO_TOKEN = (401, 403)
_REFUSED = 400


class DashboardError(BerthError):
    """Dashboard that does not answer."""


class DashboardRefusedError(BerthError):
    """Answer of a dashboard that is not a success.

    Attributes:
        status: HTTP status.
        text: the dashboard's words, which may be a traceback.
    """

    def __init__(self, name: str, status: int, text: str) -> None:
        self.status, self.text = status, text
        why = "does not accept the token" if status in _NO_TOKEN else "refuses"
        super().__init__(f"the dashboard of {name} {why}: {status} {self.last_line}")

    @property
    def last_line(self) -> str:
        """Last line of the dashboard's words: of a traceback the error itself."""
        lines = [line.strip() for line in self.text.replace("\\n", "\n").splitlines()]
        return next((line for line in reversed(lines) if line.strip("'\".")), "no reason")


class Dashboard:
    """Dashboard at an address of this machine."""

    def __init__(self, name: str, url: str, token: str | None) -> None:
        self._name, self._url = name, url
        self._headers = {_HEADER: f"Bearer {token}"} if token else {}
        retries = urllib3.Retry(total=4, backoff_factor=0.3, status=0, allowed_methods={"GET"})
        self._pool = urllib3.PoolManager(retries=retries)

    def ask(self, method: str, path: str, *, body: Any = None) -> Any:
        """Send a request, with a JSON body or none; return the JSON of the answer, or None.

        Raises:
            DashboardError: the dashboard does not answer, or not with JSON.
            DashboardRefusedError: it refuses.
        """
        headers = self._headers | ({} if body is None else {"Content-Type": "application/json"})
        text = self._send(method, path, headers, None if body is None else json.dumps(body), _SECONDS)
        try:
            return loads(text) if text else None
        except ValueError:
            raise DashboardError(
                f"the dashboard of {self._name} answers {path} with something other than JSON"
            ) from None

    def put(self, path: str, file: IO[bytes], size: int, report: Callable[[int], object]) -> None:
        """Send a file; report the number of bytes of each part.

        Raises:
            DashboardError: the dashboard does not answer.
            DashboardRefusedError: it refuses.
        """
        headers = self._headers | {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        self._send("PUT", path, headers, _Reported(file, report), _UPLOAD_SECONDS)

    def messages(self, path: str) -> Iterator[str]:
        """Yield the texts of a WebSocket until its end, and "" in each silent moment.

        Raises:
            DashboardError: the connection fails or breaks off.
            DashboardRefusedError: the dashboard refuses.
        """
        headers = [f"{key}: {value}" for key, value in self._headers.items()]
        url = f"ws{self._url.removeprefix('http')}{path}"
        try:
            connection = websocket.create_connection(
                url, _SILENT_SECONDS, header=headers, suppress_origin=True, http_no_proxy=["127.0.0.1"]
            )
        except websocket.WebSocketBadStatusException as error:
            text = (error.resp_body or b"").decode(errors="replace")
            raise DashboardRefusedError(self._name, error.status_code, text) from None
        except (websocket.WebSocketException, OSError) as error:
            raise self._no_answer(error) from None
        with contextlib.closing(connection):
            while True:
                try:
                    code, data = connection.recv_data()
                except websocket.WebSocketTimeoutException:
                    yield ""
                    continue
                except (websocket.WebSocketException, OSError) as error:
                    raise self._no_answer(error) from None
                if code == websocket.ABNF.OPCODE_CLOSE:
                    return
                yield data.decode(errors="replace")

    def _send(self, method: str, path: str, headers: dict[str, str], body: Any, seconds: float) -> str:
        try:
            answer = self._pool.request(
                method,
                self._url + path,
                headers=headers,
                body=body,
                timeout=urllib3.Timeout(10, seconds),
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._no_answer(error) from None
        text = answer.data.decode(errors="replace")
        if answer.status >= _REFUSED:
            raise DashboardRefusedError(self._name, answer.status, text)
        return text

    def _no_answer(self, error: Exception) -> DashboardError:
        reason = getattr(error, "reason", None) or error
        return DashboardError(f"the dashboard of {self._name} does not answer: {str(reason).rpartition(': ')[2]}")


class _Reported:
    """File that reports each part that is read."""

    def __init__(self, file: IO[bytes], report: Callable[[int], object]) -> None:
        self._file, self._report = file, report

    def read(self, size: int = -1) -> bytes:
        """Return the next part."""
        part = self._file.read(size)
        self._report(len(part))
        return part


class Connection:
    """Way to the dashboard of a berth while a `with` block runs.

    Attributes:
        berth: the berth.
        head: pod of the head that the way leads to.
        dashboard: the dashboard.
    """

    def __init__(self, berth: Berth) -> None:
        self.berth = berth
        self.head: Object
        self.dashboard: Dashboard
        self._all, self._way = ExitStack(), ExitStack()
        self._program: Kubectl
        self._token: str | None = None

    def __enter__(self) -> Self:
        """Connect to the head.

        Raises:
            BerthError: the berth has no head that is ready and runs, or nothing leads there.
        """
        self.head = ready_head(self.berth)
        self._token = read_token(self.berth)
        with ExitStack() as entered:
            self._program = Kubectl(self.berth.environment.kubeconfig, entered.enter_context(private_folder()))
            self.renew()
            self._all = entered.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        """Disconnect."""
        with self._all:
            self._way.close()

    def renew(self) -> None:
        """Connect to the same head again.

        Raises:
            DashboardError: nothing leads to the head.
        """
        self._way.close()
        self._way = ExitStack()
        self.dashboard = Dashboard(self.berth.name, self._way.enter_context(self._forwarded()), self._token)

    @contextlib.contextmanager
    def _forwarded(self) -> Iterator[str]:
        port = local_port(None, 0)
        with forwarding(self._program, self.berth.namespace, self.head, {DASHBOARD: port}) as process:
            if process is None:
                raise DashboardError(f"kubectl cannot forward the dashboard of {self.berth.name}")
            yield f"http://127.0.0.1:{port}"
