"""Remedy for a resource that is in Google Cloud, and not in Pulumi's state.

An update that is killed while Google creates a resource leaves it there, since Google goes on. The
next update asks for it again and is refused.
"""

import re
import shlex

from berth.components.gke.names import PROVIDER

# Texts of resource_container_node_pool.go of hashicorp/terraform-provider-google ("resource - … -
# already exists", which it reports before it asks), and of Google's APIs ("Already exists: …", "The
# resource '…' already exists").
_EXISTING_PATH = re.compile(
    r"resource - \S*?(?P<checked>projects/\S+) - already exists"
    r"|Already exists: \S*?(?P<api>projects/[^\s,]+?)\.?(?=[\s,]|$)"
    r"|[Rr]esource '[^']*?(?P<quoted>projects/[^']+)' already exists"
)
_GKE_PATH = re.compile(
    r"projects/([^/]+)/(?:locations|zones)/([^/]+)/clusters/([^/]+)(?:/nodePools/([^/]+))?"
)


def import_remedy(error: str, urn: str, parent: str, written: str = "") -> str:
    """Return what to do about an error of a creation; empty if the resource is not there already.

    Args:
        error: Google's text.
        urn: URN of the resource that could not be created.
        parent: URN of the resource's component.
        written: file and line of the resource's settings, where known.
    """
    match = _EXISTING_PATH.search(error)
    if not match:
        return ""
    path = match["checked"] or match["api"] or match["quoted"]
    where = f"{path} ({written})" if written else path
    command = shlex.join(_import_command(urn, parent, path))
    return (
        f"{where} is in Google Cloud already, and not in Pulumi's state: an update that was killed"
        " left it there, or somebody else made it; each further update is refused too. Take it"
        f" over, then run this again: {command}"
    )


def _import_command(urn: str, parent: str, path: str) -> list[str]:
    stack, project, types, name = urn.removeprefix("urn:pulumi:").split("::", 3)
    provider = f"urn:pulumi:{stack}::{project}::pulumi:providers:gcp::{PROVIDER}"
    return [
        "pulumi",
        "import",
        types.rpartition("$")[2],
        name,
        _import_id(path),
        "-s",
        stack,
        # The names are of the import alone; one that is the resource's too leads to the resource.
        "--parent",
        f"berth-component={parent}",
        "--provider",
        f"berth-provider={provider}",
        "--protect=false",
        "--generate-code=false",
        "--yes",
    ]


def _import_id(path: str) -> str:
    """Return the id that `pulumi import` takes, as the pages of pulumi_gcp's classes have it."""
    match = _GKE_PATH.fullmatch(path)
    if not match:
        return path
    project, location, cluster, pool = match.groups()
    if pool:
        return f"{project}/{location}/{cluster}/{pool}"
    return f"projects/{project}/locations/{location}/clusters/{cluster}"
