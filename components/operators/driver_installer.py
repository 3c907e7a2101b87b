"""Google's driver installer for Container-Optimized OS, where GKE installs no driver.

GKE installs the driver together with its own device plugin. Where the GPU Operator's plugin serves
a pool, or its GPUs are claimed, GKE's plugin is off, and the installer has to be run as in Google's
documentation (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from berth.components.core import fast_yaml
from berth.components.core.manifest import Manifest
from berth.components.gke import PoolSettings
from berth.components.operators.operator import Operator, OtherInstallation
from berth.components.operators.parts import Object, Part

NAME = "nvidia-driver-installer"

HOST_DRIVER = "/home/kubernetes/bin/nvidia"
"""Folder of the driver on a node: the root file system of Container-Optimized OS is read-only."""


@dataclass(frozen=True)
class DriverInstaller(Operator[None]):
    """The installer, once for all pools that need it; it has no settings."""

    settings: None = None

    title: ClassVar[str] = "GPU driver installer"
    release: ClassVar[str] = NAME
    other_installation: ClassVar[OtherInstallation | None] = OtherInstallation(
        conflict="it installs the driver of the pool",
        remedy="write `driver: preinstalled`",
        name=NAME,
    )

    @classmethod
    def serves(cls, pool: PoolSettings) -> bool:
        """Return whether a pool needs the installer: GKE runs it on pools whose GPUs it serves."""
        return (
            (pool.by_operator or pool.by_dra) and pool.driver == "gke" and pool.node_image == "cos"
        )

    def parts(self, name: str) -> Iterator[Part]:
        """Yield the DaemonSet, which was a part of the GPU Operator until others needed it too."""
        del name
        manifest = self.site.with_copies(driver_installer())
        yield Object(NAME, manifest, was_part_of="berth:operators:GpuOperator::gpu-operator")


def driver_installer() -> Manifest:
    """Return the DaemonSet, for nodes with GPUs on which GKE installs no driver."""
    manifest: Manifest = fast_yaml.load_beside(__file__, f"{NAME}.yaml")
    return manifest
