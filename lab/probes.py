"""Asking local servers whether they are well, and who holds a port."""

from __future__ import annotations

import contextlib
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Probe:
    """An address that answers with status 200 when the process does its work.

    Attributes:
        url: on loopback, open to anyone.
    """

    url: str

    def answer(self, timeout: float = 2.0) -> str | None:
        """None if it is healthy, else why it isn't."""
        context = None
        if self.url.startswith("https:"):
            # Only asks "are you well" on loopback; the components sign their own certificates.
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with opener.open(self.url, timeout=timeout) as response:
                return None if response.status == 200 else f"{self.url} answers {response.status}"  # noqa: PLR2004
        except urllib.error.HTTPError as error:
            return f"{self.url} answers {error.code}"
        except (OSError, urllib.error.URLError) as error:
            return f"{self.url}: {getattr(error, 'reason', error)}"


@dataclass(frozen=True)
class Listener:
    """Who listens on a port, as far as this user may see.

    Attributes:
        pid: its process id; None for another user's process.
        name: its name.
    """

    pid: int | None
    name: str

    def __str__(self) -> str:
        return self.name if self.pid is None else f"{self.name} (pid {self.pid})"


def listener(port: int) -> Listener | None:
    """Who listens on a TCP port of this machine, or None."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
                if connection.pid is None:
                    return Listener(None, "another user's process")
                with contextlib.suppress(psutil.Error):
                    return Listener(connection.pid, psutil.Process(connection.pid).name())
                return Listener(connection.pid, "a process")
    return None
