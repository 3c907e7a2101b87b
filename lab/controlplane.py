"""The lab's Kubernetes control plane: laid out by kwokctl, run as processes of the lab.

kwokctl knows the certificates and flags with which these components make a cluster; that is used. Starting and stopping
is left to `berth.lab.processes`: kwokctl keeps bare pids, which a later process may have, and ends etcd without warning it.

Answers to (real): etcd 3.6, Kubernetes 1.36.3 (API server, controller manager, scheduler) and KWOK 0.7.0, built from
    source (lab/tools) and laid out by kwokctl.
Answers to (real): KWOK plays the kubelets of simulated nodes: their pods become ready at once, and no container runs
    (https://kwok.sigs.k8s.io). Whatever a container does or refuses is not seen there.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from berth.lab.errors import USAGE, LabError
from berth.lab.probes import Probe
from berth.lab.processes import MARK, Process

if TYPE_CHECKING:
    from pathlib import Path

    from berth.lab.home import Home
    from berth.lab.processes import Supervisor

CLUSTER = "berth"
FAKE_NODE = "kwok.x-k8s.io/node=fake"
"""Annotation of the nodes that KWOK plays; it leaves all others alone."""

PORTS = range(12000, 32000)
"""Where ports are chosen: below the range from which the kernel takes those of outgoing connections."""

PURPOSES = {
    "etcd": "the cluster's database",
    "kube-apiserver": "the Kubernetes API",
    "kube-controller-manager": "jobs, services, garbage collection",
    "kube-scheduler": "puts pods on nodes",
    "kwok-controller": "simulates the nodes' kubelets and their pods",
}

HEALTH = {
    "etcd": "http://127.0.0.1:{etcdPort}/health",
    "kube-apiserver": "https://127.0.0.1:{kubeApiserverPort}/readyz",
    "kube-controller-manager": "https://127.0.0.1:{kubeControllerManagerPort}/healthz",
    "kube-scheduler": "https://127.0.0.1:{kubeSchedulerPort}/readyz",
    "kwok-controller": "http://127.0.0.1:{kwokControllerPort}/healthz",
}

PORT_NAMES = {
    "etcd": ("etcdPort", "etcdPeerPort"),
    "kube-apiserver": ("kubeApiserverPort",),
    "kube-controller-manager": ("kubeControllerManagerPort",),
    "kube-scheduler": ("kubeSchedulerPort",),
    "kwok-controller": ("kwokControllerPort",),
}

ENVIRONMENT = {
    # The API server computes OpenAPI documents that every Pulumi plugin asks for, and keeps more garbage of them than
    # it has to. The limit must stay well above what is alive (half a gigabyte with the operators' definitions): below
    # it the garbage collector never rests and takes a whole core.
    "kube-apiserver": {"GOMEMLIMIT": "800MiB"},
}
"""Variables of single components."""

CONTROLLER_PORT = "labControllerPort"
GOOGLE_PORT = "googleApiPort"

SOCKET_LIMIT = 107
"""Most characters of a Unix socket's path (unix(7))."""

NO_NODE_LEASES = "--node-lease-duration-seconds=0"
"""KWOK then reports its nodes' health in their status: after a restart it would wait minutes for its own old leases."""

LAYOUT_GRACE = 1.0
"""Seconds for kwokctl's first start to end; nothing but the database's empty files is kept of it."""


@dataclass(frozen=True)
class ControlPlane:
    """A laid-out cluster.

    Attributes:
        processes: its components.
        ports: loopback ports by kwokctl's name for them, the lab controller's, and that of Google's APIs.
        folder: kwokctl's folder of the cluster, with `pki`.
    """

    processes: tuple[Process, ...]
    ports: dict[str, int]
    folder: Path

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.ports['kubeApiserverPort']}"

    def certificate(self, name: str) -> bytes:
        """A PEM file of the cluster: `ca.crt`, `admin.crt` or `admin.key`."""
        return (self.folder / "pki" / name).read_bytes()

    def kubeconfig(self) -> dict[str, Any]:
        """The administrator's kubeconfig, certificates included."""

        def data(name: str) -> str:
            return base64.b64encode(self.certificate(name)).decode()

        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "lab", "cluster": {"server": self.server, "certificate-authority-data": data("ca.crt")}}
            ],
            "users": [
                {
                    "name": "lab-admin",
                    "user": {"client-certificate-data": data("admin.crt"), "client-key-data": data("admin.key")},
                }
            ],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab-admin"}}],
            "current-context": "lab",
        }


