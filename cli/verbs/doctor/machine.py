"""Checks of this machine: its programs, and Pulumi's state with the encryption of its secrets."""

import base64
import hashlib
import json
import os
import re
import shutil
from urllib.parse import urlsplit

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.shell.programs import output_of
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, GoogleError
from berth.components.core import fast_yaml
from berth.components.core.errors import BerthError
from berth.stacks.files import passphrase, stack_file

TOOLS, STATE = Topic("tools"), Topic("state")

_SECONDS = 60

KMS = "gcpkms://"
"""Beginning of a secrets provider that is a key of Cloud KMS."""
_PERMISSIONS = fast_yaml.load_beside(__file__, "permissions.yaml")["on_the_state"]

# Pulumi's passphrase encryption (pulumi/pulumi, pkg/secrets/passphrase and
# sdk/go/common/resource/config/crypt.go).
_ROUNDS, _KEY_BYTES = 1_000_000, 32

PULUMI_AT_LEAST = (3, 250)
"""Oldest engine that berth is tested with: the lab builds it (lab/tools/pulumi)."""


def check_programs(*, auth_plugin: bool) -> list[Finding]:
    """Check every program that an update needs, the login's plugin included, and useful ones."""
    names = [*(["gke-gcloud-auth-plugin"] if auth_plugin else []), "gcloud", "kubectl"]
    others = (
        TOOLS.found("installed", name=name) if shutil.which(name) else TOOLS.found(f"no-{name}")
        for name in names
    )
    return [_pulumi(), *others]


def _pulumi() -> Finding:
    if shutil.which("pulumi") is None:
        return TOOLS.found("no-pulumi")
    try:
        text = output_of("pulumi", "version")
    except BerthError:
        text = ""
    version = re.match(r"v?(\d+)\.(\d+)(\.\S*)?", text)
    if version is None:
        return TOOLS.found("no-version", said=text[:60] or "no output")
    if (int(version[1]), int(version[2])) < PULUMI_AT_LEAST:
        return TOOLS.found("old-pulumi", version=text, oldest=".".join(map(str, PULUMI_AT_LEAST)))
    return TOOLS.found("pulumi", version=text)


def check_state(stack: str) -> tuple[str, list[Finding]]:
    """Check log-in, stack and secrets with Pulumi itself.

    The first value is the Cloud Storage bucket of the state, "" for another kind of backend.
    """
    if shutil.which("pulumi") is None:
        return "", [STATE.found("no-pulumi")]
    try:
        url = str(
            json.loads(
                output_of("pulumi", "whoami", "--json", "--non-interactive", seconds=_SECONDS)
            )["url"]
        )
    except BerthError as error:
        if pulumi_stack.is_logged_out(error.problem):
            return "", [STATE.missing(pulumi_stack.LOGGED_OUT, pulumi_stack.LOG_IN)]
        return "", [STATE.found("unusable", reason=_first(error.problem))]
    except (ValueError, KeyError, TypeError):
        return "", [STATE.found("no-backend")]
    found = [STATE.found("logged-in", url=url), _stack(stack), secrets(stack, url)]
    parts = urlsplit(url)
    return parts.netloc if parts.scheme == "gs" else "", [finding for finding in found if finding]


def _stack(stack: str) -> Finding:
    try:
        return STATE.found(
            "stack" if stack in pulumi_stack.stacks_in_backend() else "no-stack", stack=stack
        )
    except BerthError as error:
        return STATE.found("no-list", reason=_first(error.problem))


def secrets(stack: str, url: str) -> Finding | None:
    """Check that a passphrase or Pulumi Cloud decrypts the secrets; None for a key: `check_key`."""
    marks = stack_file.pulumi_keys(stack)
    if marks.get("secretsprovider"):
        return None
    salt = marks.get("encryptionsalt", "")
    if not salt and url.startswith("https://"):
        return STATE.found("cloud")
    given = passphrase.given_passphrase(os.environ)
    if given is None:
        return STATE.found("no-passphrase", stack=stack)
    if salt and not fits(given, salt):
        return STATE.found("other-passphrase", stack=stack)
    try:
        passphrase.refuse_public(
            stack, stack_file.stack_path(stack).read_text(encoding="utf-8"), os.environ
        )
    except passphrase.PublicPassphraseError as error:
        return STATE.found("public-passphrase", problem=error.problem, stack=stack)
    return STATE.found("passphrase")


def fits(given: str, mark: str) -> bool:
    """Return whether a passphrase fits a stack's `encryptionsalt`; True for an unknown format."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        version, salt, inner, nonce, text = mark.split(":")
        if (version, inner) != ("v1", "v1"):
            return True
        salt_bytes, nonce_bytes, cipher = (
            base64.b64decode(part, validate=True) for part in (salt, nonce, text)
        )
    except ValueError:
        return True
    key = hashlib.pbkdf2_hmac("sha256", given.encode(), salt_bytes, _ROUNDS, _KEY_BYTES)
    try:
        AESGCM(key).decrypt(nonce_bytes, cipher, None)
    except InvalidTag:
        return False
    return True


def check_bucket(google: Google, bucket: str) -> Finding:
    """Check the bucket of the state: it exists, you may write it, and it keeps old versions."""
    try:
        found = google.exists("storage", f"b/{bucket}", fields="name,versioning")
    except GoogleError as error:
        if error.kind != "forbidden":
            raise
        return STATE.found("unreadable-bucket", bucket=bucket, reason=error.problem)
    if found is None:
        return STATE.found("no-bucket", bucket=bucket, project=google.project)
    held = google.get(
        "storage", f"b/{bucket}/iam/testPermissions", permissions=_PERMISSIONS["bucket"]
    )
    if lacking := [
        permission
        for permission in _PERMISSIONS["bucket"]
        if permission not in held.get("permissions", [])
    ]:
        return STATE.found("unwritable-bucket", bucket=bucket, lacking=", ".join(lacking))
    kept = (found.get("versioning") or {}).get("enabled")
    return STATE.found("bucket" if kept else "no-versions", bucket=bucket)


def check_key(google: Google, provider: str) -> Finding:
    """Check the key that encrypts a stack's secrets, if it is one of Cloud KMS."""
    if not provider.startswith(KMS):
        return STATE.found("other-provider", provider=provider)
    key = provider.removeprefix(KMS)
    try:
        lacking = google.lacking("cloudkms", key, _PERMISSIONS["key"])
    except GoogleError as error:
        if error.kind != "absent":
            raise
        return STATE.found("no-key", key=key)
    if lacking:
        return STATE.found("unusable-key", key=key, lacking=", ".join(lacking))
    return STATE.found("key", name=key.rsplit("/", 1)[-1])


def _first(text: str) -> str:
    lines = [line.removeprefix("error: ").strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "without a reason"
