"""Health of local servers, and the process that listens on a port."""

import contextlib
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass

import psutil


def _opener(certificate: tuple[str, str] | None) -> urllib.request.OpenerDirector:
    # The components sign their own certificates; the question is only whether they answer.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )


@dataclass(frozen=True)
class Probe:
    """Loopback address that answers with 200, or file that exists, when a process works."""

    url: str
    certificate: tuple[str, str] | None = None
    """Files of a client certificate and its key, for a server that demands one."""

    def answer(self, timeout: float = 2.0) -> str | None:
        """Return None if the server is healthy, else the reason why not."""
        try:
            with _opener(self.certificate).open(self.url, timeout=timeout) as response:
                return (
                    None
                    if response.status in {200, None}
                    else f"{self.url} answers {response.status}"
                )
        except urllib.error.HTTPError as error:
            return f"{self.url} answers {error.code}"
        except OSError as error:
            return f"{self.url}: {getattr(error, 'reason', error)}"


def listener(port: int) -> int | None:
    """Return the id of a TCP port's listener, 0 for another user's; None if the port is free."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.laddr
                and connection.laddr.port == port
            ):
                return connection.pid or 0
    return None
