"""Errors of Google Cloud: what each one means and what fixes it, and the hook that logs that."""

import asyncio
import re
from dataclasses import dataclass
from shlex import quote

import pulumi

from berth.components.core import fast_yaml
from berth.components.gke.names import PROVIDER
from berth.components.gke.node_pool_arguments import NodePlace
from berth.components.gke.pool_settings import PoolSettings

_HAS_CAPACITY = re.compile(r"Consider trying your request in the ([\w, -]+?) zone\(s\)")

# Texts of resource_container_node_pool.go of hashicorp/terraform-provider-google ("resource - … -
# already exists", which it reports before it asks), and of Google's APIs ("Already exists: …", "The
# resource '…' already exists").
_PATH = re.compile(
    r"resource - \S*?(?P<checked>projects/\S+) - already exists"
    r"|Already exists: \S*?(?P<api>projects/[^\s,]+?)\.?(?=[\s,]|$)"
    r"|[Rr]esource '[^']*?(?P<quoted>projects/[^']+)' already exists"
)
_OF_GKE = re.compile(
    r"projects/([^/]+)/(?:locations|zones)/([^/]+)/clusters/([^/]+)(?:/nodePools/([^/]+))?"
)


@dataclass(frozen=True)
class Pooled:
    """Node pool that an error is about."""

    name: str
    settings: PoolSettings
    place: NodePlace
    written: str = ""
    """File and line of the settings that describe the pool, where known."""


def advice(error: str, project: str, pool: Pooled | None = None) -> list[str]:
    """Return a line for each thing that is wrong; none where the error is not known."""
    values = _values(error, project, pool)
    for row in fast_yaml.load_beside(__file__):
        capacity = pool.settings.capacity.kind if pool else ""
        if (
            row.get("pool", pool is not None) != (pool is not None)
            or row.get("capacity", capacity) != capacity
        ):
            continue
        if found := list(re.finditer(row["error"], error)):
            return list(
                dict.fromkeys(
                    row["advice"].format_map(values | match.groupdict()) for match in found
                )
            )
    return []


def _values(error: str, project: str, pool: Pooled | None) -> dict[str, str]:
    """Return the values for texts of advice; those about the pool are for errors of pools."""
    if pool is None:
        return {"project": project, "fewer": "", "smaller": ""}
    settings, capacity, place, key = (
        pool.settings,
        pool.settings.capacity,
        pool.place,
        f"pools.{pool.name}",
    )
    owner, zones = capacity.project or project, place.zones or ("ZONE",)
    describe = (
        f"gcloud compute reservations describe {capacity.reservation} --project {owner} --zone"
    )
    takes_quota = capacity.kind == "on-demand" and settings.machine.gpus
    elsewhere = _HAS_CAPACITY.search(error)
    return {
        "project": project,
        "name": pool.name,
        "key": key,
        "machine_type": settings.machine_type,
        "machines": (
            f"{settings.machine_type} in {' or '.join(place.zones)}"
            if place.zones
            else settings.machine_type
        ),
        "cluster": place.cluster,
        "location": place.location,
        "zones": " or ".join(zones),
        "fewer": (
            ", or set fewer"
            f" {key}.nodes{'; machines of a reservation take no quota' if takes_quota else ''}"
        ),
        "smaller": f", or a smaller {key}.maxPodsPerNode",
        "reservation": f"reservation {capacity.reservation!r} of project {owner}",
        "block": f", or has no block {capacity.block!r}" if capacity.block else "",
        "look": "; ".join(f"{describe} {zone}" for zone in zones),
        "now": f"; there are some now in {elsewhere[1]}" if elsewhere else "",
    }


def remedy_of(error: str, urn: str, parent: str, written: str = "") -> str:
    """Return what to do about an error of a creation; "" where the resource is not there already.

    An update that is killed while Google creates a resource leaves it there, since Google goes on.
    The next update asks for it again and is refused.

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
        f"{path}{f' ({written})' if written else ''} is in Google Cloud already, and not in"
        " Pulumi's state: an update that was killed left it there, or somebody else made it; each"
        " further update is refused too. Take it over, then run this again:"
        f" {' '.join(map(quote, command))}"
    )


def _id(path: str) -> str:
    """Return the id that `pulumi import` takes, as the pages of pulumi_gcp's classes have it."""
    if not (found := _OF_GKE.fullmatch(path)):
        return path
    project, location, cluster, pool = found.groups()
    return (
        "/".join(found.groups())
        if pool
        else f"projects/{project}/locations/{location}/clusters/{cluster}"
    )


def explained(
    component: pulumi.Resource, name: str, project: str, pool: Pooled | None = None
) -> pulumi.ErrorHook:
    """Return a hook that asks for no retry: the provider has retried long enough.

    It logs on a component, since a resource has no URN to log on until it is created.
    """

    async def explain(failure: pulumi.ErrorHookArgs) -> bool:
        error = "\n".join(failure.errors[:1])
        parent = await component.urn.future() or ""
        there = remedy_of(error, failure.urn, parent, pool.written if pool else "")
        for line in [there] if there else advice(error, project, pool):
            pulumi.log.error(line, component)
        # A task sends each line, in its first step, since the component has its URN by now. The
        # engine ends the program soon after it has this answer.
        await asyncio.sleep(0)
        return False

    return pulumi.ErrorHook(f"{name}-explained", explain)
