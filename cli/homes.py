"""`berth home`: claims on the disks of homes, and their deletion."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass, replace

import typer

from berth.cli.console import err, out, print_json
from berth.cli.environment import Environment, brought_up
from berth.cli.grid import Grid
from berth.components.cluster.api import NAMESPACES, RAY_CLUSTERS, ClusterApi, Object, within
from berth.components.cluster.owned import owners_of
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import KEEPS_HOME, namespace_of
from berth.components.ray.storage import CLAIM

CLAIMS = "/api/v1/persistentvolumeclaims"

LOST = 3
"""Exit code if files would be lost and nobody agreed to it; nothing was changed."""

_GONE_SECONDS, _LOOK_SECONDS = 300.0, 0.5


@dataclass(frozen=True)
class HomeDisk:
    """Home of a berth.

    Attributes:
        name: the engineer's id.
        stack: stack that created the berth.
        size: size of the disk, or the requested size before there is one.
        storage_class: StorageClass of the disk.
        volume: the disk's PersistentVolume; "" before the first start of the head.
        created: moment of creation.
        in_use: whether the berth is there.
        retained: whether the home stays when the berth goes.
    """

    name: str
    stack: str
    size: str
    storage_class: str
    volume: str
    created: str
    in_use: bool
    retained: bool = True

    def __str__(self) -> str:
        return f"{self.size}, created {self.created}"


def show(stack: str, *, as_json: bool) -> int:
    """Print the homes on an environment; return the exit code."""
    environment = brought_up(stack)
    homes = homes_on(environment)
    if as_json:
        print_json([asdict(home) for home in homes])
        return 0
    table = Grid("home", "size", "StorageClass", "created", "berth")
    for home in homes:
        table.add_row(home.name, home.size, home.storage_class, home.created, home.stack if home.in_use else "removed")
    out.print(table if homes else f"no berth on {environment.stack} has a home")
    return 0


def remove(name: str, stack: str, *, yes: bool, as_json: bool) -> int:
    """Delete the home of a removed berth with its namespace; return the exit code."""
    environment = brought_up(stack)
    api = ClusterApi(environment.kubeconfig)
    homes = {home.name: home for home in homes_on(environment)}
    home = homes.get(name) or _left(api, environment, name)
    if home is None:
        raise BadInputError(
            f"environment {environment.stack} has no home {name!r}{did_you_mean(name, homes)}",
            f"list the homes: berth home list -s {environment.stack}",
        )
    if home.in_use:
        raise BadInputError(
            f"berth {name} is still there, and uses its home",
            f"remove the berth first: berth engineer remove {name} -s {home.stack}; then berth up -s {home.stack}",
        )
    if not yes and not _agreed(home):
        return LOST
    path = f"{NAMESPACES}/{namespace_of(name)}"
    if namespace := api.get(path):
        api.delete(path, namespace["metadata"]["uid"])
    deadline = time.monotonic() + _GONE_SECONDS
    while api.get(path):
        if time.monotonic() > deadline:
            raise BerthError(
                f"namespace {namespace_of(name)} is not gone after {_GONE_SECONDS:.0f} s",
                f"see what it waits for: kubectl get namespace {namespace_of(name)} --output yaml",
            )
        time.sleep(_LOOK_SECONDS)
    if as_json:
        print_json({**asdict(home), "removed": True})
    else:
        err.print(f"the home of {name} is deleted ({home})", markup=False)
    return 0


def homes_on(environment: Environment) -> list[HomeDisk]:
    """Return the homes on an environment, by name."""
    api = ClusterApi(environment.kubeconfig)
    owners = owners_of(api).of_environment(environment.contract.name)
    live = {cluster["metadata"]["namespace"] for cluster in owners.owned(api.list(RAY_CLUSTERS)[0])}
    claims = [claim for claim in owners.owned(api.list(CLAIMS)[0]) if claim["metadata"]["name"] == CLAIM]
    found = []
    for claim in claims:
        owner = owners.of(claim)
        if owner:
            found.append(_home(claim, owner.name, owner.stack, in_use=namespace_of(owner.name) in live))
    return sorted(found, key=lambda home: home.name)


def forget(api: ClusterApi, name: str) -> None:
    """Delete the claim of a home; Kubernetes waits until no pod uses the claim.

    Raises:
        ClusterError: the API server refuses or does not answer.
    """
    path = f"{within(namespace_of(name), CLAIMS)}/{CLAIM}"
    if claim := api.get(path):
        api.delete(path, claim["metadata"]["uid"])


def home_of(api: ClusterApi, name: str) -> HomeDisk | None:
    """Return the home of a berth that is there; None without one."""
    claim = api.get(f"{within(namespace_of(name), CLAIMS)}/{CLAIM}")
    if claim is None:
        return None
    namespace = api.get(f"{NAMESPACES}/{namespace_of(name)}") or {"metadata": {}}
    retained = KEEPS_HOME in (namespace["metadata"].get("annotations") or {})
    return replace(_home(claim, name, "", in_use=True), retained=retained)


def _left(api: ClusterApi, environment: Environment, name: str) -> HomeDisk | None:
    """Return the namespace that a home, which is gone, has left; None without one."""
    owners = owners_of(api).of_environment(environment.contract.name)
    owner = owners.by_namespace.get(namespace_of(name))
    if owner is None or not owner.keeps_home:
        return None
    in_use = bool(api.list(within(namespace_of(name), RAY_CLUSTERS))[0])
    return HomeDisk(name, owner.stack, "none", "", "", "never", in_use=in_use)


def _home(claim: Object, name: str, stack: str, *, in_use: bool) -> HomeDisk:
    spec, status = claim["spec"], claim.get("status") or {}
    size = (status.get("capacity") or spec["resources"]["requests"])["storage"]
    return HomeDisk(
        name=name,
        stack=stack,
        size=str(size),
        storage_class=str(spec.get("storageClassName") or ""),
        volume=str(spec.get("volumeName") or ""),
        created=str(claim["metadata"]["creationTimestamp"]),
        in_use=in_use,
    )


def _agreed(home: HomeDisk) -> bool:
    """Return whether someone at the terminal agrees to lose the files."""
    err.print(f"deletes the home of {home.name} with all files in it: {home}", markup=False)
    if not sys.stdin.isatty():
        err.print(f"nothing was done; to do it: berth home remove {home.name} --yes", markup=False)
        return False
    return typer.confirm("Delete it?", err=True)
