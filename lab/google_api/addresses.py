"""Address of the stand-in, and the credential that only it knows."""

import json
from pathlib import Path
from typing import Any

from berth.lab.home import LabHome

TOKEN = "lab"  # noqa: S105 - known to everyone, and good for nothing but this server
"""The access token that the server gives out and takes."""

_APIS = {
    **{name: name.lower() for name in ("COMPUTE", "CONTAINER", "IAM", "STORAGE")},
    "SERVICE_USAGE": "serviceusage",
    "RESOURCE_MANAGER": "cloudresourcemanager",
    "CLOUD_QUOTAS": "cloudquotas",
    "KMS": "cloudkms",
}
PATHS = {f"GOOGLE_{name}_CUSTOM_ENDPOINT": f"{path}/v1/" for name, path in _APIS.items()}
"""The variables that name an API's address to Google's provider and to berth, and the path of each
API on the server."""


def credential_file(home: LabHome) -> Path:
    """The file that Application Default Credentials are read from."""
    return home.root / "google-credential.json"


def subject_file(home: LabHome) -> Path:
    """The file that says who asks, as a workload's own token would."""
    return home.root / "google-subject"


def credential(home: LabHome, port: int) -> dict[str, Any]:
    """Return credentials of someone outside Google Cloud, for the lab's own token service only.

    See https://google.aip.dev/auth/4117 for the format. The audience is a pool of people and names
    no project: of a project's pool Google's client would ask Google for the project's id, by the
    lab's token.
    """
    return {
        "type": "external_account",
        "audience": "//iam.googleapis.com/locations/global/workforcePools/lab/providers/lab",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"http://127.0.0.1:{port}/token",
        "credential_source": {"file": str(subject_file(home).absolute())},
    }


def variables(home: LabHome, port: int) -> dict[str, str]:
    """Return variables by which Google's clients ask the lab, with a credential of nobody."""
    endpoints = {name: f"http://127.0.0.1:{port}/{path}" for name, path in PATHS.items()}
    return endpoints | {"GOOGLE_APPLICATION_CREDENTIALS": str(credential_file(home).absolute())}


def write_credential(home: LabHome, port: int) -> None:
    """Put the credential where the variables say it is."""
    subject_file(home).write_text("lab\n")
    credential_file(home).write_text(json.dumps(credential(home, port)))
