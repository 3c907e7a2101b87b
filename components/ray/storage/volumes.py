"""Volumes of head and workers, as settings: buckets, shares, claims that exist, and scratch."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from berth.components.core.settings import Settings
from berth.components.core.types import Memory, Name
from berth.components.ray.storage.buckets import BucketName, MountOption
from berth.components.ray.storage.home import HOME_FOLDER
from berth.components.ray.variables import ObjectName

_DEFAULT_CLASS = "standard-rwx"
"""GKE's StorageClass of basic shares on hard disks, the cheapest ones."""

_FOLDERS_IN_USE = (
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
    HOME_FOLDER,
)
"""Folders with files that a pod needs, which a volume would hide."""


def _check_folder(text: str) -> str:
    path = PurePosixPath(text)
    is_plain = path.is_absolute() and str(path) == text and ".." not in path.parts
    if not is_plain or path == PurePosixPath("/"):
        raise ValueError(f"{text!r} is not a folder of the pods; write for example /data")
    for folder in _FOLDERS_IN_USE:
        if folders_overlap(text, folder):
            raise ValueError(
                f"{text!r} would hide files that pods need in {folder}; write for example /data"
            )
    return text


def folders_overlap(one: str, other: str) -> bool:
    """Return whether two folders are the same, or one is in the other."""
    path = PurePosixPath(one)
    other_path = PurePosixPath(other)
    return path.is_relative_to(other_path) or other_path.is_relative_to(path)


class Volume(Settings):
    """Volume of pods: a bucket, a share, a claim or scratch."""

    bucket: Annotated[BucketName | None, Field(examples=["my-bucket"])] = None
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
        kinds = (self.bucket, self.filestore, self.claim, self.scratch)
        if sum(kind is not None for kind in kinds) != 1:
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
