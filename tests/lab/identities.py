"""Logins of people and of CI to a lab's cluster, by certificates of its authority."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.lab.conftest import Lab


def login(lab: Lab, folder: Path, user: str) -> list[str]:
    """Beginning of a command that a user of the cluster runs: kubectl, berth or Pulumi.

    Args:
        lab: the lab.
        folder: folder for the user's kubeconfig, and for Google's credential plugin as it answers
            to that user.
        user: name of the user for the API server.
    """
    certificate, key = _certificate(lab, user)
    config = yaml.safe_load(lab.kubeconfig.read_text())
    kubeconfig = folder / "kubeconfig"
    plugin = folder / "gke-gcloud-auth-plugin"
    files = {"client-certificate": certificate, "client-key": key}
    for name, text in files.items():
        (folder / name).write_text(text)
    (only,) = config["users"]
    only["user"] = {name: str(folder / name) for name in files}
    kubeconfig.write_text(json.dumps(config))
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"clientCertificateData": certificate, "clientKeyData": key},
    }
    plugin.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(credential)}\nEND\n")
    plugin.chmod(0o755)
    return ["env", f"PATH={folder}:{lab.env['PATH']}", f"KUBECONFIG={kubeconfig}"]


def _certificate(lab: Lab, user: str) -> tuple[str, str]:
    """Certificate of a user, which the cluster's authority signs, and its key."""
    authority = lab.home.root / "kwok/clusters/berth/pki"
    signer = load_pem_private_key((authority / "ca.key").read_bytes(), None)
    assert isinstance(signer, rsa.RSAPrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user)]))
        .issuer_name(x509.load_pem_x509_certificate((authority / "admin.crt").read_bytes()).issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return signed.public_bytes(Encoding.PEM).decode(), encoded.decode()
