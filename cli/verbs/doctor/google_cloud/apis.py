"""Checks of Google Cloud's APIs: those that an update calls are enabled."""

from collections.abc import Iterable, Sequence

from berth.cli.reach.google_cloud import GoogleClient, resource_name
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.core.words import is_or_are
from berth.stacks.settings.environment import EnvironmentSettings

APIS = Topic("APIs")

_LIMITS_API = "cloudquotas.googleapis.com"
"""API that only these checks use."""


def required_apis(settings: EnvironmentSettings, *, bucket: bool, key: bool) -> list[str]:
    """Return the APIs that an update calls.

    Args:
        settings: settings of the environment.
        bucket: whether the state is in a bucket of Cloud Storage.
        key: whether a key of Cloud KMS encrypts the stack's secrets.
    """
    names = ["cloudresourcemanager", "compute", "container", "iam"]
    if bucket:
        names.append("storage")
    if any(pool.streams_images for pool in settings.pools.values()):
        names.append("containerfilesystem")
    if key:
        names.append("cloudkms")
    if settings.addon("filestore"):
        names.append("file")
    if settings.addon("secret_sync"):
        names.append("secretmanager")
    return [f"{name}.googleapis.com" for name in names]


def check_apis(google: GoogleClient, required: Sequence[str]) -> Iterable[DoctorFinding]:
    """Check that APIs are enabled, and the one that has the limits of newer GPUs.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    enabled = _enabled(google, [*required, _LIMITS_API])
    disabled = [api for api in required if api not in enabled]
    if disabled:
        yield APIS.missing(
            f"{', '.join(disabled)} {is_or_are(len(disabled))} not enabled",
            f"gcloud services enable {' '.join(disabled)} --project={google.project}",
        )
    if len(disabled) < len(required):
        yield APIS.fine(f"enabled: {', '.join(api for api in required if api in enabled)}")
    if _LIMITS_API not in enabled:
        yield APIS.unchecked(
            f"{_LIMITS_API} is not enabled: only this API has the limits of the newer GPUs, so they"
            " are not checked",
            f"gcloud services enable {_LIMITS_API} --project={google.project}",
        )


def _enabled(google: GoogleClient, apis: Sequence[str]) -> set[str]:
    # At most 30 names a call
    # (https://docs.cloud.google.com/service-usage/docs/reference/rest/v1/services/batchGet).
    services = f"projects/{google.project}/services"
    names = [f"{services}/{api}" for api in apis]
    answer = google.get("serviceusage", f"{services}:batchGet", names=names)
    return {
        resource_name(service["name"])
        for service in answer.get("services", [])
        if service.get("state") == "ENABLED"
    }
