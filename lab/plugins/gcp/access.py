"""Access of a call: the project exists, the API is enabled, and the caller has the permission.

Texts are those that public reports quote, such as hashicorp/terraform-provider-google#9380
(disabled APIs).

Answers to (read): https://github.com/hashicorp/terraform-provider-google/issues/9380 (text for an
    API that is off).
Answers to (believed): the texts for a missing permission and a missing project. A call of a project
    without them would settle them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.lab.plugins.gcp.errors import GoogleApiError, not_found

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.conditions import Conditions
    from berth.lab.plugins.gcp.resource import ResourceType

_TITLES = {
    "compute": "Compute Engine API",
    "container": "Kubernetes Engine API",
    "iam": "Identity and Access Management (IAM) API",
    "resourcemanager": "Cloud Resource Manager API",
}


def check_access(conditions: Conditions, kind: ResourceType, verb: str, resource: str) -> None:
    """Refuse a call that Google would.

    Args:
        conditions: the projects.
        kind: the type of the resource.
        verb: `create`, `get`, `update` or `delete`.
        resource: the resource's path.

    Raises:
        GoogleApiError: 404 or 403.
    """
    project = resource.split("/")[1]
    entry = conditions.project(project)
    if entry is None:
        raise not_found(f"projects/{project}")
    api = kind.permission.split(".")[0]
    service = f"{'cloud' if api == 'resourcemanager' else ''}{api}.googleapis.com"
    if service not in entry.services:
        raise GoogleApiError(
            403,
            f"{_TITLES[api]} has not been used in project {project} before or it is disabled. Enable it by visiting "
            f"https://console.developers.google.com/apis/api/{service}/overview?project={project} then retry. If you "
            "enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.",
            "accessNotConfigured",
        )
    word = kind.verbs.get(verb) or ("update" if kind.part and verb != "get" else verb)
    permission = f"{kind.permission}.{word}"
    if entry.may(permission):
        return
    if api == "container":
        text = f'Required "{permission}" permission(s) for "projects/{project}".'
    else:
        text = f"Required '{permission}' permission for '{resource}'"
    raise GoogleApiError(403, text, "forbidden")
