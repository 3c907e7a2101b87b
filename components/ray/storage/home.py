"""Home of a berth, as a setting: a disk that the head mounts."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from berth.components.core.settings import Settings
from berth.components.core.types import Memory
from berth.components.ray.variables import ObjectName

HOME_FOLDER = "/mnt/home"
"""Folder of the home in the head. /home/ray is not free: Ray's image has its Python there, and a
volume hides what the image has at its place
(https://github.com/ray-project/kuberay/issues/3421)."""

HOME_CLAIM = "home"
"""Name of the home's claim, and of its volume in the head."""


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
