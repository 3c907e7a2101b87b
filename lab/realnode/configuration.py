"""Configuration of the node's programs, as text that depends only on its layout.

Answers to (real): containerd 2.2.3, the kubelet of Kubernetes 1.36.3 and CoreDNS 1.12.4, which read
    these files.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import yaml

from berth.lab.realnode.images import PAUSE_IMAGE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from berth.lab.realnode.layout import Layout

GPU_KIND = "nvidia.com/gpu"
"""CDI kind of the stand-in devices, the same as of NVIDIA's."""

KUBELET_PORT = 10250
API_PORT = 6443
CONTAINERD_PORT = 1338
HEALTH_PORT = 10248
PROXY_HEALTH_PORT = 10256
DNS_HEALTH_PORT = 18080
DRANET_PORT = 9177
FABRIC_PORT = 9178

NETWORK = "berth"


def containerd(layout: Layout, debian: Path) -> str:
    """Return containerd's configuration (version 3), with runc and CNI plugins of a Debian root."""
    own = layout.containerd
    return f"""version = 3
root = "{own / "root"}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.blockfile"]

[grpc]
address = "{layout.socket}"

[metrics]
address = "{layout.node_address}:{CONTAINERD_PORT}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
cdi_spec_dirs = ["{layout.devices}"]
enable_cdi = true
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{debian / "usr/lib/cni"}"]
conf_dir = "{layout.configuration / "cni"}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{debian / "usr/sbin/runc"}"
SystemdCgroup = false

[plugins."io.containerd.nri.v1.nri"]
disable = false
socket_path = "/run/nri/nri.sock"
plugin_path = "/run/nri/plugins"
plugin_config_path = "/run/nri/conf.d"
"""


def cni(layout: Layout) -> str:
    """Return the pods' network: a pair of interfaces for each pod, traffic routed by the node."""
    plugin = {
        "type": "ptp",
        "mtu": 1500,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": str(layout.pods)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            # Forgotten with the pods, when the namespaces go.
            "dataDir": "/run/cni",
        },
    }
    return json.dumps({"cniVersion": "1.0.0", "name": NETWORK, "plugins": [plugin, {"type": "portmap"}]}, indent=1)


def kubelet(layout: Layout, authority: Path, reserved: Mapping[str, str]) -> str:
    """Return the kubelet's configuration.

    The authority is that of the API server's client certificate; GKE keeps the reserved resources.
    """
    settings: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": str(layout.node_address),
        "port": KUBELET_PORT,
        "healthzBindAddress": str(layout.node_address),
        "healthzPort": HEALTH_PORT,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        # The simulated GKE creates the node's object, as the real one does before a machine starts.
        "registerNode": False,
        "containerRuntimeEndpoint": f"unix://{layout.socket}",
        "clusterDomain": "cluster.local",
        "clusterDNS": [str(layout.dns_address)],
        "resolvConf": str(layout.configuration / "resolv.conf"),
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.tag}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "makeIPTablesUtilChains": False,
        "volumePluginDir": str(layout.kubelet / "volume-plugins"),
        "podLogsDir": str(layout.folder / "pod-logs"),
        # The machine's owner watches its disk; the images exist nowhere else.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "24h",
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "kubeReserved": dict(reserved),
        "maxPods": 110,
        "serializeImagePulls": False,
        "shutdownGracePeriod": "0s",
    }
    return yaml.safe_dump(settings, sort_keys=False)


def kube_proxy(layout: Layout, kubeconfig: Path, node: str) -> str:
    """Return the service proxy's configuration: nftables in the node's network namespace."""
    settings = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": node,
        "bindAddress": str(layout.node_address),
        "healthzBindAddress": f"{layout.node_address}:{PROXY_HEALTH_PORT}",
        "metricsBindAddress": "127.0.0.1:10249",
        "clusterCIDR": str(layout.pods),
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "conntrack": {"maxPerCore": 0},
        "nodePortAddresses": [f"{layout.node_address}/32"],
    }
    return yaml.safe_dump(settings, sort_keys=False)


def corefile(layout: Layout, kubeconfig: Path) -> str:
    """Return CoreDNS's configuration: the cluster's names, and nothing beyond it."""
    return f"""cluster.local:53 {{
    bind {layout.dns_address}
    errors
    health {layout.node_address}:{DNS_HEALTH_PORT}
    kubernetes cluster.local {{
        kubeconfig {kubeconfig}
    }}
}}
.:53 {{
    bind {layout.dns_address}
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def devices(count: int) -> str:
    """Return the CDI description of stand-in GPUs: the null device under a GPU's name."""
    null = {"type": "c", "major": 1, "minor": 3, "fileMode": 0o666, "permissions": "rw"}
    found = [
        {"name": str(number), "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{number}", **null}]}}
        for number in range(count)
    ]
    return json.dumps({"cdiVersion": "0.6.0", "kind": GPU_KIND, "devices": found}, indent=1)


def kubeconfig(admin: dict[str, Any], server: str) -> str:
    """Return the administrator's kubeconfig with the relay's address, for the node's programs."""
    changed = copy.deepcopy(admin)
    for cluster in changed["clusters"]:
        cluster["cluster"] |= {"server": server, "tls-server-name": "kubernetes"}
    return yaml.safe_dump(changed, sort_keys=False)
