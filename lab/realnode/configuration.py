"""Configuration of the node's programs: the files of the folder `etc`, filled in for a layout.

Answers to (real): containerd 2.2.3, the kubelet of Kubernetes 1.36.3 and CoreDNS 1.12.4, which read
    these files.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import yaml

from berth.lab.realnode.images import PAUSE_IMAGE

if TYPE_CHECKING:
    from berth.lab.realnode.layout import Layout
    from berth.lab.realnode.machine import Machine

ETC = Path(__file__).with_name("etc")

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


def files(layout: Layout, debian: Path, authority: Path, machine: Machine) -> dict[Path, str]:
    """Return the texts of the configuration files by their paths on the node.

    Args:
        layout: the node's paths and addresses.
        debian: unpacked Debian with runc and the network plugins.
        authority: certificate of the API server's authority.
        machine: the node.
    """
    values = {
        "tag": layout.tag,
        "folder": layout.folder,
        "etc": layout.configuration,
        "containerd": layout.containerd,
        "socket": layout.socket,
        "kubelet": layout.kubelet,
        "devices": layout.devices,
        "node": layout.node_address,
        "dns": layout.dns_address,
        "pods": layout.pods,
        "debian": debian,
        "authority": authority,
        "name": machine.node,
        "reserved_cpu": machine.reserved["cpu"],
        "reserved_memory": machine.reserved["memory"],
        "pause_image": PAUSE_IMAGE,
        "containerd_port": CONTAINERD_PORT,
        "kubelet_port": KUBELET_PORT,
        "health_port": HEALTH_PORT,
        "proxy_health_port": PROXY_HEALTH_PORT,
        "dns_health_port": DNS_HEALTH_PORT,
    }
    templates = [path for path in ETC.rglob("*") if path.is_file()]
    return {
        layout.configuration / path.relative_to(ETC): Template(path.read_text()).substitute(values)
        for path in templates
    }


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
