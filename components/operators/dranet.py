"""DraNet, which hands the RDMA NICs of nodes to pods that claim them, and the device class by which they do.

Values: https://github.com/kubernetes-sigs/dranet, deployments/helm/dranet/values.yaml. Of its needs Container-Optimized OS brings
all: containerd with NRI, by which DraNet moves a NIC into a pod's network namespace, and the kubelet's folder in its usual place.
That it runs on Compute Engine it finds out itself, and then tells each NIC's network and the node's block.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import Manifest
from berth.components.fabric import dranet_class
from berth.components.gke import on_pools
from berth.components.hardware.names import DRANET, ResourceApi
from berth.components.operators.helm import Chart, operator_namespace, release
from berth.components.operators.settings import DraNetSettings
from berth.components.sharing import Pool, Pools

SYSTEM_NAMESPACE = "kube-system"
"""Is there in every cluster."""

EVERY_TAINT = [{"operator": "Exists"}]
"""Its pods belong on every node of their pools, whatever else is kept off those."""


@dataclass(frozen=True)
class DraNetInputs:
    """What DraNet needs to know.

    Attributes:
        settings: from where it comes, and where it runs.
        pools: all pools by name; those with RDMA networks are among them.
        resource_api: the version of resource.k8s.io that the cluster serves.
        manifest: the objects of `source: manifest`, in the order of their file.
    """

    settings: DraNetSettings
    pools: Pools
    resource_api: ResourceApi
    manifest: Sequence[Manifest] = ()


class DraNet(pulumi.ComponentResource):
    """DraNet by its chart or by its objects, and its device class."""

    def __init__(self, name: str, inputs: DraNetInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Install it.

        Args:
            name: name of the Helm release.
            inputs: settings and pools.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:operators:DraNet", name, None, opts)
        settings = inputs.settings
        child = pulumi.ResourceOptions(parent=self)
        # Without the class no claim is understood; it waits for nothing.
        if not any(_is_class(each) for each in inputs.manifest):
            KubernetesObject(DRANET, dranet_class(inputs.resource_api), child)
        if settings.source == "chart":
            before: list[pulumi.Resource] = []
            if settings.namespace != SYSTEM_NAMESPACE:
                before.append(operator_namespace(name, settings.namespace, child))
            chart = Chart(
                chart=settings.chart,
                repository=settings.repository,
                version=settings.version,
                namespace=settings.namespace,
                values=values(settings, inputs.pools),
            )
            release(name, chart, pulumi.ResourceOptions(parent=self, depends_on=before))
        # One after the other, as kubectl applies a file: a namespace stands before what is in it.
        last: list[pulumi.Resource] = []
        for each in inputs.manifest:
            options = pulumi.ResourceOptions(parent=self, depends_on=last)
            last = [KubernetesObject(_name(each), placed(each, settings, inputs.pools), options)]
        self.register_outputs({})


def served(pools: Pools) -> Mapping[str, Pool]:
    """The pools whose NICs it hands out."""
    return {name: pool for name, pool in pools.items() if pool.settings.rdma == "networks"}


def values(settings: DraNetSettings, pools: Pools) -> dict[str, Any]:
    """Helm values: what differs from the chart's own.

    Args:
        settings: version and node selector.
        pools: all pools by name.
    """
    chosen: dict[str, Any] = {
        # The chart's own default is a tag that moves.
        "image": {"tag": f"v{settings.version}"},
        "affinity": on_pools(served(pools)),
        "tolerations": EVERY_TAINT,
    }
    if settings.node_selector:
        chosen["nodeSelector"] = dict(settings.node_selector)
    return chosen


def placed(manifest: Manifest, settings: DraNetSettings, pools: Pools) -> Manifest:
    """An object of the manifest as it is registered: a DaemonSet runs only where the pools and the settings say.

    Args:
        manifest: the object as it was written.
        settings: the node selector.
        pools: all pools by name.
    """
    if manifest["kind"] != "DaemonSet":
        return manifest
    changed = copy.deepcopy(manifest)
    pod = changed["spec"]["template"]["spec"]
    pod["affinity"] = {**(pod.get("affinity") or {}), **on_pools(served(pools))}
    pod["tolerations"] = EVERY_TAINT
    if settings.node_selector:
        pod["nodeSelector"] = {**(pod.get("nodeSelector") or {}), **settings.node_selector}
    return changed


def _is_class(manifest: Manifest) -> bool:
    return bool(manifest["kind"] == "DeviceClass" and manifest["metadata"]["name"] == DRANET)


def _name(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
