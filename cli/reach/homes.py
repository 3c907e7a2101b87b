"""Claims on disks of homes and on Filestore volumes, which may outlive their berths."""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from berth.cli.reach.environment import LiveEnvironment, brought_up
from berth.cli.shell.console import LOST, err, print_result, somebody_agrees
from berth.cli.shell.table import Table
from berth.components.cluster.api import NAMESPACES, RAY_CLUSTERS, ClusterApi, Object, in_namespace
from berth.components.cluster.owned import owners_of
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.manifest import MANAGED_BY
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import KEEPS_HOME, namespace_of
from berth.components.core.words import is_or_are, names_in_words
from berth.components.ray import HOME_CLAIM, SHARE_PREFIX

CLAIMS = "/api/v1/persistentvolumeclaims"

_GONE_SECONDS = 300.0
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class HomeDisk:
    """Home of a berth, or one of its Filestore volumes."""

    name: str
    stack: str
    size: str
    """Size of the disk, or the requested size before there is one."""
    storage_class: str
    volume: str
    """The disk's PersistentVolume; "" before the first start of the head."""
    created: str
    in_use: bool
    """Whether the berth is there."""
    retained: bool = True
    """Whether the home stays when the berth goes."""
    claim: str = HOME_CLAIM
    """Name of the claim: `home`, or `share-team` for the volume `team`."""

    def __str__(self) -> str:
        name = "home"
        if self.claim != HOME_CLAIM:
            name = f"Filestore volume {self.claim.removeprefix(SHARE_PREFIX)}"
        return f"the {name} ({self.size}, created {self.created})"


def print_homes(stack: str, *, as_json: bool) -> int:
    """Print the homes and Filestore volumes on an environment; return the exit code."""
    environment = brought_up(stack)
    homes = homes_on(environment)
    shown = homes_table(homes) if homes else f"no berth on {environment.stack} has a home"
    return print_result([asdict(home) for home in homes], shown, as_json=as_json)


def homes_table(homes: Iterable[HomeDisk]) -> Table:
    """Return homes for people."""
    table = Table(
        "home",
        "claim",
        "size",
        "StorageClass",
        "created",
        "berth",
        hide_first=("StorageClass", "created"),
    )
    for home in homes:
        where = home.stack if home.in_use else "removed"
        table.add_row(home.name, home.claim, home.size, home.storage_class, home.created, where)
    return table


def remove_home(name: str, stack: str, *, yes: bool, as_json: bool) -> int:
    """Delete a removed berth's home, Filestore volumes and namespace; return the exit code.

    Raises:
        BadInputError: the berth has no home, or is still there.
        BerthError: the namespace does not go in time.
    """
    environment = brought_up(stack)
    api = ClusterApi(environment.kubeconfig)
    homes = homes_on(environment)
    disks = [home for home in homes if home.name == name] or _left(api, environment, name)
    if not disks:
        raise BadInputError(
            f"environment {environment.stack} has no home"
            f" {name!r}{did_you_mean(name, {home.name for home in homes})}",
            f"list the homes: berth home list -s {environment.stack}",
        )
    home = disks[0]
    if home.in_use:
        raise BadInputError(
            f"berth {name} is still there, and uses its home",
            f"remove the berth first: berth engineer remove {name} -s {home.stack}; then berth up"
            f" -s {home.stack}",
        )
    if not yes:
        err.print(f"deletes, of {name}, with all files: {names_in_words(disks, 'and')}")
        if not somebody_agrees("Delete it?", f"berth home remove {name} --yes"):
            return LOST
    _delete_namespace(api, namespace_of(name))
    document = {**asdict(home), "claims": [disk.claim for disk in disks], "removed": True}
    done = f"{names_in_words(disks, 'and')} of {name} {is_or_are(len(disks))} deleted"
    return print_result(document, done, as_json=as_json, to=err)


