"""Checks of Pulumi's state: the log-in, the stack, and the encryption of the stack's secrets."""

import base64
import hashlib
import json
import os
import shutil
from urllib.parse import urlsplit

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.pulumi.failures import LOG_IN, LOGGED_OUT, is_logged_out
from berth.cli.reach.google_cloud import GoogleClient, GoogleError
from berth.cli.shell.programs import output_of
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.core.errors import BerthError
from berth.stacks.files import passphrase, stack_file

STATE = Topic("state")

_SECONDS = 60

KMS = "gcpkms://"
"""Beginning of a secrets provider that is a key of Cloud KMS."""

# Source: https://docs.cloud.google.com/iam/docs/roles-permissions
_BUCKET_PERMISSIONS = (
    "storage.objects.create",
    "storage.objects.delete",
    "storage.objects.get",
    "storage.objects.list",
)
_KEY_PERMISSIONS = (
    "cloudkms.cryptoKeyVersions.useToDecrypt",
    "cloudkms.cryptoKeyVersions.useToEncrypt",
)

# Pulumi's passphrase encryption (pulumi/pulumi, pkg/secrets/passphrase and
# sdk/go/common/resource/config/crypt.go).
_ROUNDS = 1_000_000
_KEY_BYTES = 32


def check_state(stack: str) -> tuple[str, list[DoctorFinding]]:
    """Check log-in, stack and secrets with Pulumi itself.

    Returns:
        The Cloud Storage bucket of the state, empty for another kind of backend; the findings.
    """
    if shutil.which("pulumi") is None:
        return "", [STATE.unchecked("not checked: pulumi is not on PATH")]
    try:
        answer = output_of("pulumi", "whoami", "--json", "--non-interactive", seconds=_SECONDS)
        url = str(json.loads(answer)["url"])
    except BerthError as error:
        return "", [_unusable_backend(error)]
    except (ValueError, KeyError, TypeError):
        unknown = "pulumi does not report its state backend"
        return "", [STATE.unchecked(unknown, "pulumi whoami --verbose")]
    findings = [STATE.fine(f"Pulumi is logged in to {url}"), _check_stack(stack)]
    secrets = check_passphrase(stack, url)
    if secrets is not None:
        findings.append(secrets)
    parts = urlsplit(url)
    return parts.netloc if parts.scheme == "gs" else "", findings


def _unusable_backend(error: BerthError) -> DoctorFinding:
    if is_logged_out(error.problem):
        return STATE.missing(LOGGED_OUT, LOG_IN)
    return STATE.missing(
        f"Pulumi's state backend cannot be used: {_first_line(error.problem)}",
        "pulumi login gs://YOUR-STATE-BUCKET   # how to make it: berth docs gke#state",
    )


def _check_stack(stack: str) -> DoctorFinding:
    try:
        stacks = pulumi_stack.stacks_in_backend()
    except BerthError as error:
        reason = _first_line(error.problem)
        return STATE.missing(
            f"the stacks in the state backend cannot be listed: {reason}", "pulumi stack ls"
        )
    if stack not in stacks:
        return STATE.missing(
            f"stack {stack} is not in the state backend", f"pulumi stack init {stack}"
        )
    return STATE.fine(f"stack {stack} exists")


def check_passphrase(stack: str, url: str) -> DoctorFinding | None:
    """Check that a passphrase or Pulumi Cloud decrypts the stack's secrets.

    Args:
        stack: name of the stack.
        url: address of the state backend.

    Returns:
        The finding; None for secrets that a key decrypts, see `check_key`.
    """
    marks = stack_file.pulumi_keys(stack)
    if marks.get("secretsprovider"):
        return None
    salt = marks.get("encryptionsalt", "")
    if not salt and url.startswith("https://"):
        return STATE.fine("Pulumi Cloud encrypts the stack's secrets")
    phrase = passphrase.given_passphrase(os.environ)
    if phrase is None:
        return STATE.missing(
            "the stack's secrets are encrypted by a passphrase, which is not set",
            "export PULUMI_CONFIG_PASSPHRASE=…   # or by a key: pulumi stack"
            f" change-secrets-provider -s {stack} gcpkms://…",
        )
    if salt and not passphrase_fits(phrase, salt):
        return STATE.missing(
            f"the passphrase is not the one that stack {stack} was created with (encryptionsalt in"
            " its file)",
            "export PULUMI_CONFIG_PASSPHRASE=…   # for a new stack take the line encryptionsalt"
            " out of its file",
        )
    text = stack_file.stack_path(stack).read_text(encoding="utf-8")
    try:
        passphrase.refuse_public(stack, text, os.environ)
    except passphrase.PublicPassphraseError as error:
        return STATE.missing(
            error.problem, f"pulumi stack change-secrets-provider -s {stack} gcpkms://…"
        )
    return STATE.fine("the passphrase of the stack's secrets is set")


