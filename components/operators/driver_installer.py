"""Google's driver installer for Container-Optimized OS, where GKE installs no driver.

GKE installs the driver together with its own device plugin. Where the GPU Operator's plugin serves
a pool, or its GPUs are claimed, GKE's plugin is off, and the installer has to be run as in Google's
documentation (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from berth.components.core import fast_yaml
from berth.components.core.manifest import Manifest
from berth.components.gke import PoolSettings
from berth.components.hardware.names import POOL_LABEL
from berth.components.operators.operator import Operator, OtherInstallation
from berth.components.operators.parts import Object, Part
from berth.components.plan.effect import Effect, Level
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.plan import Step

NAME = "nvidia-driver-installer"

_DEFAULT = "default"
_INSTALL = "/cos-gpu-installer install"

HOST_DRIVER = "/home/kubernetes/bin/nvidia"
"""Folder of the driver on a node: the root file system of Container-Optimized OS is read-only."""


@dataclass(frozen=True)
class DriverInstaller(Operator[None]):
    """The installer, once for each version of the driver; it has no settings but the pools'."""

    settings: None = None

    title: ClassVar[str] = "GPU driver installer"
    release: ClassVar[str] = NAME
    daemon_set: ClassVar[str] = NAME
    other_installation: ClassVar[OtherInstallation | None] = OtherInstallation(
        conflict="it installs the driver of the pool",
        remedy="write `driver: preinstalled`",
        name=NAME,
    )

    @classmethod
    def serves(cls, pool: PoolSettings) -> bool:
        """Return whether a pool needs the installer: GKE runs it on pools whose GPUs it serves."""
        return pool.by_googles_installer

    def parts(self, name: str) -> Iterator[Part]:
        """Yield a DaemonSet for the image's own driver, and one for each version that pools name.

        The first was a part of the GPU Operator until others needed it too.
        """
        del name
        pools_of_versions: dict[str, list[str]] = {}
        for pool_name, pool in self.pools.items():
            version = pool.settings.driver_version or _DEFAULT
            pools_of_versions.setdefault(version, []).append(pool_name)
        of_the_image = pools_of_versions.pop(_DEFAULT, [])
        elsewhere = [name for pools in pools_of_versions.values() for name in pools]
        if of_the_image or not elsewhere:
            manifest = self.site.with_copies(driver_installer(elsewhere))
            yield Object(NAME, manifest, was_part_of="berth:operators:GpuOperator::gpu-operator")
        for version, pools in sorted(pools_of_versions.items()):
            manifest = self.site.with_copies(installer_of_a_version(version, pools))
            yield Object(manifest["metadata"]["name"], manifest)

    @classmethod
    def effects(cls, step: Step, fleet: PlannedFleet, changed: Sequence[str]) -> list[Effect]:
        """Return the effects of a change of a DaemonSet, which replaces no loaded driver."""
        del fleet, changed
        if step.operation == "delete":
            text = (
                f"{step.name} is removed: nodes keep the driver that they have until they restart,"
                " and later ones get theirs from another installer, or none"
            )
            return [Effect(Level.DISTURBS, text)]
        text = (
            f"{step.name} restarts: nodes keep the driver that they have until they are recreated"
            " or restarted"
        )
        return [Effect(Level.HARMLESS, text)]


def driver_installer(pools_of_others: Iterable[str] = ()) -> Manifest:
    """Return the DaemonSet, for nodes with GPUs on which GKE installs no driver.

    Args:
        pools_of_others: names of pools for which another DaemonSet installs another version.
    """
    manifest: Manifest = fast_yaml.load_beside(__file__, f"{NAME}.yaml")
    others = sorted(pools_of_others)
    if others:
        _expressions(manifest).append({"key": POOL_LABEL, "operator": "NotIn", "values": others})
    return manifest


def installer_of_a_version(version: str, pools: Iterable[str]) -> Manifest:
    """Return the DaemonSet that installs a version of the driver on the nodes of some pools.

    Args:
        version: `latest`, or a number, as cos-gpu-installer takes it.
        pools: names of the pools.
    """
    manifest = driver_installer()
    name = f"{NAME}-{version.replace('.', '-')}"
    template = manifest["spec"]["template"]
    for metadata in (manifest["metadata"], template["metadata"]):
        metadata["labels"]["k8s-app"] = name
    manifest["metadata"]["name"] = name
    manifest["spec"]["selector"]["matchLabels"]["k8s-app"] = name
    _expressions(manifest).append({"key": POOL_LABEL, "operator": "In", "values": sorted(pools)})
    command: list[str] = template["spec"]["initContainers"][0]["command"]
    command[-1] = command[-1].replace(_INSTALL, f"{_INSTALL} --version={version}")
    return manifest


def _expressions(manifest: Manifest) -> list[dict[str, object]]:
    """Return the conditions on the labels of a DaemonSet's nodes."""
    affinity = manifest["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    expressions: list[dict[str, object]] = required["nodeSelectorTerms"][0]["matchExpressions"]
    return expressions
