"""Remedy for a resource that exists in Google Cloud and that Pulumi's state does not have.

An update that is killed while Google creates a resource leaves it there, since Google goes on. The
next update asks for it again and is refused.

Texts: resource_container_node_pool.go of hashicorp/terraform-provider-google ("resource - … -
already exists", which it reports before it asks), and of Google's APIs ("Already exists: …", "The
resource '…' already exists"). Formats of ids: the pages of pulumi_gcp's classes.
"""

import re
from shlex import quote

PROVIDER = "google"
"""Name of the provider resource, which an import has to name."""

_PATH = re.compile(
    r"resource - \S*?(?P<checked>projects/\S+) - already exists"
    r"|Already exists: \S*?(?P<api>projects/[^\s,]+?)\.?(?=[\s,]|$)"
    r"|[Rr]esource '[^']*?(?P<quoted>projects/[^']+)' already exists"
)
_OF_GKE = re.compile(r"projects/([^/]+)/(?:locations|zones)/([^/]+)/clusters/([^/]+)(?:/nodePools/([^/]+))?")


def remedy_of(error: str, urn: str, parent: str, written: str = "") -> str:
    """Return what to do about an error of a creation; "" where the resource is not there already.

    `parent` is the URN of its component, and `written` the file and line of its settings.
    """
    match = _PATH.search(error)
    if not match:
        return ""
    path = next(found for found in match.groups() if found)
    stack, project, types, name = urn.removeprefix("urn:pulumi:").split("::", 3)
    provider = f"urn:pulumi:{stack}::{project}::pulumi:providers:gcp::{PROVIDER}"
    command = [
        *("pulumi", "import", types.rpartition("$")[2], name, _id(path), "-s", stack),
        # The names are of the import alone; one that is the resource's too leads to the resource.
        *("--parent", f"berth-component={parent}", "--provider", f"berth-provider={provider}"),
        *("--protect=false", "--generate-code=false", "--yes"),
    ]
    return (
        f"{path}{f' ({written})' if written else ''} is in Google Cloud already, and not in Pulumi's state: an update"
        " that was killed left it there, or somebody else made it; each further update is refused too. Take it over,"
        f" then run this again: {' '.join(map(quote, command))}"
    )


def _id(path: str) -> str:
    """Return the id that `pulumi import` takes for a resource."""
    if not (found := _OF_GKE.fullmatch(path)):
        return path
    project, location, cluster, pool = found.groups()
    return "/".join(found.groups()) if pool else f"projects/{project}/locations/{location}/clusters/{cluster}"
