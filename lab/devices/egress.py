"""Connections from the API server to pods, which lead to this machine and to the real node only.

Nothing listens at the address of a simulated pod, and another machine may have that address: such
a connection is refused, but for the ports of a head, which lead to its Ray (lab/ray). The API
server asks here, as GKE's API server asks konnectivity. KWOK asks for a head by its name.
"""

import contextlib
import logging
import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from threading import Thread

from berth.components.core.errors import BerthError

_DIAL_SECONDS = 10.0
_CHUNK = 65536

_log = logging.getLogger("berth.lab.devices.egress")


class Egress(ThreadingUnixStreamServer):
    """Proxy for the API server's connections, on a Unix socket of its own.

    Args:
        path: the socket; one of an earlier process is replaced.
        is_real: whether an address is of the real node, or of a pod on it.
        dial_pod: returns a connection to a port of a simulated pod, by address or `namespace/pod`.
    """

    daemon_threads = True

    def __init__(
        self,
        path: Path,
        is_real: Callable[[str], bool],
        dial_pod: Callable[[str, int], socket.socket],
    ) -> None:
        path.unlink(missing_ok=True)
        super().__init__(str(path), _Tunnel)
        path.chmod(0o600)
        self._is_real = is_real
        self._dial_pod = dial_pod

    def dial(self, request: str) -> socket.socket:
        """Return the connection that a request asks for.

        Raises:
            OSError: nothing listens there, or nobody may know.
            BerthError: the head has no Ray, and none can be started.
            ValueError: this is not a request for a connection.
        """
        method, target, _ = request.split(" ")
        host, _, port = target.rpartition(":")
        host = host.strip("[]")
        if method != "CONNECT":
            raise ValueError("this is not CONNECT")
        if "/" in host or not (host == "localhost" or _is_loopback(host) or self._is_real(host)):
            return self._dial_pod(host, int(port))
        far = socket.create_connection((host, int(port)), _DIAL_SECONDS)
        far.settimeout(None)
        return far


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ip_address(host).is_loopback
    return False


class _Tunnel(StreamRequestHandler):
    """One connection."""

    rbufsize = 0
    server: Egress

    def handle(self) -> None:
        """Connect the two sides, until both are closed."""
        request = self.rfile.readline().decode("ascii", "replace").strip()
        while self.rfile.readline().strip():
            pass  # headers
        try:
            far = self.server.dial(request)
        except (OSError, ValueError, KeyError, BerthError) as error:
            _log.info("%s: %s", request, error)
            reason = str(error).encode()
            self.wfile.write(
                b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: %d\r\n\r\n%s" % (len(reason), reason)
            )
            return
        with far:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = Thread(target=_copy, args=(far, self.connection), daemon=True)
            back.start()
            _copy(self.connection, far)
            back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy one direction of a connection until its end."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
