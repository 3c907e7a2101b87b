"""Table of a real node's processes.

Answers to (real): containerd 2.2.3, the kubelet of Kubernetes 1.36.3, CoreDNS 1.12.4 and DraNet
    1.4.0, built from source (lab/tools).
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.lab import environment
from berth.lab.probes import Probe
from berth.lab.processes import MARK, Process
from berth.lab.realnode import configuration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from berth.lab.realnode.layout import Layout
    from berth.lab.realnode.machine import Machine

NAMESPACES = "real-namespaces"
RELAY = "real-relay"
CONTAINERD = "real-containerd"
KUBELET = "real-kubelet"
PROXY = "real-kube-proxy"
DNS = "real-coredns"
FABRIC = "real-fabric"
DRANET = "real-dranet"
GPUS = "real-gpu-plugin"

NODE_MARK = "BERTH_LAB_NODE"
"""Environment variable of every program in a node's namespaces outside of containers: the node's
tag."""

_ENTER = """#!/bin/sh
# Runs a program in the real node's namespaces. Its children outlive it by design, until the node ends.
unset {mark}
export {node_mark}={tag}
export LD_LIBRARY_PATH={libraries}
export PATH={programs}:/usr/sbin:/usr/bin:/sbin:/bin
exec nsenter --target="$(cat {pid})" --net --mount -- "$@"
"""


@dataclass(frozen=True)
class Programs:
    """Paths of built programs by name, and root of the unpacked Debian packages."""

    built: Mapping[str, Path]
    debian: Path


def enter_script(layout: Layout, programs: Programs) -> str:
    """Return a script that runs a program in the node's namespaces."""
    return _ENTER.format(
        mark=MARK,
        node_mark=NODE_MARK,
        tag=layout.tag,
        libraries=programs.debian / "usr/lib/x86_64-linux-gnu",
        programs=f"{programs.debian / 'usr/sbin'}:{programs.built['containerd'].parent}",
        pid=layout.namespaces,
    )


def first(layout: Layout, programs: Programs, target: str) -> tuple[Process, ...]:
    """Return the processes that must run before images can be imported.

    The relay's target is the API server's `host:port` on loopback.
    """
    listen = f"{layout.host_address}:{configuration.API_PORT}"
    return (
        Process(
            name=NAMESPACES,
            argv=(sys.executable, "-m", "berth.lab.realnode.enclosure", layout.argument),
            purpose="isolates the real node's network and mounts from this machine's",
            environment=environment.complete(layout.home),
            probe=Probe(layout.namespaces.as_uri()),
        ),
        Process(
            name=RELAY,
            argv=(sys.executable, "-m", "berth.lab.realnode.relay", listen, target),
            purpose="forwards the real node's connections to the API server",
            needs=(NAMESPACES, "kube-apiserver"),
            environment=environment.complete(layout.home),
            probe=Probe(f"https://{listen}/readyz"),
        ),
        _inside(
            layout,
            CONTAINERD,
            "runs the real node's containers",
            f"{configuration.CONTAINERD_PORT}/v1/metrics",
            (NAMESPACES,),
            (programs.built["containerd"], "--config", layout.configuration / "containerd.toml"),
        ),
    )


def rest(layout: Layout, programs: Programs, machine: Machine) -> tuple[Process, ...]:
    """Return the processes that run once the images are imported."""
    etc, built = layout.configuration, programs.built
    config = etc / "kubeconfig.yaml"
    nics = 'attributes["dra.net/ifName"].StringValue.matches("^gpu[0-9]+rdma0$")'
    kubelet = (
        built["kubelet"],
        f"--config={etc / 'kubelet.yaml'}",
        f"--kubeconfig={config}",
        f"--hostname-override={machine.node}",
        f"--node-ip={layout.node_address}",
        f"--root-dir={layout.kubelet}",
        f"--cert-dir={layout.kubelet / 'pki'}",
        f"--machine-cores={machine.cores}",
        f"--machine-memory={machine.memory}",
    )
    dranet = (
        built["dranet"],
        f"-kubeconfig={config}",
        f"-hostname-override={machine.node}",
        "-cloud-provider-hint=webhook",
        f"-webhook-url=http://{layout.node_address}:{configuration.FABRIC_PORT}",
        "-profile-provider=none",
        # A virtual interface that a pod holds is published all the same, as one on the PCI bus is.
        "-feature-gates=PersistentResourceSliceAttributes=true",
        f"-kubelet-root-dir={layout.kubelet}",
        "-db-path=/run/dranet.db",
        f"-bind-address={layout.node_address}:{configuration.DRANET_PORT}",
        f'-filter="dra.net/ifName" in attributes && {nics}',
    )
    proxy = (built["kube-proxy"], f"--config={etc / 'kube-proxy.yaml'}")
    dns = (built["coredns"], f"-conf={etc / 'Corefile'}")
    fabric = (sys.executable, "-m", "berth.lab.realnode.fabric", layout.argument)
    nics_purpose = "the real node's stand-in RDMA NICs: creates and addresses them, gives DraNet their attributes"
    device_plugin = ("berth.lab.realnode.device_plugin", str(layout.kubelet / "device-plugins"), str(machine.gpus))
    health = f"{configuration.HEALTH_PORT}/healthz"
    proxy_health, dns_health = f"{configuration.PROXY_HEALTH_PORT}/livez", f"{configuration.DNS_HEALTH_PORT}/health"
    fabric_health, dranet_health = f"{configuration.FABRIC_PORT}/health", f"{configuration.DRANET_PORT}/healthz"
    return (
        _inside(layout, KUBELET, "the real node's kubelet", health, (CONTAINERD, RELAY), kubelet),
        _inside(layout, PROXY, "services' addresses on the real node", proxy_health, (RELAY,), proxy),
        _inside(layout, DNS, "names for the real pods", dns_health, (RELAY,), dns),
        _inside(layout, FABRIC, nics_purpose, fabric_health, (NAMESPACES,), fabric),
        _inside(layout, DRANET, "hands the real node's NICs to pods", dranet_health, (KUBELET, FABRIC), dranet),
        Process(
            name=GPUS,
            argv=(sys.executable, "-m", *device_plugin),
            purpose="advertises the real node's stand-in GPUs",
            needs=(KUBELET,),
            environment=environment.complete(layout.home),
        ),
    )


def _inside(
    layout: Layout, name: str, purpose: str, health: str, needs: tuple[str, ...], command: tuple[object, ...]
) -> Process:
    """Program in the node's namespaces; another configuration starts it again."""
    words = [str(word) for word in command]
    paths = sorted(path for path in layout.configuration.rglob("*") if path.is_file())
    read = [path.read_bytes() for path in paths if any(str(path) in word for word in words)]
    return Process(
        name=name,
        argv=(str(layout.enter), *words),
        purpose=purpose,
        needs=needs,
        environment=environment.complete(layout.home) if words[0] == sys.executable else {},
        probe=Probe(f"http://{layout.node_address}:{health}"),
        version=hashlib.sha256(b"".join(read)).hexdigest(),
    )
