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


def listener(port: int) -> str | None:
    """Who listens on a TCP port of this machine, as far as can be seen: `python3 (pid 4711)`."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
                if connection.pid is None:
                    return "another user's process"
                with contextlib.suppress(psutil.Error):
                    return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
                return f"pid {connection.pid}"
    return None
