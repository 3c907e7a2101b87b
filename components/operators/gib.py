"""Google's NCCL plugin gIB, put on nodes with RDMA NICs: pods mount it from there.

The DaemonSet is that of Google's installer for A3 Ultra and A4
(https://github.com/GoogleCloudPlatform/container-engine-accelerators, gpudirect-rdma/nccl-rdma-installer.yaml at 992db812). It
differs in one thing: it runs on the pools with RDMA NICs by their names, and Google's by their GPU. A test compares the two
(tests/unit/components/upstream/nccl-rdma-installer.yaml).
"""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.gke import on_pools
from berth.components.operators.driver_installer import PAUSE
from berth.components.operators.settings import GibSettings
from berth.components.sharing import Pools

NAME = "nccl-rdma-installer"
NAMESPACE = "kube-system"

HOST_GIB = "/home/kubernetes/bin/gib"
"""Where the plugin, its configuration and scripts are on a node."""

HOST_LIBRARIES = "/home/kubernetes/bin/nvidia/lib64"
"""Folder of a node with the plugin's libraries, beside those of NVIDIA's driver."""

_IN_CONTAINER = "/usr/local"

_INSTALL = f"""set -ex
/scripts/container_entry.sh install
cp -r /var/lib/gib/lib64/. {_IN_CONTAINER}{HOST_LIBRARIES}
cp -r /var/lib/gib/. {_IN_CONTAINER}{HOST_GIB}
"""


def with_rdma(pools: Pools) -> list[str]:
    """Names of the pools whose nodes need the plugin, whoever hands their NICs out."""
    return sorted(name for name, pool in pools.items() if pool.settings.rdma != "none")


class Gib(pulumi.ComponentResource):
    """The installer's DaemonSet."""

    def __init__(
        self, name: str, settings: GibSettings, pools: Pools, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Install it.

        Args:
            name: Pulumi's name.
            settings: the image.
            pools: all pools by name; those with RDMA are among them.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:operators:Gib", name, None, opts)
        KubernetesObject(NAME, installer(settings, with_rdma(pools)), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def installer(settings: GibSettings, pools: Iterable[str]) -> Manifest:
    """The DaemonSet that copies the plugin to each node once.

    Args:
        settings: the image.
        pools: names of the pools on whose nodes it runs.
    """
    labels = {"k8s-app": NAME}
    volumes: list[Manifest] = [
        {"name": "library-dir-host", "hostPath": {"path": HOST_LIBRARIES, "type": "DirectoryOrCreate"}},
        {"name": "gib", "hostPath": {"path": HOST_GIB}},
    ]
    container = {
        "name": NAME,
        "image": settings.image,
        "command": ["/bin/sh", "-c"],
        "args": [_INSTALL],
        "securityContext": {"privileged": True},
        "resources": {"requests": {"cpu": "150m"}},
        "volumeMounts": [
            {"name": volume["name"], "mountPath": f"{_IN_CONTAINER}{volume['hostPath']['path']}"} for volume in volumes
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {**labels, **MANAGED_BY}},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {"name": NAME, **labels}},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "affinity": on_pools(pools),
                    "tolerations": [{"operator": "Exists"}],
                    "hostNetwork": True,
                    "hostPID": True,
                    "volumes": volumes,
                    "initContainers": [container],
                    "containers": [{"name": "pause", "image": PAUSE}],
                },
            },
        },
    }
