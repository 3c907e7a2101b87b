"""Certificates and key of a kubeconfig: used for connections, and in no file."""

import base64
import http.server
import ssl
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from berth.components.cluster.api import ClusterApi
from tests.unit import serving

LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="module")
def certificate() -> tuple[bytes, bytes]:
    """Certificate that signs itself, for the server and its user, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "berth")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(LOOPBACK))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return signed.public_bytes(Encoding.PEM), key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )


class Answer(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"gitVersion": "v1"}')


@pytest.fixture
def kubeconfig(tmp_path: Path, certificate: tuple[bytes, bytes]) -> Iterator[str]:
    """Kubeconfig of a server that asks for the user's certificate."""
    files = tmp_path / "public", tmp_path / "key"
    for path, text in zip(files, certificate, strict=True):
        path.write_bytes(text)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    context.load_verify_locations(files[0])
    context.verify_mode = ssl.CERT_REQUIRED
    with http.server.ThreadingHTTPServer((LOOPBACK, 0), Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        encoded, encoded_key = (base64.b64encode(data).decode() for data in certificate)
        user = {"client-certificate-data": encoded, "client-key-data": encoded_key}
        address = f"https://{LOOPBACK}:{server.server_port}"
        yield serving.kubeconfig(address, user, **{"certificate-authority-data": encoded})
        server.shutdown()


def test_a_process_that_is_killed_leaves_no_key_in_a_shared_folder(
    kubeconfig: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    api = ClusterApi(kubeconfig)
    assert list(shared.iterdir()) == []
    assert api.get("/version") == {"gitVersion": "v1"}
    assert list(shared.iterdir()) == []


def test_clients_that_are_made_at_once_do_not_delete_the_files_of_another(kubeconfig: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ClusterApi(kubeconfig).get("/version"), range(32)))
    assert answers == [{"gitVersion": "v1"}] * 32
