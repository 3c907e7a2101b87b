"""HTTPS proxy before the lab's API server, which counts requests and disturbs the answers.

It serves with the certificate of the lab's administrator, which the lab's own authority signed and
which names 127.0.0.1, and shows the API server the same certificate. So every client of the proxy
is the administrator.
"""

import asyncio
import contextlib
import json
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from berth.lab.controlplane import ControlPlane

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})

Kind = Literal["403", "429", "503", "cut", "slow", "endless"]
KINDS: tuple[Kind, ...] = ("429", "503", "cut", "slow")

_LIMIT = 1 << 22
_SLOW_SECONDS = 2.0
_PIECE = 1 << 16
_NOTHING = 0.1
_ENDLESS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding:"
    b" chunked\r\n\r\n8\r\nstarted\n\r\n"
)

Head = tuple[str, dict[str, str], bytes]
"""First line, headers with names in lower case, and the bytes of both."""


@dataclass(frozen=True)
class Request:
    """A request that the proxy sees.

    Attributes:
        method: HTTP method.
        path: path with query.
    """

    method: str
    path: str

    @property
    def writes(self) -> bool:
        """Whether the request may change something."""
        return self.method in WRITES and "dryRun=" not in self.path


@dataclass(frozen=True)
class Fault:
    """A disturbance of one answer.

    Attributes:
        kind: a status is answered without the API server, and so is `endless`, a line of text and
            no end; `cut` passes the request on and breaks the answer off; `slow` delays it.
        place: part of a cut answer that arrives, from 0 (nothing) to 1.
    """

    kind: Kind
    place: float = 0.5


Disturb = Callable[[Request], Fault | None]
After = Callable[[Request], None]


class _Cut(Exception):  # noqa: N818 - the end of a connection, as asked for
    """End of a connection in the middle of an answer."""


class Proxy:
    """The proxy, in a thread of its own.

    Attributes:
        disturb: returns the fault of a request; None leaves the answer alone.
        before: called before a request is passed on.
        after: called when the API server has answered, before the client has the answer.
        counts: number of faults by kind.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._folder = plane.folder / "pki"
        self._port = int(plane.server.rpartition(":")[2])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="proxy")
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.disturb: Disturb = lambda _request: None
        self.before: After = lambda _request: None
        self.after: After = lambda _request: None
        self.counts: Counter[str] = Counter()

    @property
    def address(self) -> str:
        """URL of the proxy."""
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen on a free port of the loopback interface."""
        self._thread.start()
        self._run(self._listen())

    def stop(self) -> None:
        """End all connections and the thread."""
        self._run(self._down())
        self._run(_end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Refuse connections for the block, and end those that are open."""
        self._run(self._down())
        try:
            yield
        finally:
            self._run(self._listen())

    @contextlib.contextmanager
    def disturbed(
        self,
        disturb: Disturb | None = None,
        *,
        before: After | None = None,
        after: After | None = None,
    ) -> Iterator[None]:
        """Disturb answers, and see requests, for the block."""
        previous = self.disturb, self.before, self.after
        self.disturb = disturb or previous[0]
        self.before = before or previous[1]
        self.after = after or previous[2]
        try:
            yield
        finally:
            self.disturb, self.before, self.after = previous

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _pair(self) -> tuple[str, str]:
        return str(self._folder / "admin.crt"), str(self._folder / "admin.key")

    async def _listen(self) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*self._pair())
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=tls, limit=_LIMIT
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _down(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        tls = ssl.create_default_context(cafile=str(self._folder / "ca.crt"))
        tls.load_cert_chain(*self._pair())
        return await asyncio.open_connection("127.0.0.1", self._port, ssl=tls, limit=_LIMIT)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, on one connection to the API server."""
        opened = [writer]
        self._open.add(writer)
        try:
            upstream, up = await self._connect()
            opened.append(up)
            self._open.add(up)
            while await self._exchange(reader, writer, upstream, up):
                pass
        except (
            OSError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ssl.SSLError,
            _Cut,
        ):
            pass
        finally:
            for stream in opened:
                self._open.discard(stream)
                stream.transport.abort()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upstream: asyncio.StreamReader,
        up: asyncio.StreamWriter,
    ) -> bool:
        """Pass one request and its answer on; return whether another may follow."""
        line, headers, raw = await _head(reader)
        method, path, _ = line.split(" ", 2)
        request = Request(method, path)
        fault = self.disturb(request)
        if fault is not None:
            self.counts[fault.kind] += 1
        if fault is not None and fault.kind not in ("cut", "slow"):
            await _pump(reader, None, headers, until_end=False)
            await _answer_instead(reader, writer, fault)
            return True
        self.before(request)
        up.write(raw)
        await _pump(reader, up, headers, until_end=False)
        await up.drain()
        line, answer, raw = await _head(upstream)
        status = int(line.split(" ", 2)[1])
        self.after(request)
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(_SLOW_SECONDS)
        if fault is not None and fault.kind == "cut" and fault.place < _NOTHING:
            raise _Cut
        writer.write(raw)
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            await asyncio.gather(_copy(reader, up), _copy(upstream, writer))
            return False
        if method == "HEAD" or status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            await writer.drain()
            return True
        cut = fault.place if fault is not None and fault.kind == "cut" else None
        await _pump(upstream, writer, answer, until_end=True, cut=cut)
        await writer.drain()
        return answer.get("connection", "").lower() != "close"