def passphrase_fits(phrase: str, mark: str) -> bool:
    """Return whether a passphrase fits a stack's `encryptionsalt`; True for an unknown format."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        version, salt, inner, nonce, text = mark.split(":")
        salt_bytes = base64.b64decode(salt, validate=True)
        nonce_bytes = base64.b64decode(nonce, validate=True)
        cipher = base64.b64decode(text, validate=True)
    except ValueError:
        return True
    if (version, inner) != ("v1", "v1"):
        return True
    key = hashlib.pbkdf2_hmac("sha256", phrase.encode(), salt_bytes, _ROUNDS, _KEY_BYTES)
    try:
        AESGCM(key).decrypt(nonce_bytes, cipher, None)
    except InvalidTag:
        return False
    return True


def check_bucket(google: GoogleClient, bucket: str) -> DoctorFinding:
    """Check the bucket of the state: it exists, you may write it, and it keeps old versions.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    grant = (
        f"gcloud storage buckets add-iam-policy-binding gs://{bucket}"
        ' --member="user:$(gcloud config get account)" --role=roles/storage.objectUser   # run by'
        " an admin; reading the bucket itself: roles/storage.bucketViewer"
    )
    try:
        answer = google.exists("storage", f"b/{bucket}", fields="name,versioning")
    except GoogleError as error:
        if error.kind != "forbidden":
            raise
        return STATE.missing(f"you may not read the state bucket {bucket}: {error.problem}", grant)
    if answer is None:
        return STATE.missing(
            f"there is no bucket {bucket}, where Pulumi is logged in to",
            f"gcloud storage buckets create gs://{bucket} --project={google.project}"
            " --uniform-bucket-level-access",
        )
    permissions = google.get(
        "storage", f"b/{bucket}/iam/testPermissions", permissions=list(_BUCKET_PERMISSIONS)
    ).get("permissions", [])
    lacking = [name for name in _BUCKET_PERMISSIONS if name not in permissions]
    if lacking:
        return STATE.missing(
            f"in the state bucket {bucket} you lack {', '.join(lacking)}",
            grant,
        )
    if not (answer.get("versioning") or {}).get("enabled"):
        return STATE.missing(
            f"the state bucket {bucket} keeps no old versions: a lost state cannot be restored",
            f"gcloud storage buckets update gs://{bucket} --versioning",
        )
    return STATE.fine(f"the state bucket {bucket} can be written, and keeps old versions")


def check_key(google: GoogleClient, provider: str) -> DoctorFinding:
    """Check the key that encrypts a stack's secrets, if it is one of Cloud KMS.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    if not provider.startswith(KMS):
        return STATE.unchecked(f"not checked: the secrets provider {provider}")
    key = provider.removeprefix(KMS)
    try:
        lacking = google.lacking("cloudkms", key, _KEY_PERMISSIONS)
    except GoogleError as error:
        if error.kind != "absent":
            raise
        return STATE.missing(
            f"there is no key {key}, the stack's secrets provider",
            "berth docs gke#state   # how to create it",
        )
    if lacking:
        return STATE.missing(
            f"on the key {key} you lack {', '.join(lacking)}",
            f"gcloud kms keys add-iam-policy-binding {key}"
            ' --member="user:$(gcloud config get account)"'
            " --role=roles/cloudkms.cryptoKeyEncrypterDecrypter",
        )
    return STATE.fine(f"the key {key.rsplit('/', 1)[-1]} of the stack's secrets can be used")


def _first_line(text: str) -> str:
    lines = [line.removeprefix("error: ").strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "without a reason"
