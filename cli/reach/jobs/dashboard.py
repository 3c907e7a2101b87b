"""Dashboard of a berth's head: requests through kubectl, with Ray's token.

kubectl forwards a port of the head, as `berth connect` does; NetworkPolicies stay closed. The token
goes in the header `x-ray-authorization` (ray 2.60.0,
python/ray/_private/authentication/http_token_authentication.py).
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import IO, Any

import urllib3
import websocket
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.head import ready_head
from berth.cli.reach.kubectl import Kubectl, kubectl
from berth.cli.reach.port_forwarding import DASHBOARD, LOOPBACK, forwarding, local_port
from berth.cli.reach.ray_token import read_token
from berth.cli.shell.console import err
from berth.components.cluster.api import Object
from berth.components.core.errors import BerthError
from berth.components.core.printable import load_json, one_line

_HEADER = "X-Ray-Authorization"
_CONNECT_SECONDS = 10.0
_SECONDS = 180.0
"""A head on a busy machine unpacks a folder and starts a job's agent in it."""
_UPLOAD_SECONDS = 600.0
_FIRST_SECONDS = 600.0
_SILENT_SECONDS = 3.0
_MOST_BYTES = 2**26
"""Largest answer, such as the whole log of a job. A head runs its tenant's programs, and may answer
without an end."""
_PIECE_BYTES = 2**16
_NO_TOKEN = (401, 403)
_REFUSED = 400


class DashboardError(BerthError):
    """Dashboard that does not answer."""


class DashboardRefusedError(BerthError):
    """Answer of a dashboard that is not a success; its `text` may be a traceback."""

    def __init__(self, name: str, status: int, text: str) -> None:
        self.status = status
        self.text = text
        why = "does not accept the token" if status in _NO_TOKEN else "refuses"
        super().__init__(f"the dashboard of {name} {why}: {status} {self.last_line}")

    @property
    def last_line(self) -> str:
        """Last line of the dashboard's words: of a traceback the error itself."""
        lines = self.text.replace("\\n", "\n").splitlines()
        for line in map(str.strip, reversed(lines)):
            if line.strip("'\"."):
                return one_line(line)
        return "no reason"


class Dashboard:
    """Dashboard at an address of this machine.

    Raises:
        DashboardError: it does not answer, or breaks off.
        DashboardRefusedError: it refuses.
    """

    def __init__(self, name: str, url: str, token: str | None) -> None:
        self._name = name
        self._url = url
        self._headers = {_HEADER: f"Bearer {token}"} if token else {}
        retries = urllib3.Retry(total=4, backoff_factor=0.3, status=0, allowed_methods={"GET"})
        self._pool = urllib3.PoolManager(retries=retries)

    def answer_to(self, method: str, path: str, *, body: Any = None) -> Any:
        """Send a request, with a JSON body or none; return the JSON of the answer, or None.

        Raises:
            DashboardError: the dashboard does not answer, or not with JSON.
            DashboardRefusedError: it refuses.
        """
        text = self._send(method, path, _SECONDS, json=body)
        try:
            return load_json(text) if text else None
        except (ValueError, RecursionError):
            raise DashboardError(
                f"the dashboard of {self._name} answers {path} with something other than JSON"
            ) from None

    def wait(self) -> None:
        """Wait for the first answer, for which the lab starts Ray, and once installs it."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(
            *columns, console=err, transient=True, disable=not err.is_terminal
        ) as progress:
            progress.add_task("Ray starts", total=None)
            self._send("GET", "/api/version", _FIRST_SECONDS)

    def put(self, path: str, file: IO[bytes], size: int) -> None:
        """Send a file."""
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        self._send("PUT", path, _UPLOAD_SECONDS, headers, body=file)

    def messages(self, path: str) -> Iterator[str]:
        """Yield the texts of a WebSocket until its end, and "" in each silent moment.

        Raises:
            DashboardError: the dashboard does not answer, or breaks off.
            DashboardRefusedError: it refuses.
        """
        headers = [f"{key}: {value}" for key, value in self._headers.items()]
        url = f"ws{self._url.removeprefix('http')}{path}"
        try:
            connection = websocket.create_connection(
                url, _SILENT_SECONDS, header=headers, suppress_origin=True, http_no_proxy=[LOOPBACK]
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

    def _send(
        self,
        method: str,
        path: str,
        seconds: float,
        headers: Mapping[str, str] | None = None,
        **content: Any,
    ) -> str:
        try:
            answer = self._pool.request(
                method,
                self._url + path,
                headers=self._headers | dict(headers or {}),
                timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=seconds),
                redirect=False,
                preload_content=False,
                **content,
            )
            text = self._text_of(answer, path, seconds)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._no_answer(error) from None
        if answer.status >= _REFUSED:
            raise DashboardRefusedError(self._name, answer.status, text)
        return text

    def _text_of(self, answer: urllib3.BaseHTTPResponse, path: str, seconds: float) -> str:
        """Return the text of an answer.

        Raises:
            DashboardError: it is too large, or does not end in time.
        """
        content = bytearray()
        until = time.monotonic() + seconds
        while part := answer.read1(_PIECE_BYTES):
            content += part
            is_late = time.monotonic() >= until
            if is_late or len(content) > _MOST_BYTES:
                answer.close()
                problem = (
                    f"does not end in {seconds:.0f} s"
                    if is_late
                    else f"is larger than {_MOST_BYTES >> 20} MiB"
                )
                raise DashboardError(
                    f"the answer of the dashboard of {self._name} to {path} {problem}"
                )
        return content.decode(errors="replace")

    def _no_answer(self, error: Exception) -> DashboardError:
        reason = getattr(error, "reason", None) or error
        words = one_line(str(reason).rpartition(": ")[2])
        return DashboardError(f"the dashboard of {self._name} does not answer: {words}")


class Connection:
    """Way to the dashboard of a berth's head, which can break and be renewed."""

    dashboard: Dashboard

    def __init__(self, berth: LiveBerth, head: Object, program: Kubectl) -> None:
        self.berth = berth
        self.head = head
        self._program = program
        self._token = read_token(berth)
        self._way = ExitStack()

    def renew(self) -> None:
        """Connect to the head, or again to the same head.

        Raises:
            DashboardError: kubectl cannot forward the dashboard's port.
        """
        self.close()
        port = local_port(None, 0)
        ways = forwarding(self._program, self.berth.namespace, self.head, {DASHBOARD: port})
        if self._way.enter_context(ways) is None:
            raise DashboardError(f"kubectl cannot forward the dashboard of {self.berth.name}")
        self.dashboard = Dashboard(self.berth.name, f"http://{LOOPBACK}:{port}", self._token)
        if self.berth.is_simulated(self.head):
            self.dashboard.wait()

    def close(self) -> None:
        """Disconnect."""
        self._way.close()


@contextlib.contextmanager
def connected_dashboard(berth: LiveBerth) -> Iterator[Connection]:
    """Yield a connection to the head of a berth.

    Raises:
        BerthError: the head is not ready.
        DashboardError: the dashboard cannot be reached.
    """
    head = ready_head(berth)
    with (
        kubectl(berth.environment.kubeconfig) as program,
        contextlib.closing(Connection(berth, head, program)) as connection,
    ):
        connection.renew()
        yield connection
