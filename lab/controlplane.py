"""Kubernetes control plane of the lab: laid out by kwokctl, run as processes of the lab.

kwokctl knows the certificates and flags with which these components form a cluster.
`berth.lab.processes` starts and stops them: kwokctl keeps bare pids, which a later process may
have, and kills etcd without a warning.
"""

import base64
import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

import yaml

from berth.components.core import whole_file
from berth.lab.errors import USAGE, LabError, quoted
from berth.lab.home import LabHome
from berth.lab.probes import Probe
from berth.lab.processes import MARK, LabProcess, Supervisor

CLUSTER = "berth"
REQUEST = Path(__file__).with_name("kwokctl.yaml")
"""Template of kwokctl's configuration."""

PORTS = range(12000, 32000)
"""Range of the lab's ports: below the range from which the kernel takes those of outgoing
connections."""


TABLE: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("processes.yaml").read_text()
)
"""Rows of the lab's processes, those of the control plane included."""

GOOGLE_PORT = "googleApiPort"
CHARTS_PORT = "chartsPort"
PORT_NAMES = tuple(port for row in TABLE.values() for port in row["ports"])

SOCKET_LIMIT = 107
"""Largest number of characters of a Unix socket's path (unix(7))."""

NO_NODE_LEASES = "--node-lease-duration-seconds=0"
"""KWOK then reports its nodes' health in their status: after a restart it would wait minutes for
its own old leases."""

LAYOUT_GRACE = 1.0
"""Seconds for kwokctl's first start to end; only the database's empty files of it are kept."""


@dataclass(frozen=True)
class ControlPlane:
    """Cluster that is laid out."""

    processes: tuple[LabProcess, ...]
    ports: dict[str, int]
    """Loopback ports by kwokctl's names, and those of the lab's own servers."""
    folder: Path
    """Folder of the cluster for kwokctl, with `pki`."""

    @property
    def server(self) -> str:
        """Address of the API server."""
        return f"https://127.0.0.1:{self.ports['kubeApiserverPort']}"

    def certificate(self, name: str) -> bytes:
        """Return a PEM file of the cluster: `ca.crt`, `admin.crt` or `admin.key`."""
        return (self.folder / "pki" / name).read_bytes()

    def kubeconfig(self) -> dict[str, Any]:
        """Return the administrator's kubeconfig, certificates included."""

        def data(name: str) -> str:
            return base64.b64encode(self.certificate(name)).decode()

        cluster = {"server": self.server, "certificate-authority-data": data("ca.crt")}
        user = {"client-certificate-data": data("admin.crt"), "client-key-data": data("admin.key")}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "lab-admin", "user": user}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab-admin"}}],
            "current-context": "lab",
        }


def _free(port: int) -> bool:
    with contextlib.closing(socket.socket()) as candidate:
        # As for the servers, a listener is an obstacle, a connection that ended a moment ago is
        # not.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose_ports(seed: str) -> dict[str, int]:
    """Return free loopback ports by name; one seed gives the same ports where they are free."""
    chooser = random.Random(seed)  # noqa: S311 - spreads labs over ports; nothing secret
    for _ in range(1000):
        first = chooser.randrange(PORTS.start, PORTS.stop - len(PORT_NAMES), 10)
        ports = range(first, first + len(PORT_NAMES))
        if all(map(_free, ports)):
            return dict(zip(PORT_NAMES, ports, strict=True))
    raise LabError(
        f"no {len(PORT_NAMES)} free ports in a row between {PORTS.start} and {PORTS.stop} on"
        " 127.0.0.1",
        "end some of the programs that listen there (`ss -ltn` lists them), then run `make lab`"
        " again",
    )


def request(home: LabHome, ports: Mapping[str, object]) -> str:
    """Return kwokctl's configuration of a lab."""
    paths = {"bin": home.bin.absolute(), "pki": _folder(home) / "pki", "egress": _egress_file(home)}
    quoted_paths = {name: json.dumps(str(path))[1:-1] for name, path in paths.items()}
    return Template(REQUEST.read_text()).substitute({**quoted_paths, **ports})


def keep_private(plane: ControlPlane) -> None:
    """Take from other users of the machine what makes them administrators of the cluster."""
    for path in (*plane.folder.glob("pki/*.key"), plane.folder / "kubeconfig.yaml"):
        path.chmod(0o600)


def _egress_file(home: LabHome) -> Path:
    return home.root.absolute() / "egress.yaml"


