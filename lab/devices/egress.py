"""Connections from the API server to pods: it asks here, as GKE's API server asks konnectivity.

A connection to a simulated head of Ray is answered by the simulation; a connection to this machine,
the real node or a pod on it is passed on; all others are refused, as no simulated pod listens. So
services, endpoints and the API server's proxy are the real ones, and KubeRay's operator asks a
simulated dashboard in its own way.

Answers to (real): kube-apiserver, EgressSelectorConfiguration with HTTPConnect over a Unix socket
    (https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import cast

from aiohttp import web

from berth.lab.devices.ray_jobs import RayJobs
from berth.lab.devices.ray_pods import RayNode
from berth.lab.devices.ray_serve import DASHBOARD_PORT, PROXY_PORT, Load, RayServe

_DIAL_SECONDS = 10.0

_log = logging.getLogger("berth.lab.devices.egress")

Respond = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class RayHeads:
    """Ray Serve and the jobs of every simulated head.

    Attributes:
        nodes: Ray's nodes in simulated pods, by their pods' uids.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, RayNode] = {}
        self._serves: dict[str, RayServe] = {}
        self._jobs: dict[str, RayJobs] = {}
        self._real: dict[str, str] = {}

    def see(self, uid: str, node: RayNode | None) -> None:
        """Take note of a pod of Ray; None when it is gone."""
        if node is None:
            self.nodes.pop(uid, None)
            self._serves.pop(uid, None)
            if jobs := self._jobs.pop(uid, None):
                jobs.close()
        else:
            self.nodes[uid] = node

    def loads(self) -> list[tuple[tuple[str, str], list[RayNode], Load]]:
        """Return RayClusters in which Serve runs, with their nodes and the demand of replicas."""
        found = []
        for uid, serve in self._serves.items():
            head = self.nodes.get(uid)
            if head is not None and head.ready and serve.runs:
                nodes = self._nodes_of(head)
                found.append((head.cluster, nodes, serve.load(nodes)))
        return found

    def _nodes_of(self, member: RayNode) -> list[RayNode]:
        """Return the nodes of a node's cluster."""
        return [node for node in self.nodes.values() if node.cluster == member.cluster]

    def at(self, host: str, port: int) -> Respond | None:
        """Return the responder at an address: a head's dashboard or any node's proxy of Serve."""
        node = next((node for node in self.nodes.values() if node.ready and node.address == host), None)
        head = node and next((other for other in self._nodes_of(node) if other.head and other.ready), None)
        if node is None or head is None:
            return None
        serve = self._serves.setdefault(head.uid, RayServe())
        if port == DASHBOARD_PORT and node.head:
            return partial(self._dashboard, serve, head)
        if port == PROXY_PORT and serve.runs:
            return partial(self._proxy, serve)
        return None

    async def answer(self, host: str, port: int, request: web.BaseRequest) -> web.StreamResponse:
        """Answer for the pod that has the address now; kept connections outlive their pod."""
        if answers := self.at(host, port):
            return await answers(request)
        response = web.Response(status=502, text="nothing listens there any more in a simulated pod")
        response.force_close()
        return response

    def reach(self, uid: str, address: str) -> None:
        """Pass connections on to a real node or a pod on it; no address when it is gone."""
        if address:
            self._real[uid] = address
        else:
            self._real.pop(uid, None)

    def real(self, host: str) -> bool:
        """Whether an address is of this machine, of the real node or of a pod on it."""
        with contextlib.suppress(ValueError):
            return ip_address(host).is_loopback or host in self._real.values()
        return host == "localhost"

    async def _dashboard(self, serve: RayServe, head: RayNode, request: web.BaseRequest) -> web.StreamResponse:
        nodes = self._nodes_of(head)
        if answer := await self._jobs.setdefault(head.uid, RayJobs()).answer(request, nodes):
            return answer
        return serve.dashboard(request.method, request.path_qs, await request.read(), nodes)

    @staticmethod
    async def _proxy(serve: RayServe, request: web.BaseRequest) -> web.Response:
        return serve.proxy(request.path_qs)


class Egress:
    """A proxy for the API server's connections, which answers for simulated heads."""

    def __init__(self, heads: RayHeads) -> None:
        self._heads = heads
        self._server: asyncio.Server | None = None

    async def start(self, socket: Path) -> None:
        """Listen on a Unix socket; a socket of an earlier process is replaced."""
        self._server = await asyncio.get_running_loop().create_unix_server(lambda: _Connect(self._heads), socket)
        socket.chmod(0o600)  # noqa: ASYNC240 (a moment, before anything else runs)

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()


class _Connect(asyncio.Protocol):
    """Start of a connection: a request for CONNECT, and the answer."""

    def __init__(self, heads: RayHeads) -> None:
        self._heads = heads
        self._request = b""
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._request += data
        if self._request.endswith(b"\r\n\r\n"):
            # The rest is for the other end.
            self._transport.pause_reading()
            self._task = asyncio.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            protocol = await self._protocol()
        except (OSError, ValueError) as error:
            _log.info("%s: %s", self._request.split(b"\r\n", 1)[0].decode(errors="replace"), error)
            self._transport.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            self._transport.close()
            return
        self._transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        self._transport.resume_reading()

    async def _protocol(self) -> asyncio.Protocol:
        """Return the protocol that handles the rest of the connection."""
        method, target, _ = self._request.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        host, _, port = target.rpartition(":")
        if method != "CONNECT":
            raise ValueError("this is not CONNECT")
        if self._heads.at(host, int(port)):
            return web.Server(partial(self._heads.answer, host, int(port)))()
        host = host.strip("[]")
        if not self._heads.real(host):
            # Another machine may have the address of a simulated pod.
            raise ConnectionRefusedError("nothing listens there in a simulated pod")
        far = _Pipe(self._transport)
        dial = asyncio.get_running_loop().create_connection(lambda: far, host, int(port))
        transport, _ = await asyncio.wait_for(dial, _DIAL_SECONDS)
        return _Pipe(transport)


class _Pipe(asyncio.Protocol):
    """End of two joined connections; data leaves at the other end."""

    def __init__(self, other: asyncio.Transport) -> None:
        self._other = other

    def data_received(self, data: bytes) -> None:
        self._other.write(data)

    def eof_received(self) -> bool:
        if self._other.can_write_eof():
            self._other.write_eof()
        return True

    def pause_writing(self) -> None:
        self._other.pause_reading()

    def resume_writing(self) -> None:
        self._other.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        self._other.close()
