"""Settings of a GKE cluster whose pools share GPUs."""

from typing import Annotated

from pydantic import Field

from berth.components.core.types import Name
from berth.components.gke import GkeSettings
from berth.components.sharing.modes import SharingProfile


class SharingSettings(GkeSettings):
    """A GKE cluster with ways to share the GPUs of its pools."""

    sharing: Annotated[
        dict[Name, SharingProfile],
        Field(examples=[{"quarter": {"kind": "time-slicing", "replicas": 4}}]),
    ] = {}
    """Ways to share GPUs, by name, for the pools' `sharing`. A pool without `sharing` has whole
    GPUs."""
