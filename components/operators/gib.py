"""Google's NCCL plugin gIB, put on nodes with RDMA NICs: pods mount it from there.

What is run, and where it writes: Google's installer for A3 Ultra and A4
(https://github.com/GoogleCloudPlatform/container-engine-accelerators, gpudirect-rdma/nccl-rdma-installer.yaml). Its step that
keeps the kernel from logging martian packets of the NICs is left out: it is a setting of an interface in the node's own network
namespace, and a NIC that a pod claims leaves that.
"""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from components.manifest import MANAGED_BY, KubernetesObject, Manifest
from components.placement import on_pools
from stacks.settings.operators import GibSettings
from stacks.settings.pools import Pools

NAME = "nccl-rdma-installer"
NAMESPACE = "kube-system"

HOST_GIB = "/home/kubernetes/bin/gib"
"""Where the plugin, its configuration and scripts are on a node."""

HOST_LIBRARIES = "/home/kubernetes/bin/nvidia/lib64"
"""Where its libraries and its NCCL are on a node, beside those of NVIDIA's driver."""

_IN_CONTAINER = "/usr/local"

_INSTALL = f"""set -ex
/scripts/container_entry.sh install --install-nccl
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
    """The DaemonSet: on each node it copies the plugin to the host once, and then rests.

    Args:
        settings: the image.
        pools: names of the pools on whose nodes it runs.
    """
    labels = {"k8s-app": NAME}
    volumes = {"library-dir-host": HOST_LIBRARIES, "gib": HOST_GIB}
    container = {
        "name": NAME,
        "image": settings.image,
        "command": ["/bin/sh", "-c"],
        "args": [_INSTALL],
        "securityContext": {"privileged": True},
        "resources": {"requests": {"cpu": "150m"}},
        "volumeMounts": [{"name": name, "mountPath": f"{_IN_CONTAINER}{path}"} for name, path in volumes.items()],
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
                    "volumes": [
                        {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
                        for name, path in volumes.items()
                    ],
                    "initContainers": [container],
                    "containers": [{"name": "pause", "image": "gke.gcr.io/pause:3.8"}],
                },
            },
        },
    }
