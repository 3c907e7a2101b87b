"""Processes of a real node, as data for the lab's process table.

Answers to (real): containerd 2.2.3, the kubelet of Kubernetes 1.36.3, CoreDNS 1.12.4 and DraNet 1.4.0, built from
    source (lab/tools).
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from types import MappingProxyType
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
"""Environment variable of everything in a node's namespaces that is no container: the node's tag."""

_ENTER = """#!/bin/sh
# Runs a program in the real node's namespaces. What it starts outlives it by design: only the node's own end ends that.
unset {mark}
export {node_mark}={tag}
export LD_LIBRARY_PATH={libraries}
export PATH={programs}:/usr/sbin:/usr/bin:/sbin:/bin
exec nsenter --target="$(cat {pid})" --net --mount -- "$@"
"""


@dataclass(frozen=True)
class Furnished(Probe):
    """The node's namespaces are there, whole.

    Attributes:
        path: the file that says so.
    """

    path: Path

    def answer(self, timeout: float = 0.0) -> str | None:  # noqa: ARG002 (a file answers at once)
        """None once they are."""
        return None if self.path.is_file() else "the node's namespaces are being made"


@dataclass(frozen=True)
class Programs:
    """Where a node's programs are.

    Attributes:
        built: those that the lab builds, by name.
        debian: the root under which Debian's packages were unpacked.
    """

    built: Mapping[str, Path]
    debian: Path

    @property
    def runc(self) -> Path:
        """The low-level runtime."""
        return self.debian / "usr/sbin/runc"

    @property
    def plugins(self) -> Path:
        """The folder of the CNI plugins."""
        return self.debian / "usr/lib/cni"

    @property
    def libraries(self) -> Path:
        """Shared libraries of Debian's programs."""
        return self.debian / "usr/lib/x86_64-linux-gnu"


def enter_script(layout: Layout, programs: Programs) -> str:
    """A script that runs a program in the node's namespaces."""
    path = [programs.debian / "usr/sbin", programs.built["containerd"].parent]
    return _ENTER.format(
        mark=MARK,
        node_mark=NODE_MARK,
        tag=layout.tag,
        libraries=programs.libraries,
        programs=":".join(map(str, path)),
        pid=layout.namespaces,
    )


def first(layout: Layout, programs: Programs, target: str) -> tuple[Process, ...]:
    """What has to run before images can be imported.

    Args:
        layout: the node.
        programs: where its programs are.
        target: the API server's `host:port` on loopback.
    """
    listen = f"{layout.host_address}:{configuration.API_PORT}"
    python = environment.complete(layout.home)
    return (
        Process(
            name=NAMESPACES,
            argv=(sys.executable, "-m", "berth.lab.realnode.enclosure", layout.told),
            purpose="holds the real node's network and mounts apart from this machine's",
            environment=python,
            probe=Furnished("", layout.namespaces),
        ),
        Process(
            name=RELAY,
            argv=(sys.executable, "-m", "berth.lab.realnode.relay", listen, target),
            purpose="shows the API server to the real node",
            needs=(NAMESPACES, "kube-apiserver"),
            environment=python,
            probe=Probe(f"https://{listen}/readyz"),
        ),
        _inside(
            layout,
            CONTAINERD,
            (programs.built["containerd"], "--config", layout.configuration / "containerd.toml"),
            "runs the real node's containers",
            (NAMESPACES,),
            f"http://{layout.node_address}:{configuration.CONTAINERD_PORT}/v1/metrics",
        ),
    )


def rest(layout: Layout, programs: Programs, machine: Machine) -> tuple[Process, ...]:
    """What runs once the images are there.

    Args:
        layout: the node.
        programs: where its programs are.
        machine: what the node is to be.
    """
    etc = layout.configuration
    config = etc / "kubeconfig.yaml"
    health = f"http://{layout.node_address}"
    node = machine.node
    nics = 'attributes["dra.net/ifName"].StringValue.matches("^gpu[0-9]+rdma0$")'
    return (
        _inside(
            layout,
            KUBELET,
            (
                programs.built["kubelet"],
                f"--config={etc / 'kubelet.yaml'}",
                f"--kubeconfig={config}",
                f"--hostname-override={node}",
                f"--node-ip={layout.node_address}",
                f"--root-dir={layout.kubelet}",
                f"--cert-dir={layout.kubelet / 'pki'}",
                f"--machine-cores={machine.cores}",
                f"--machine-memory={machine.memory}",
            ),
            "the real node's kubelet",
            (CONTAINERD, RELAY),
            f"{health}:{configuration.HEALTH_PORT}/healthz",
        ),
        _inside(
            layout,
            PROXY,
            (programs.built["kube-proxy"], f"--config={etc / 'kube-proxy.yaml'}"),
            "services' addresses on the real node",
            (RELAY,),
            f"{health}:{configuration.PROXY_HEALTH_PORT}/livez",
        ),
        _inside(
            layout,
            DNS,
            (programs.built["coredns"], f"-conf={etc / 'Corefile'}"),
            "names for the real pods",
            (RELAY,),
            f"{health}:{configuration.DNS_HEALTH_PORT}/health",
        ),
        _inside(
            layout,
            FABRIC,
            (sys.executable, "-m", "berth.lab.realnode.fabric", layout.told),
            "the real node's stand-in RDMA NICs: makes and addresses them, tells DraNet what they stand in for",
            (NAMESPACES,),
            f"{health}:{configuration.FABRIC_PORT}/health",
            environment.complete(layout.home),
        ),
        _inside(
            layout,
            DRANET,
            (
                programs.built["dranet"],
                f"-kubeconfig={config}",
                f"-hostname-override={node}",
                "-cloud-provider-hint=webhook",
                f"-webhook-url={health}:{configuration.FABRIC_PORT}",
                "-profile-provider=none",
                # A virtual interface that a pod holds is published all the same, as one on the PCI bus is.
                "-feature-gates=PersistentResourceSliceAttributes=true",
                f"-kubelet-root-dir={layout.kubelet}",
                "-db-path=/run/dranet.db",
                f"-bind-address={layout.node_address}:{configuration.DRANET_PORT}",
                f'-filter="dra.net/ifName" in attributes && {nics}',
            ),
            "hands the real node's NICs to pods",
            (KUBELET, FABRIC),
            f"{health}:{configuration.DRANET_PORT}/healthz",
        ),
        Process(
            name=GPUS,
            argv=(
                sys.executable,
                "-m",
                "berth.lab.realnode.device_plugin",
                str(layout.kubelet / "device-plugins"),
                str(machine.gpus),
            ),
            purpose="advertises the real node's stand-in GPUs",
            needs=(KUBELET,),
            environment=environment.complete(layout.home),
        ),
    )


def _inside(
    layout: Layout,
    name: str,
    command: tuple[object, ...],
    purpose: str,
    needs: tuple[str, ...],
    health: str,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Process:
    """A program in the node's namespaces; with another configuration it is started again."""
    files = sorted(
        path for path in layout.configuration.rglob("*") if path.is_file() and f"{path}" in " ".join(map(str, command))
    )
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files))
    return Process(
        name=name,
        argv=(str(layout.enter), *map(str, command)),
        purpose=purpose,
        needs=needs,
        environment=variables,
        probe=Probe(health),
        version=digest.hexdigest(),
    )