def _delete_namespace(api: ClusterApi, name: str) -> None:
    """Delete a namespace, and wait until it is gone."""
    path = f"{NAMESPACES}/{name}"
    if namespace := api.get(path):
        api.delete(path, namespace["metadata"]["uid"])
    deadline = time.monotonic() + _GONE_SECONDS
    while api.get(path):
        if time.monotonic() > deadline:
            raise BerthError(
                f"namespace {name} is not gone after {_GONE_SECONDS:.0f} s",
                f"see what it waits for: kubectl get namespace {name} --output yaml",
            )
        time.sleep(_LOOK_SECONDS)


def homes_on(environment: LiveEnvironment) -> list[HomeDisk]:
    """Return the homes and Filestore volumes on an environment, by name."""
    api = ClusterApi(environment.kubeconfig)
    owners = owners_of(api).of_environment(environment.contract.name)
    live = {
        cluster["metadata"]["namespace"]
        for cluster in owners.owned_objects(api.list(RAY_CLUSTERS)[0])
    }
    homes = []
    for claim in owners.owned_objects(api.list(CLAIMS)[0]):
        owner = owners.owner_of(claim)
        if owner and _is_disk(claim):
            in_use = namespace_of(owner.name) in live
            homes.append(_home(claim, owner.name, owner.stack, in_use=in_use))
    return sorted(homes, key=lambda home: (home.name, home.claim))


def delete_home_claims(api: ClusterApi, name: str) -> None:
    """Delete the claims of home and Filestore volumes; Kubernetes waits until no pod uses them."""
    for claim in _disks(api, name):
        path = f"{in_namespace(namespace_of(name), CLAIMS)}/{claim['metadata']['name']}"
        api.delete(path, claim["metadata"]["uid"])


def disks_of(api: ClusterApi, name: str) -> list[HomeDisk]:
    """Return home and Filestore volumes of a berth that is there."""
    claims = _disks(api, name)
    if not claims:
        return []
    namespace = api.get(f"{NAMESPACES}/{namespace_of(name)}") or {"metadata": {}}
    retained = KEEPS_HOME in (namespace["metadata"].get("annotations") or {})
    return [replace(_home(claim, name, "", in_use=True), retained=retained) for claim in claims]


def _disks(api: ClusterApi, name: str) -> list[Object]:
    claims, _ = api.list(in_namespace(namespace_of(name), CLAIMS))
    return sorted(filter(_is_disk, claims), key=lambda claim: str(claim["metadata"]["name"]))


def _is_disk(claim: Object) -> bool:
    """Return whether a claim in a berth is its home, or a Filestore volume that berth created."""
    metadata = claim["metadata"]
    name = str(metadata["name"])
    if name == HOME_CLAIM:
        return True
    labels = metadata.get("labels") or {}
    return name.startswith(SHARE_PREFIX) and MANAGED_BY.items() <= labels.items()


def _left(api: ClusterApi, environment: LiveEnvironment, name: str) -> list[HomeDisk]:
    """Return the namespace that a home, which is gone, has left."""
    owners = owners_of(api).of_environment(environment.contract.name)
    owner = owners.by_namespace.get(namespace_of(name))
    if owner is None or not owner.keeps_home:
        return []
    in_use = bool(api.list(in_namespace(namespace_of(name), RAY_CLUSTERS))[0])
    return [HomeDisk(name, owner.stack, "none", "", "", "never", in_use=in_use)]


def _home(claim: Object, name: str, stack: str, *, in_use: bool) -> HomeDisk:
    spec = claim["spec"]
    status = claim.get("status") or {}
    size = (status.get("capacity") or spec["resources"]["requests"])["storage"]
    return HomeDisk(
        name=name,
        stack=stack,
        size=str(size),
        storage_class=str(spec.get("storageClassName") or ""),
        volume=str(spec.get("volumeName") or ""),
        created=str(claim["metadata"]["creationTimestamp"]),
        in_use=in_use,
        claim=claim["metadata"]["name"],
    )
