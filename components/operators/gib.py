"""Google's NCCL plugin gIB, copied to nodes with RDMA NICs, from where pods mount it.

The installer overwrites files that running workers have mapped; Google's release notes ask for a
time without workloads.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from berth.components.core import fast_yaml
from berth.components.core.image import Image
from berth.components.core.manifest import Manifest
from berth.components.core.settings import Settings
from berth.components.gke import PoolSettings, pool_affinity
from berth.components.hardware import versions
from berth.components.operators.operator import Operator, OtherInstallation
from berth.components.operators.parts import Object, pulled_containers
from berth.components.plan.effect import Effect, Level, sitting_on, where_somebody_works
from berth.components.plan.fleet import PlannedFleet, PlannedPool
from berth.components.plan.paths import below
from berth.components.plan.plan import Step

NAME = "nccl-rdma-installer"


class GibSettings(Settings):
    """Google's NCCL plugin for RDMA, gIB: a DaemonSet in kube-system for pools with `rdma`."""

    source: Literal["installer", "present"] = "installer"
    """`installer`: berth installs it. `present`: it is on the nodes already."""
    image: Annotated[Image, Field(examples=["registry.example.com/nccl-plugin-gib:v1.1.2"])] = (
        versions.GIB_IMAGE
    )
    """Image with the plugin, for nodes of amd64."""


class Gib(Operator[GibSettings]):
    """The installer's DaemonSet."""

    title: ClassVar[str] = "gIB"
    release: ClassVar[str] = "gib"
    setting: ClassVar[str] = "gib"
    daemon_set: ClassVar[str] = NAME
    pool_setting: ClassVar[str] = "`rdma`"
    settings_by_source: ClassVar[Mapping[tuple[str, ...], tuple[str, ...]]] = {
        ("installer",): ("image",)
    }
    other_installation: ClassVar[OtherInstallation | None] = OtherInstallation(
        conflict="it installs gIB on the nodes", remedy="write `source: present`", name=NAME
    )

    @classmethod
    def serves(cls, pool: PoolSettings) -> bool:
        """Return whether a pool has RDMA NICs, whoever hands them out."""
        return pool.rdma != "none"

    @classmethod
    def serves_planned(cls, pool: PlannedPool) -> bool:
        """Return whether a plan's pool has RDMA NICs."""
        return has_nics(pool)

    def parts(self, name: str) -> Iterator[Object]:
        """Yield a DaemonSet for each architecture of the nodes."""
        del name
        written = self.settings.image if "image" in self.settings.model_fields_set else ""
        for arm64 in (False, True):
            pools = [
                name
                for name, pool in self.pools.items()
                if pool.settings.machine.series.arm64 == arm64
            ]
            if pools:
                manifest = installer_manifest(self.settings, pools, arm64=arm64)
                yield Object(manifest["metadata"]["name"], self.site.with_copies(manifest, written))

    def images(self) -> Iterator[tuple[str, str]]:
        """Yield the images of the DaemonSets; that of the settings is for amd64."""
        for part in self.parts(self.release):
            installer, *others = pulled_containers(part.manifest)
            yield "image" if part.name == NAME else "", installer["image"]
            for container in others:
                yield "", container["image"]

    @classmethod
    def effects(cls, step: Step, fleet: PlannedFleet, changed: Sequence[str]) -> list[Effect]:
        """Return the effects of a change of the DaemonSet."""
        if step.operation == "delete":
            text = (
                "gIB stays on the nodes that have it; nodes that come later have none, and NCCL"
                " fails there"
            )
            return [Effect(Level.DISTURBS, text)]
        update = step.operation == "update"
        if update and not any(below(path, "spec.template") for path in changed):
            return []
        sitting = sitting_on(fleet, cls.pools_of(fleet))
        text = (
            "gIB is written over on every node with RDMA NICs: jobs that use it may crash, so"
            " change it while none runs"
        )
        if update and _installs_nccl(step.before) and not _installs_nccl(step.after):
            text += (
                "; the NCCL that the installer put there before stays, and shadows the image's"
                " (`berth docs fabric#nccl`)"
            )
        return [Effect(where_somebody_works(fleet, sitting), text, sitting, all_go=False)]


def has_nics(pool: PlannedPool) -> bool:
    """Return whether a plan's pool has RDMA NICs."""
    network = pool.settings.get("networkConfig") or {}
    return bool(
        network.get("additionalNodeNetworkConfigs") or network.get("acceleratorNetworkProfile")
    )


def _installs_nccl(inputs: Mapping[str, Any]) -> bool:
    """Return whether an installer copies an NCCL to nodes too, as older versions did."""
    pod = ((inputs.get("spec") or {}).get("template") or {}).get("spec") or {}
    arguments: list[str] = []
    for container in pod.get("initContainers") or []:
        arguments += container.get("args") or []
    return any("--install-nccl" in word for word in arguments)


def installer_manifest(
    settings: GibSettings, pools: Iterable[str], *, arm64: bool = False
) -> Manifest:
    """Return the DaemonSet that copies the plugin to each node of one architecture once."""
    manifest: Manifest = fast_yaml.load_beside(__file__, f"{NAME}.yaml")
    template = manifest["spec"]["template"]
    pod = template["spec"]
    pod["affinity"] = pool_affinity(pools)
    pod["initContainers"][0]["image"] = versions.GIB_ARM64_IMAGE if arm64 else settings.image
    if arm64:
        name = f"{NAME}-arm64"
        for metadata in (manifest["metadata"], template["metadata"]):
            metadata["labels"]["k8s-app"] = name
        manifest["metadata"]["name"] = name
        manifest["spec"]["selector"]["matchLabels"]["k8s-app"] = name
    return manifest