async def _answer_instead(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault
) -> None:
    """Answer a request that never reaches the API server."""
    writer.write(_ENDLESS if fault.kind == "endless" else _refusal(int(fault.kind)))
    await writer.drain()
    if fault.kind == "endless":
        await reader.read()


async def _end_tasks() -> None:
    """End the tasks of connections whose client has not noticed yet."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _head(reader: asyncio.StreamReader) -> Head:
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    return first, {name.strip().lower(): value.strip() for name, value in pairs}, raw


async def _pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter | None,
    headers: dict[str, str],
    *,
    until_end: bool,
    cut: float | None = None,
) -> None:
    """Pass a body on.

    Args:
        reader: where it comes from.
        writer: where it goes to; None drops it.
        headers: headers of the message, which say how long it is.
        until_end: a body without a length goes to the end of the connection.
        cut: part of the body after which the connection ends; None for all of it.
    """
    if headers.get("transfer-encoding", "").lower() == "chunked":
        await _pump_chunks(reader, writer, cut)
        return
    if "content-length" not in headers and not until_end:
        return
    length = int(headers["content-length"]) if "content-length" in headers else None
    left = _LIMIT << 8 if length is None else length if cut is None else int(length * cut)
    while left and (piece := await reader.read(min(left, _PIECE))):
        left -= len(piece)
        await _write(writer, piece)
    if cut is not None:
        await _flush_and_cut(writer)


async def _pump_chunks(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None, cut: float | None
) -> None:
    """Pass chunks on as they come; a cut is inside of the first one."""
    while True:
        size = await reader.readuntil(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        data = await reader.readexactly(length + 2)
        if cut is not None and length:
            await _write(writer, size + data[: int(length * cut)])
            await _flush_and_cut(writer)
        await _write(writer, size + data)
        if not length:
            return


async def _flush_and_cut(writer: asyncio.StreamWriter | None) -> None:
    if writer is not None:
        await writer.drain()
        # `abort` would drop what is still in TLS's buffers.
        await asyncio.sleep(0)
    raise _Cut


async def _write(writer: asyncio.StreamWriter | None, data: bytes) -> None:
    if writer is not None:
        writer.write(data)
        await writer.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        await _write(writer, piece)
    writer.close()


def _refusal(status: int) -> bytes:
    """Return the answer of a busy API server."""
    reason = HTTPStatus(status).name.title().replace("_", "")
    body = json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": "the server is busy, as the campaign asked",
            "reason": reason,
            "code": status,
        }
    ).encode()
    retry = "Retry-After: 1\r\n" if status == HTTPStatus.TOO_MANY_REQUESTS else ""
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n{retry}Content-Length:"
        f" {len(body)}\r\n\r\n"
    )
    return head.encode() + body
