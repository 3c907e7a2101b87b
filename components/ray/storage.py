"""Storage of head and workers: homes, buckets, shares, claims that exist, scratch on local SSDs."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from berth.components.core.manifest import Manifest, manifest_of, unawaited
from berth.components.core.settings import Settings
from berth.components.core.types import Memory, Name, Quantity, must_match
from berth.components.gke import own_class
from berth.components.isolation import RAY_USER, bucket_annotations
from berth.components.nested import NestedParts, with_nested_parts
from berth.components.ray.variables import ObjectName

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


def home_claim(home: Home | None, namespace: str, labels: dict[str, str]) -> Manifest | None:
    """Return the claim of a home; None without one.

    The disk is created in the zone of the node that the head is scheduled to, so that nothing can
    wait for the disk before.
    """
    if home is None:
        return None
    return claim(CLAIM, namespace, labels, "ReadWriteOnce", home.size, home.storage_class)


def claim(
    name: str,
    namespace: str,
    labels: dict[str, str],
    mode: str,
    size: str,
    storage_class: str | None,
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


def mounted(
    template: Manifest, volumes: list[Manifest], mounts: list[Manifest], *, new_storage: bool
) -> Manifest:
    """Return a pod template with volumes that are mounted in Ray's container.

    New storage belongs to root: the group of the pod lets the user of Ray's image write.
    """
    result = with_nested_parts(template, NestedParts(volumes=volumes, mounts=mounts))
    if new_storage:
        group = {"fsGroup": RAY_USER, "fsGroupChangePolicy": "OnRootMismatch"}
        result["spec"]["securityContext"] = {**template["spec"].get("securityContext", {}), **group}
    return result


BUCKET_DRIVER = "gcsfuse.csi.storage.gke.io"
"""GKE's Cloud Storage FUSE driver."""

_DEFAULT_CLASS = "standard-rwx"
"""GKE's StorageClass of basic shares on hard disks, the cheapest ones."""

SHARE_PREFIX = "share-"
"""Beginning of the names of shares' claims, before the volume's name."""

# https://docs.cloud.google.com/storage/docs/buckets#naming
_BUCKET = re.compile(r"[a-z0-9][-_.a-z0-9]{1,220}[a-z0-9]")

MountOption = Annotated[
    str, must_match(re.compile(r"[^\s,]+"), "is not one mount option; write each as an entry")
]
"""Mount option of Cloud Storage FUSE
(https://docs.cloud.google.com/kubernetes-engine/docs/reference/cloud-storage-fuse-csi-driver/mount-options)."""

_TAKEN = (
    "/bin",
    "/dev",
    "/etc",
    "/home/ray",
    "/lib",
    "/opt/berth",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    HOME,
)
"""Folders with files that a pod needs, which a volume would hide."""

# Files belong to the user of Ray's image; folders exist that only names of objects imply
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-setup).
_OPTIONS = f"implicit-dirs,uid={RAY_USER},gid={RAY_USER}"


def _check_folder(text: str) -> str:
    path = PurePosixPath(text)
    if (
        not path.is_absolute()
        or str(path) != text
        or ".." in path.parts
        or path == PurePosixPath("/")
    ):
        raise ValueError(f"{text!r} is not a folder of the pods; write for example /data")
    if hidden := next((folder for folder in _TAKEN if folders_overlap(text, folder)), None):
        raise ValueError(
            f"{text!r} would hide files that pods need in {hidden}; write for example /data"
        )
    return text


def folders_overlap(one: str, other: str) -> bool:
    """Return whether two folders are the same, or one is in the other."""
    paths = PurePosixPath(one), PurePosixPath(other)
    return paths[0].is_relative_to(paths[1]) or paths[1].is_relative_to(paths[0])


class GcsFuse(Settings):
    """Container that GKE adds to pods that mount buckets; all files go through it."""

    cpu: Annotated[Quantity, Field(examples=["4"])] = "250m"
    """CPU cores."""
    memory: Annotated[Memory, Field(examples=["8Gi"])] = "512Mi"
    """Memory. Where it runs out, the buckets are away until the pod restarts."""
    disk: Annotated[Memory, Field(examples=["200Gi"])] = "5Gi"
    """Disk, for files that are written or cached (`file-cache` in `mountOptions`)."""


