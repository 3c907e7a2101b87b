"""Checks of Pulumi's state: the backend, the stack in it, and the encryption of its secrets."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ruamel.yaml import YAML

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.shell.programs import output_of
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, GoogleError
from berth.components.core.errors import BerthError
from berth.stacks.files import passphrase, stack_file

TOPIC = Topic("state")

_SECONDS = 60

KMS = "gcpkms://"
"""Beginning of a secrets provider that is a key of Cloud KMS."""
_KMS_PERMISSIONS = ("cloudkms.cryptoKeyVersions.useToDecrypt", "cloudkms.cryptoKeyVersions.useToEncrypt")
_BUCKET_PERMISSIONS = (
    "storage.objects.create",
    "storage.objects.delete",
    "storage.objects.get",
    "storage.objects.list",
)

# Pulumi's passphrase encryption (pulumi/pulumi, pkg/secrets/passphrase and
# sdk/go/common/resource/config/crypt.go).
_ROUNDS, _KEY_BYTES = 1_000_000, 32


@dataclass(frozen=True)
class Backend:
    """State backend of Pulumi.

    Attributes:
        url: its address, such as `gs://berth-state`; "" if Pulumi is not logged in.
        findings: findings about the backend and the stack.
    """

    url: str
    findings: list[Finding]

    @property
    def bucket(self) -> str:
        """Cloud Storage bucket; "" for another kind of backend."""
        parts = urlsplit(self.url)
        return parts.netloc if parts.scheme == "gs" else ""


def check(stack: str) -> Backend:
    """Check log-in, stack and secrets with Pulumi itself."""
    if shutil.which("pulumi") is None:
        return Backend("", [TOPIC.unchecked("not checked: pulumi is not on PATH")])
    try:
        url = str(json.loads(output_of("pulumi", "whoami", "--json", "--non-interactive", seconds=_SECONDS))["url"])
    except BerthError as error:
        return Backend("", [_not_logged_in(error.problem)])
    except (ValueError, KeyError, TypeError):
        return Backend("", [TOPIC.unchecked("pulumi does not report its state backend", "pulumi whoami --verbose")])
    found = [TOPIC.fine(f"Pulumi is logged in to {url}"), _stack(stack), secrets(stack, url)]
    return Backend(url, [finding for finding in found if finding])


def _not_logged_in(text: str) -> Finding:
    if pulumi_stack.is_logged_out(text):
        return TOPIC.missing(pulumi_stack.LOGGED_OUT, pulumi_stack.LOG_IN)
    login = "pulumi login gs://YOUR-STATE-BUCKET   # docs/gke.md, State"
    return TOPIC.missing(f"Pulumi's state backend cannot be used: {_first(text)}", login)


def _stack(stack: str) -> Finding:
    try:
        stacks = pulumi_stack.stacks()
    except BerthError as error:
        problem = f"the stacks in the state backend cannot be listed: {_first(error.problem)}"
        return TOPIC.missing(problem, "pulumi stack ls")
    if stack in stacks:
        return TOPIC.fine(f"stack {stack} exists")
    return TOPIC.missing(f"stack {stack} is not in the state backend", f"pulumi stack init {stack}")


def secrets(stack: str, url: str) -> Finding | None:
    """Check that a passphrase or Pulumi Cloud decrypts the secrets; None for a key: `check_key`."""
    marks = marks_of(stack_file.stack_path(stack))
    if marks.get("secretsprovider"):
        return None
    salt = str(marks.get("encryptionsalt") or "")
    if not salt and url.startswith("https://"):
        return TOPIC.fine("Pulumi Cloud encrypts the stack's secrets")
    given = passphrase.given(os.environ)
    if given is None:
        return TOPIC.missing(
            "the stack's secrets are encrypted by a passphrase, which is not set",
            f"export PULUMI_CONFIG_PASSPHRASE=…   # or by a key: pulumi stack change-secrets-provider -s {stack}"
            " gcpkms://…",
        )
    if salt and not fits(given, salt):
        return TOPIC.missing(
            f"the passphrase is not the one that stack {stack} was created with (encryptionsalt in its file)",
            "export PULUMI_CONFIG_PASSPHRASE=…   # for a new stack take the line encryptionsalt out of its file",
        )
    try:
        passphrase.refuse_public(stack, stack_file.stack_path(stack).read_text(encoding="utf-8"), os.environ)
    except passphrase.PublicPassphraseError as error:
        return TOPIC.missing(error.problem, f"pulumi stack change-secrets-provider -s {stack} gcpkms://…")
    return TOPIC.fine("the passphrase of the stack's secrets is set")


def fits(given: str, mark: str) -> bool:
    """Return whether a passphrase fits a stack's `encryptionsalt`; True for an unknown format."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        version, salt, inner, nonce, text = mark.split(":")
        if (version, inner) != ("v1", "v1"):
            return True
        salt_bytes, nonce_bytes, cipher = (base64.b64decode(part, validate=True) for part in (salt, nonce, text))
    except ValueError:
        return True
    key = hashlib.pbkdf2_hmac("sha256", given.encode(), salt_bytes, _ROUNDS, _KEY_BYTES)
    try:
        AESGCM(key).decrypt(nonce_bytes, cipher, None)
    except InvalidTag:
        return False
    return True