def _free(port: int) -> bool:
    with contextlib.closing(socket.socket()) as candidate:
        # As the servers do: connections that ended a moment ago are no obstacle, a listener is.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose_ports(seed: str) -> dict[str, int]:
    """Free loopback ports, one for each listener; other labs on this machine get others.

    Args:
        seed: the lab's folder: the same lab gets the same ports again where they are free.

    Raises:
        LabError: hardly any port is free.
    """
    names = [name for names in PORT_NAMES.values() for name in names] + [CONTROLLER_PORT, GOOGLE_PORT]
    chooser = random.Random(seed)  # noqa: S311 - spreads labs over ports; nothing secret
    for _ in range(1000):
        first = chooser.randrange(PORTS.start, PORTS.stop - len(names), 10)
        ports = range(first, first + len(names))
        if all(map(_free, ports)):
            return dict(zip(names, ports, strict=True))
    raise LabError(
        f"no {len(names)} free ports in a row between {PORTS.start} and {PORTS.stop} on 127.0.0.1",
        "end some of the programs that listen there (`ss -ltn` lists them), then run `make lab` again",
    )


def _configuration(home: Home) -> dict[str, Any]:
    def program(name: str) -> str:
        return str((home.bin / name).absolute())

    def certificate(name: str) -> str:
        return str(_folder(home) / "pki" / name)

    def arguments(component: str, *, override: bool = False, **values: str) -> dict[str, Any]:
        named = [{"key": key.replace("_", "-"), "value": value, "override": override} for key, value in values.items()]
        return {"name": component, "extraArgs": named}

    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": {
            "runtime": "binary",
            "bindAddress": "127.0.0.1",  # kwokctl's default is every address of the machine
            "etcdBinary": program("etcd"),
            "kubeApiserverBinary": program("kube-apiserver"),
            "kubeControllerManagerBinary": program("kube-controller-manager"),
            "kubeSchedulerBinary": program("kube-scheduler"),
            "kwokControllerBinary": program("kwok"),
            "kubectlBinary": program("kubectl"),
            # Real pods know the API server by its service's address, the first of the default range.
            "kubeApiserverCertSANs": ["10.0.0.1"],
        },
        "componentsPatches": [
            # Nothing reaches the API through the `kubernetes` service, and its endpoint may not be on loopback.
            arguments("kube-apiserver", advertise_address="127.0.0.1", endpoint_reconciler_type="none"),
            # How it reaches kubelets: a real one by its address, KWOK's by the name `localhost`.
            arguments(
                "kube-apiserver",
                kubelet_preferred_address_types="InternalIP,Hostname",
                kubelet_client_certificate=certificate("admin.crt"),
                kubelet_client_key=certificate("admin.key"),
            ),
            # The way to pods, in which simulated ones can answer (lab/devices/egress.py).
            arguments("kube-apiserver", egress_selector_config_file=str(_egress_file(home))),
            # The only one of its kind doesn't wait, after a restart, for its predecessor's lease to run out.
            arguments("kube-controller-manager", leader_elect="false"),
            arguments("kube-scheduler", leader_elect="false"),
            # After the machine slept, nodes must not count as lost: KWOK never makes their pods ready again.
            arguments("kube-controller-manager", override=True, node_monitor_grace_period="8760h"),
            arguments("kwok-controller", override=True, manage_all_nodes="false"),
            arguments("kwok-controller", manage_nodes_with_annotation_selector=FAKE_NODE),
        ],
    }


def _egress_file(home: Home) -> Path:
    return home.root.absolute() / "egress.yaml"


def egress(home: Home) -> dict[str, Any]:
    """The API server's configuration of the way to pods and kubelets.

    Raises:
        LabError: the lab's folder has too long a path for a socket in it.
    """
    socket = str(home.egress.absolute())
    if len(socket) > SOCKET_LIMIT:
        raise LabError(
            f"{socket} has {len(socket)} characters, and Linux allows a socket's path {SOCKET_LIMIT}",
            "name a folder with a shorter path with --home or BERTH_LAB",
            code=USAGE,
        )
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": socket}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }


def _signature(home: Home) -> str:
    text = json.dumps([str(home.root.absolute()), _configuration(home), NO_NODE_LEASES], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _folder(home: Home) -> Path:
    return home.root.absolute() / "kwok" / "clusters" / CLUSTER


def load(home: Home) -> ControlPlane | None:
    """The layout as it was finished by `lay_out`, or None: never, only half, for another folder or other flags."""
    folder = _folder(home)
    try:
        layout = json.loads((folder / "layout.json").read_text())
        if layout["signature"] != _signature(home):
            return None
        ports: dict[str, int] = layout["ports"]
        ports[GOOGLE_PORT]  # one that was laid out by an older lab lacks it
        processes = tuple(_process(home, component, ports) for component in layout["components"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    plane = ControlPlane(processes, ports, folder)
    needed = [
        folder / "kwok.yaml",
        _egress_file(home),
        *(folder / "pki" / name for name in ("ca.crt", "admin.crt", "admin.key")),
    ]
    return plane if all(path.is_file() for path in needed) else None


def _process(home: Home, component: dict[str, Any], ports: dict[str, int]) -> Process:
    name = component["name"]
    return Process(
        name=name,
        argv=(str((home.bin / component["command"][0]).absolute()), *component["args"]),
        purpose=PURPOSES[name],
        needs=tuple(component.get("links", ())),
        ports=tuple(ports[port] for port in PORT_NAMES[name]),
        environment=ENVIRONMENT.get(name, {}),
        probe=Probe(HEALTH[name].format(**ports)),
    )


def _known_ports(folder: Path) -> dict[str, int] | None:
    """The ports of an earlier layout, if all are free: Pulumi's states may name them."""
    try:
        ports: dict[str, int] = json.loads((folder / "layout.json").read_text())["ports"]
    except (OSError, ValueError, KeyError):
        return None
    further = max(ports.values(), default=0) + 1
    if GOOGLE_PORT not in ports and _free(further):  # an older lab's: the others stay
        ports[GOOGLE_PORT] = further
    needed = {name for names in PORT_NAMES.values() for name in names} | {CONTROLLER_PORT, GOOGLE_PORT}
    return ports if ports.keys() == needed and all(map(_free, ports.values())) else None


def lay_out(home: Home, supervisor: Supervisor) -> ControlPlane:
    """Have kwokctl make certificates and flags; a database and certificates that are there already are kept.

    Raises:
        LabError: kwokctl failed; the text quotes it.
    """
    supervisor.stop_all()
    _egress_file(home).write_text(yaml.safe_dump(egress(home)))
    folder = _folder(home)
    ports = _known_ports(folder) or choose_ports(str(home.root.absolute()))
    for name in ("kwok.yaml", "layout.json"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "pids", ignore_errors=True)  # kwokctl takes any process with such a pid for its own
    configuration = _configuration(home)
    own = (CONTROLLER_PORT, GOOGLE_PORT)
    configuration["options"] |= {name: port for name, port in ports.items() if name not in own}
    request = home.root / "kwokctl.yaml"
    request.write_text(yaml.safe_dump(configuration))
    environment = os.environ | {
        "KWOK_WORKDIR": str(home.root.absolute() / "kwok"),
        MARK: f"{home.root.resolve()}:kwokctl",
    }
    command = [
        str(home.bin / "kwokctl"),
        "create",
        "cluster",
        f"--name={CLUSTER}",
        f"--config={request}",
        "--timeout=90s",
        NO_NODE_LEASES,
    ]
    try:
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    finally:
        # kwokctl can't lay out without starting; an API server that has only begun to start takes its time to end.
        supervisor.stop_all(grace=LAYOUT_GRACE)
    if result.returncode != 0 or not (folder / "kwok.yaml").is_file():
        lines = "\n".join(f"    {line[:300]}" for line in (result.stderr + result.stdout).splitlines()[-8:])
        raise LabError(
            f"kwokctl could not lay out the control plane:\n{lines}",
            "run `make lab` again; `make lab-clean` makes a new lab",
        )
    first = next(yaml.safe_load_all((folder / "kwok.yaml").read_text()))
    components = [
        {key: item.get(key, []) for key in ("name", "command", "args", "links")} for item in first["components"]
    ]
    partial = folder / "layout.partial"
    partial.write_text(json.dumps({"signature": _signature(home), "ports": ports, "components": components}, indent=1))
    partial.replace(folder / "layout.json")
    plane = load(home)
    if plane is None:
        raise LabError(f"the control plane's layout in {folder} is incomplete", "run `make lab-clean`, then `make lab`")
    return plane