class Volume(Settings):
    """Volume of pods: a bucket, a share, a claim or scratch."""

    bucket: Annotated[
        Annotated[
            str,
            must_match(
                _BUCKET, "is not the name of a bucket; write it without gs:// and without a folder"
            ),
        ]
        | None,
        Field(examples=["my-bucket"]),
    ] = None
    """Bucket of Cloud Storage."""
    mount_options: Annotated[
        list[MountOption], Field(examples=[["file-cache:max-size-mb:-1"]])
    ] = []
    """Further mount options of the bucket."""
    filestore: Annotated[Memory | None, Field(examples=["1Ti"])] = None
    """Size of a Filestore volume of the berth's own, which can grow later, and cannot shrink."""
    storage_class: Annotated[ObjectName | None, Field(examples=["zonal-rwx"])] = None
    """StorageClass of the share, which cannot change later. Default: standard-rwx."""
    retain: bool = True
    """Keep the volume when the berth is removed, as a home."""
    claim: Annotated[ObjectName | None, Field(examples=["team-data"])] = None
    """PersistentVolumeClaim of the berth's namespace."""
    scratch: Annotated[Memory | None, Field(examples=["500Gi"])] = None
    """Most bytes of an empty folder on the worker's local SSDs, which goes with the pod."""
    at: Annotated[str, AfterValidator(_check_folder), Field(examples=["/data"])]
    """Folder of the pods."""
    read_only: bool = False
    """Refuse writes."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (
            sum(
                kind is not None for kind in (self.bucket, self.filestore, self.claim, self.scratch)
            )
            != 1
        ):
            raise ValueError("needs one of `bucket`, `filestore`, `claim` and `scratch`")
        if self.mount_options and not self.bucket:
            raise ValueError(
                "has `mountOptions`, which only a volume with `bucket` can have; take it out"
            )
        if not self.filestore and (self.storage_class or not self.retain):
            key = "storageClass" if self.storage_class else "retain"
            raise ValueError(
                f"has `{key}`, which only a volume with `filestore` can have; take it out"
            )
        if self.scratch and self.read_only:
            raise ValueError(
                "is empty at the start, so that `readOnly` makes no sense with `scratch`"
            )
        return self

    @property
    def class_of_share(self) -> str:
        """StorageClass of the share, which is one of basic shares by default."""
        return self.storage_class or _DEFAULT_CLASS


# The forms stand in the description of the setting.
_OF_FORM = ({"type": "string"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}})
_FORM = {"type": "object", "additionalProperties": {"anyOf": list(_OF_FORM)}}

Volumes = dict[Name, Annotated[Volume, WithJsonSchema(_FORM)]]
"""Volumes by name: `{bucket, at, readOnly, mountOptions}`, `{filestore, at, storageClass, readOnly,
retain}`, `{claim, at, readOnly}` or `{scratch, at}`."""


def mounts_buckets(volumes: Mapping[str, Volume]) -> bool:
    """Return whether a volume is a bucket."""
    return any(volume.bucket for volume in volumes.values())


def mounts_shares(volumes: Mapping[str, Volume]) -> bool:
    """Return whether a volume is one of Filestore."""
    return bool(shares_of(volumes))


def shares_of(volumes: Mapping[str, Volume]) -> dict[str, Volume]:
    """Return the volumes that are Filestore's, by name."""
    return {name: volume for name, volume in volumes.items() if volume.filestore}


def with_volumes(
    template: dict[str, Any], volumes: Mapping[str, Volume], gcs_fuse: GcsFuse, *, worker: bool
) -> dict[str, Any]:
    """Return a pod template with volumes in Ray's container; only workers have scratch.

    GKE's driver for shares lets Kubernetes set the group of the files
    (https://github.com/kubernetes-sigs/gcp-filestore-csi-driver, docs/kubernetes/fsgroup.md).
    """
    own = {name: volume for name, volume in volumes.items() if worker or not volume.scratch}
    if not own:
        return template
    mounts = [
        {
            "name": _name(name),
            "mountPath": volume.at,
            **({"readOnly": True} if volume.read_only else {}),
        }
        for name, volume in own.items()
    ]
    sources = [{"name": _name(name), **_source(name, volume)} for name, volume in own.items()]
    result = mounted(template, sources, mounts, new_storage=mounts_shares(own))
    if mounts_buckets(own):
        metadata, sizes = (
            template["metadata"],
            bucket_annotations(gcs_fuse.cpu, gcs_fuse.memory, gcs_fuse.disk),
        )
        result["metadata"] = {
            **metadata,
            "annotations": {**metadata.get("annotations", {}), **sizes},
        }
    return result


def _name(name: str) -> str:
    return f"volume-{name}"


def _source(name: str, volume: Volume) -> dict[str, Any]:
    if volume.scratch:
        return {"emptyDir": {"sizeLimit": volume.scratch}}
    if claimed := f"{SHARE_PREFIX}{name}" if volume.filestore else volume.claim:
        return {"persistentVolumeClaim": {"claimName": claimed, "readOnly": volume.read_only}}
    attributes = {
        "bucketName": volume.bucket,
        "mountOptions": ",".join([_OPTIONS, *volume.mount_options]),
    }
    return {
        "csi": {
            "driver": BUCKET_DRIVER,
            "readOnly": volume.read_only,
            "volumeAttributes": attributes,
        }
    }


def share_claims(
    volumes: Mapping[str, Volume], namespace: str, labels: dict[str, str], *, own_classes: bool
) -> list[Manifest]:
    """Return the claims of a berth's shares."""
    found = []
    for name, share in shares_of(volumes).items():
        storage_class = own_class(share.class_of_share) if own_classes else share.class_of_share
        name_and_place = (f"{SHARE_PREFIX}{name}", namespace, labels)
        found.append(claim(*name_and_place, "ReadWriteMany", str(share.filestore), storage_class))
    return found


def keeps(home: Home | None, volumes: Mapping[str, Volume]) -> bool:
    """Return whether the home or a Filestore volume stays when the berth goes."""
    return bool(home and home.retain) or any(share.retain for share in shares_of(volumes).values())
