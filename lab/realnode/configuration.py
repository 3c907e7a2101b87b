"""Configuration of the node's programs: the files of the folder `etc`, filled in for a layout."""

import copy
import json
from pathlib import Path
from string import Template
from typing import Any

import yaml

from berth.lab.realnode.images import PAUSE_IMAGE
from berth.lab.realnode.layout import Layout
from berth.lab.realnode.machine import RealMachine

ETC = Path(__file__).with_name("etc")

GPU_KIND = "k8s.device-plugin.nvidia.com/gpu"
"""CDI kind of the stand-in devices, the same as of NVIDIA's device plugin."""

API_PORT = 6443
FABRIC_PORT = 9178


def values(layout: Layout, machine: RealMachine) -> dict[str, object]:
    """Return paths, addresses and ports by their names in the templates."""
    return {
        "tag": layout.tag,
        "folder": layout.folder,
        "etc": layout.configuration,
        "containerd": layout.containerd,
        "socket": layout.socket,
        "kubelet": layout.kubelet,
        "devices": layout.devices,
        "host": layout.host_address,
        "node": layout.node_address,
        "dns": layout.dns_address,
        "pods": layout.pods,
        "name": machine.node,
        "cores": machine.cores,
        "memory": machine.memory,
        "gpus": machine.gpus,
        "reserved_cpu": machine.reserved["cpu"],
        "reserved_memory": machine.reserved["memory"],
        "pause_image": PAUSE_IMAGE,
        "api_port": API_PORT,
        "containerd_port": 1338,
        "dns_health_port": 18080,
        "dranet_port": 9177,
        "fabric_port": FABRIC_PORT,
        "health_port": 10248,
        "kubelet_port": 10250,
        "proxy_health_port": 10256,
    }


def files(layout: Layout, debian: Path, authority: Path, machine: RealMachine) -> dict[Path, str]:
    """Return the texts of the configuration files by their paths on the node.

    Args:
        layout: the node's paths and addresses.
        debian: unpacked Debian with runc and the network plugins.
        authority: certificate of the API server's authority.
        machine: the node.
    """
    filled = {**values(layout, machine), "debian": debian, "authority": authority}
    templates = [path for path in ETC.rglob("*") if path.is_file()]
    return {
        layout.configuration / path.relative_to(ETC): Template(path.read_text()).substitute(filled)
        for path in templates
    }


def devices(count: int) -> str:
    """Return the CDI description of stand-in GPUs: the null device under a GPU's name."""
    null = {"type": "c", "major": 1, "minor": 3, "fileMode": 0o666, "permissions": "rw"}
    found = [
        {
            "name": str(number),
            "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{number}", **null}]},
        }
        for number in range(count)
    ]
    return json.dumps({"cdiVersion": "0.6.0", "kind": GPU_KIND, "devices": found}, indent=1)


def kubeconfig(admin: dict[str, Any], server: str) -> str:
    """Return the administrator's kubeconfig with the relay's address, for the node's programs."""
    changed = copy.deepcopy(admin)
    for cluster in changed["clusters"]:
        cluster["cluster"] |= {"server": server, "tls-server-name": "kubernetes"}
    return yaml.safe_dump(changed, sort_keys=False)
