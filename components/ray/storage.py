"""Home of a berth: a claim on a disk that outlives pods and, unless told otherwise, the berth."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from berth.components.core.manifest import Manifest, manifest_of, unawaited
from berth.components.core.problems import Path, Problem
from berth.components.core.settings import Settings
from berth.components.core.table import beside, broken
from berth.components.core.types import Memory, parse_quantity
from berth.components.gke import SHARE_CLASSES
from berth.components.isolation import RAY_USER
from berth.components.nested import Parts, add_parts
from berth.components.ray.variables import ObjectName
from berth.components.sharing import Pool

HOME = "/mnt/home"
"""Folder of the home in the head. /home/ray is not free: Ray's image has its Python there, and a
volume hides what the image has at its place
(https://github.com/ray-project/kuberay/issues/3421)."""

CLAIM = "home"
"""Name of the claim."""


class Home(Settings):
    """Disk of a berth that stays: mounted at /mnt/home in the head."""

    size: Annotated[Memory, Field(examples=["50Gi"])]
    """Size of the disk. It can grow later, and cannot shrink."""
    storage_class: Annotated[ObjectName | None, Field(examples=["premium-rwo"])] = None
    """StorageClass of the disk, which cannot change later. Default: the cluster's default class; on
    GKE standard-rwo, a balanced Persistent Disk."""
    retain: bool = True
    """Keep the home and its namespace when the berth leaves the settings; a berth of the same name
    finds it again. `berth home remove` deletes it."""


def _from_size(value: Any) -> Any:
    """Return the long form of `home: 50Gi`."""
    return {"size": value} if isinstance(value, str | int | float) else value


HomeSetting = Annotated[Home, BeforeValidator(_from_size, json_schema_input_type=Home | str)]
"""Home of a berth: its size, or `{size, storageClass, retain}`."""


def home_problems(home: Home | None, head: Pool, path: Path) -> Iterable[Problem]:
    """Yield what no StorageClass, and no node of the head's pool, can have."""
    if home is None:
        return
    share = SHARE_CLASSES.get(home.storage_class or "")
    facts = {
        "size": parse_quantity(home.size),
        "least": share and share["least"],
        "least_size": parse_quantity(share["least"]) if share else 0,
        "has_pd": any(disk.startswith("pd-") for disk in head.settings.machine.series.boot_disks or ("pd-?",)),
    }
    yield from broken(beside(__file__)["home"], path, home=home, head=head, **facts)


def home_claim(home: Home | None, namespace: str, labels: dict[str, str]) -> Manifest | None:
    """Return the claim of a home; None without one.

    The disk is created in the zone of the node that the head is scheduled to, so that nothing can
    wait for the disk before.
    """
    if home is None:
        return None
    return claim(CLAIM, namespace, labels, "ReadWriteOnce", home.size, home.storage_class)


def claim(
    name: str, namespace: str, labels: dict[str, str], mode: str, size: str, storage_class: str | None
) -> Manifest:
    """Return a claim on storage, which is created once a pod that mounts it is scheduled.

    Without a StorageClass it has the cluster's default.
    """
    found = manifest_of(
        __file__,
        "claim",
        name=name,
        namespace=namespace,
        labels=labels,
        mode=mode,
        size=size,
        storage_class=storage_class or None,
    )
    return unawaited(found)


def with_home(template: Manifest, home: Home | None) -> Manifest:
    """Return the pod template of a head with its home mounted in Ray's container."""
    if home is None:
        return template
    volume = {"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}
    return mounted(template, [volume], [{"name": CLAIM, "mountPath": HOME}], new_storage=True)


def mounted(template: Manifest, volumes: list[Manifest], mounts: list[Manifest], *, new_storage: bool) -> Manifest:
    """Return a pod template with volumes that are mounted in Ray's container.

    New storage belongs to root: the group of the pod lets the user of Ray's image write.
    """
    result = add_parts(template, Parts(volumes=volumes, mounts=mounts))
    if new_storage:
        group = {"fsGroup": RAY_USER, "fsGroupChangePolicy": "OnRootMismatch"}
        result["spec"]["securityContext"] = {**template["spec"].get("securityContext", {}), **group}
    return result
