"""DraNet, which hands RDMA NICs to pods that claim them, and the device class of the claims.

Values: https://github.com/kubernetes-sigs/dranet, deployments/helm/dranet/values.yaml.
Container-Optimized OS fulfills its needs: containerd with NRI, by which DraNet moves a NIC into a
pod's network namespace, and the kubelet's folder in its usual place. DraNet detects Compute Engine
automatically, and then publishes each NIC's network and the node's block.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from berth.components.core.manifest import Manifest
from berth.components.core.types import Name, NonEmpty
from berth.components.fabric import dranet_class
from berth.components.gke import PoolSettings, pool_affinity
from berth.components.hardware import versions
from berth.components.hardware.names import DRANET
from berth.components.operators.chart_settings import ChartName, ChartSettings, Repository
from berth.components.operators.gib import has_nics
from berth.components.operators.operator import BY_CHART, Operator, OtherInstallation
from berth.components.operators.parts import Object, Part, namespace_of
from berth.components.plan.fleet import PlannedPool

SYSTEM_NAMESPACE = "kube-system"
"""Namespace that every cluster has."""


class DraNetSettings(ChartSettings):
    """DraNet, which hands RDMA NICs to pods: installed where a pool has `rdma: networks`.

    Its nodes need Container-Optimized OS and a containerd with NRI, which GKE's are.
    """

    source: Literal["chart", "manifest", "present"] = "chart"
    """`chart`: berth installs it by its chart. `manifest`: by a file with its objects. `present`:
    it is there already."""
    chart: ChartName = versions.DRANET_CHART
    repository: Repository = None
    version: Annotated[str, Field(examples=[versions.DRANET], pattern=r"^\d+\.\d+\.\d+$")] = (
        versions.DRANET
    )
    """Version of chart and image."""
    manifest: Annotated[NonEmpty | None, Field(examples=["./manifests/dranet.yaml"])] = None
    """File of YAML documents for `source: manifest`, relative to the project's folder, such as
    DraNet's install.yaml of a release."""
    namespace: Annotated[Name, Field(examples=["dranet"])] = SYSTEM_NAMESPACE
    """Namespace of its DaemonSet. GKE admits pods of system priority in kube-system."""
    node_selector: Annotated[dict[NonEmpty, str], Field(examples=[{"team": "research"}])] = {}
    """Labels of the nodes that it runs on, which are also of a pool with `rdma: networks`."""


class DraNet(Operator[DraNetSettings]):
    """DraNet by its chart or by its objects, and its device class, which is berth's in any case."""

    not_installed: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str] = "DraNet"
    release: ClassVar[str] = "dranet"
    setting: ClassVar[str] = "dranet"
    pool_setting: ClassVar[str] = "`rdma: networks`"
    settings_by_source: ClassVar[Mapping[tuple[str, ...], tuple[str, ...]]] = {
        ("chart",): BY_CHART,
        ("manifest",): ("manifest",),
        ("chart", "manifest"): ("nodeSelector",),
    }
    settings_by_value: ClassVar[Mapping[str, str]] = {
        "nodeSelector": "operators.dranet.nodeSelector",
        "affinity": "operators.dranet.nodeSelector, and `rdma: networks` of the pools",
    }
    other_installation: ClassVar[OtherInstallation | None] = OtherInstallation(
        conflict="two of them would hand out the same NICs",
        remedy="write `source: present`",
        images=("dranet",),
    )
    noun: ClassVar[str] = "DraNet"
    when_removed: ClassVar[str] = (
        "running pods keep their NICs, those that end hang until it is back, and none that claims"
        " NICs starts"
    )
    when_changed: ClassVar[str] = (
        "DraNet restarts on its nodes: running pods keep their NICs, and none that claims NICs"
        " starts meanwhile"
    )

    @classmethod
    def serves(cls, pool: PoolSettings) -> bool:
        """Return whether DraNet hands out a pool's NICs."""
        return pool.rdma == "networks"

    @classmethod
    def serves_planned(cls, pool: PlannedPool) -> bool:
        """Return whether a plan's pool has RDMA NICs."""
        return has_nics(pool)

    def parts(self, name: str) -> Iterator[Part]:
        """Yield the device class, and the chart or the objects, in the order of their file."""
        objects = self.site.manifests.get(self.setting, ())
        names = {(item["kind"], item["metadata"]["name"]) for item in objects}
        if ("DeviceClass", DRANET) not in names:
            yield Object(DRANET, dranet_class(self.site.resource_api))
        if self.settings.source == "chart":
            if self.settings.namespace != SYSTEM_NAMESPACE:
                yield namespace_of(name, self.settings.namespace)
            yield self.settings.chart_with(self.values(), self.repositories)
        for manifest in objects:
            yield Object(_name(manifest), self.placed(manifest))

    def values(self) -> dict[str, Any]:
        """Return the Helm values that differ from the chart's own."""
        values: dict[str, Any] = {
            # The chart's own default is a tag that moves.
            "image": {"tag": f"v{self.settings.version}"},
            "affinity": pool_affinity(self.pools),
            # DraNet's pods run on every node of their pools, whatever its taints.
            "tolerations": [{"operator": "Exists"}],
        }
        if self.settings.node_selector:
            values["nodeSelector"] = dict(self.settings.node_selector)
        return values

    def placed(self, manifest: Manifest) -> Manifest:
        """Return an object of the manifest, a DaemonSet limited to the pools and selector."""
        if manifest["kind"] != "DaemonSet":
            return manifest
        changed = copy.deepcopy(manifest)
        pod = changed["spec"]["template"]["spec"]
        values = self.values()
        pod["tolerations"] = values["tolerations"]
        for key in ("affinity", "nodeSelector"):
            if key in values:
                pod[key] = {**(pod.get(key) or {}), **values[key]}
        return changed


def _name(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    if metadata.get("namespace"):
        return f"{metadata['namespace']}/{metadata['name']}"
    return str(metadata["name"])