def egress(home: LabHome) -> str:
    """Return the API server's configuration of the way to pods and kubelets."""
    path = str(home.egress.absolute())
    if len(path) > SOCKET_LIMIT:
        raise LabError(
            f"{path} has {len(path)} characters, but Linux allows {SOCKET_LIMIT} in the path of a"
            " socket",
            "name a folder with a shorter path with --home or BERTH_LAB",
            code=USAGE,
        )
    return Template(Path(__file__).with_name("egress.yaml").read_text()).substitute(
        socket=json.dumps(path)
    )


def _signature(home: LabHome) -> str:
    text = request(home, dict.fromkeys(PORT_NAMES, 0)) + NO_NODE_LEASES
    return hashlib.sha256(text.encode()).hexdigest()


def _folder(home: LabHome) -> Path:
    return home.root.absolute() / "kwok" / "clusters" / CLUSTER


def load(home: LabHome) -> ControlPlane | None:
    """Return the finished layout; None without one for this folder and these flags."""
    folder = _folder(home)
    try:
        layout = json.loads((folder / "layout.json").read_text())
        if layout["signature"] != _signature(home) or layout["ports"].keys() != set(PORT_NAMES):
            return None
        ports: dict[str, int] = layout["ports"]
        processes = tuple(_process(home, component, ports) for component in layout["components"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    certificates = [folder / "pki" / name for name in ("ca.crt", "admin.crt", "admin.key")]
    complete = all(
        path.is_file() for path in (folder / "kwok.yaml", _egress_file(home), *certificates)
    )
    return ControlPlane(processes, ports, folder) if complete else None


def _process(home: LabHome, laid_out: dict[str, Any], ports: dict[str, int]) -> LabProcess:
    name = laid_out["name"]
    pki = _folder(home) / "pki"
    values = {**ports, "headPath": f"{home.head_bin.absolute()}:{os.environ['PATH']}"}
    process = LabProcess.of_row(name, TABLE[name], values)
    argv = (str((home.bin / laid_out["command"][0]).absolute()), *laid_out["args"])
    if process.probe and TABLE[name].get("certified"):
        process = replace(
            process,
            probe=Probe(process.probe.url, (str(pki / "admin.crt"), str(pki / "admin.key"))),
        )
    return replace(process, argv=argv, needs=tuple(laid_out["links"]))


def _known_ports(folder: Path) -> dict[str, int] | None:
    """Return the ports of an earlier layout, if all are free: Pulumi's states may name them."""
    try:
        ports: dict[str, int] = json.loads((folder / "layout.json").read_text())["ports"]
    except (OSError, ValueError, KeyError):
        return None
    return ports if ports.keys() == set(PORT_NAMES) and all(map(_free, ports.values())) else None


def lay_out(home: LabHome, supervisor: Supervisor) -> ControlPlane:
    """Have kwokctl make certificates and flags; existing certificates and data stay."""
    supervisor.stop_all()
    _egress_file(home).write_text(egress(home))
    folder = _folder(home)
    ports = _known_ports(folder) or choose_ports(str(home.root.absolute()))
    for name in ("kwok.yaml", "layout.json"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(
        folder / "pids", ignore_errors=True
    )  # kwokctl takes any process with such a pid for its own
    configuration = home.root / "kwokctl.yaml"
    configuration.write_text(request(home, ports))
    # With `--kubeconfig=`, the user's own kubeconfig stays as it is.
    options = [
        f"--name={CLUSTER}",
        f"--config={configuration}",
        "--kubeconfig=",
        "--timeout=90s",
        NO_NODE_LEASES,
    ]
    own = {
        "KWOK_WORKDIR": str(home.root.absolute() / "kwok"),
        MARK: f"{home.root.resolve()}:kwokctl",
    }
    try:
        result = subprocess.run(
            [str(home.bin / "kwokctl"), "create", "cluster", *options],
            env=os.environ | own,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        # kwokctl lays out by starting all, and an API server that still starts is slow to end.
        supervisor.stop_all(grace=LAYOUT_GRACE)
    if result.returncode != 0 or not (folder / "kwok.yaml").is_file():
        raise LabError(
            f"kwokctl could not set up the control plane:\n{quoted(result.stderr + result.stdout)}",
            "run `make lab` again; `make lab-clean` makes a new lab",
        )
    first = next(yaml.safe_load_all((folder / "kwok.yaml").read_text()))
    names = ("name", "command", "args", "links")
    components = [_selected(item, names) for item in first["components"]]
    layout = {"signature": _signature(home), "ports": ports, "components": components}
    whole_file.replace_file(folder / "layout.json", json.dumps(layout, indent=1))
    plane = load(home)
    if plane is None:
        raise LabError(
            f"the control plane's layout in {folder} is incomplete",
            "run `make lab-clean`, then `make lab`",
        )
    return plane


def _selected(item: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return fields of a component, empty lists for those that it lacks."""
    return {name: item.get(name, []) for name in names}