def marks_of(path: Path) -> dict[str, Any]:
    """Return Pulumi's own keys in a stack's file: `secretsprovider`, `encryptionsalt`."""
    document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return {key: value for key, value in document.items() if key != "config"} if isinstance(document, dict) else {}


def check_bucket(google: Google, bucket: str) -> Finding:
    """Check the bucket of the state: it exists, you may write it, and it keeps old versions."""
    try:
        found = google.exists("storage", f"b/{bucket}", fields="name,versioning")
    except GoogleError as error:
        if error.kind != "forbidden":
            raise
        return TOPIC.missing(f"you may not read the state bucket {bucket}: {error.problem}", _grant_bucket(bucket))
    if found is None:
        make = f"gcloud storage buckets create gs://{bucket} --project={google.project} --uniform-bucket-level-access"
        return TOPIC.missing(f"there is no bucket {bucket}, where Pulumi is logged in to", make)
    held = google.get("storage", f"b/{bucket}/iam/testPermissions", permissions=list(_BUCKET_PERMISSIONS))
    lacking = [permission for permission in _BUCKET_PERMISSIONS if permission not in held.get("permissions", [])]
    if lacking:
        return TOPIC.missing(f"in the state bucket {bucket} you lack {', '.join(lacking)}", _grant_bucket(bucket))
    if not (found.get("versioning") or {}).get("enabled"):
        return TOPIC.missing(
            f"the state bucket {bucket} keeps no old versions: a lost state cannot be restored",
            f"gcloud storage buckets update gs://{bucket} --versioning",
        )
    return TOPIC.fine(f"the state bucket {bucket} can be written, and keeps old versions")


def _grant_bucket(bucket: str) -> str:
    return (
        f'gcloud storage buckets add-iam-policy-binding gs://{bucket} --member="user:$(gcloud config get account)"'
        " --role=roles/storage.objectUser   # run by an admin; reading the bucket itself:"
        " roles/storage.bucketViewer"
    )


def check_key(google: Google, provider: str) -> Finding:
    """Check the key that encrypts a stack's secrets, if it is one of Cloud KMS.

    Args:
        google: Google Cloud.
        provider: the stack's secrets provider.
    """
    if not provider.startswith(KMS):
        return TOPIC.unchecked(f"not checked: the secrets provider {provider}")
    key = provider.removeprefix(KMS)
    try:
        lacking = google.lacking("cloudkms", key, _KMS_PERMISSIONS)
    except GoogleError as error:
        if error.kind != "absent":
            raise
        return TOPIC.missing(
            f"there is no key {key}, the stack's secrets provider", "docs/gke.md, State: gcloud kms keys create"
        )
    if lacking:
        grant = (
            f'gcloud kms keys add-iam-policy-binding {key} --member="user:$(gcloud config get account)"'
            " --role=roles/cloudkms.cryptoKeyEncrypterDecrypter"
        )
        return TOPIC.missing(f"on the key {key} you lack {', '.join(lacking)}", grant)
    return TOPIC.fine(f"the key {key.rsplit('/', 1)[-1]} of the stack's secrets can be used")


def _first(text: str) -> str:
    lines = [line.removeprefix("error: ").strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "without a reason"
