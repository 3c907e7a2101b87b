"""Connections from the API server to pods, which lead to this machine and to the real node only.

Nothing listens at the address of a simulated pod, and another machine may have that address: such
a connection is refused. The API server asks here, as GKE's API server asks konnectivity.

Answers to (real): kube-apiserver, EgressSelectorConfiguration with HTTPConnect over a Unix socket
    (https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from ipaddress import ip_address
from pathlib import Path

_DIAL_SECONDS = 10.0
_CHUNK = 65536

_log = logging.getLogger("berth.lab.devices.egress")


class Egress:
    """Proxy for the API server's connections."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}
        self._server: asyncio.Server | None = None

    def reach(self, uid: str, address: str) -> None:
        """Pass connections on to a real node or a pod on it; no address when it is gone."""
        if address:
            self._real[uid] = address
        else:
            self._real.pop(uid, None)

    def real(self, host: str) -> bool:
        """Return whether an address is of this machine, of the real node or of a pod on it."""
        with contextlib.suppress(ValueError):
            return ip_address(host).is_loopback or host in self._real.values()
        return host == "localhost"

    async def start(self, socket: Path) -> None:
        """Listen on a Unix socket; a socket of an earlier process is replaced."""
        self._server = await asyncio.start_unix_server(self._connect, socket)
        socket.chmod(0o600)  # noqa: ASYNC240 (a moment, before anything else runs)

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.IncompleteReadError):
            request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].decode("ascii", "replace")
            try:
                far_reader, far_writer = await asyncio.wait_for(self._dial(request), _DIAL_SECONDS)
            except (OSError, ValueError) as error:
                _log.info("%s: %s", request, error)
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                return
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with contextlib.closing(far_writer):
                await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    async def _dial(self, request: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        method, target, _ = request.split(" ")
        host, _, port = target.rpartition(":")
        host = host.strip("[]")
        if method != "CONNECT":
            raise ValueError("this is not CONNECT")
        if not self.real(host):
            raise ConnectionRefusedError("nothing listens there in a simulated pod")
        return await asyncio.open_connection(host, int(port))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction of a connection until its end."""
    while chunk := await reader.read(_CHUNK):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
