"""A real node's life: joined to a running lab, and taken out of it again, from whatever state either is in.

Simulates nothing: it starts and stops the programs of the real node.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import time
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from berth.lab.errors import LabError
from berth.lab.locking import exclusive
from berth.lab.processes import Process, Supervisor
from berth.lab.progress import Progress
from berth.lab.realnode import cleanup, configuration, debian, images, layout, machine, processes, requirements
from berth.lab.realnode.layout import Layout
from berth.lab.toolchain.cache import Cache, default_folder
from berth.lab.toolchain.ensure import real_node_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from berth.lab.controlplane import ControlPlane
    from berth.lab.home import Home
    from berth.lab.realnode.machine import Machine
    from berth.lab.realnode.processes import Programs

PACKAGES = (
    *("containernetworking-plugins", "nftables", "runc"),
    # What these three are linked against, beyond what every Debian has.
    *(
        "libedit2",
        "libbsd0",
        "libmd0",
        "libjansson4",
        "libmnl0",
        "libnftables1",
        "libnftnl11",
        "libseccomp2",
        "libxtables12",
    ),
)
"""Debian's packages with the node's programs; unpacked beside the lab's tools, never installed."""

READY_SECONDS = 90.0
_LOCK = ".real.lock"
_INTERVAL_SECONDS = 0.2
_SLICE = "berth-lab-api"


@contextlib.contextmanager
def _alone(home: Home, progress: Progress) -> Iterator[None]:
    with exclusive(home.root / _LOCK, lambda: progress.say("waiting for another command that changes the real node")):
        yield


def programs(progress: Progress) -> Programs:
    """Everything that a node runs, built or fetched if need be.

    Raises:
        LabError: something can't be had.
    """
    built = real_node_programs(progress)
    cache = Cache(default_folder(), progress.say)
    key = hashlib.sha256("\n".join([*PACKAGES, Path("/etc/os-release").read_text()]).encode()).hexdigest()

    def make(folder: Path) -> None:
        debian.unpack(PACKAGES, folder)

    if cache.holds("debian", key):
        unpacked = cache.obtain("debian", key, make)
    else:
        with progress.step(
            "fetching runc, network plugins and nftables from Debian", "runc, network plugins, nftables"
        ):
            unpacked = cache.obtain("debian", key, make)
    return processes.Programs(built, unpacked)


def prepare(home: Home, progress: Progress) -> tuple[Programs, dict[str, Path]]:
    """Programs and images, made if need be; nothing is started.

    Raises:
        LabError: this machine can't have a real node, or something can't be made.
    """
    requirements.require(home)
    found = programs(progress)
    return found, images.ensure(found.built["pause"], progress)


def _layout(home: Home) -> Layout:
    """The node's layout: its network is chosen anew whenever nothing of the node is there."""
    note = layout.folder(home) / "layout.json"
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = Layout(home, IPv4Network(json.loads(note.read_text())["network"]))
        if Supervisor(home).running(processes.NAMESPACES) is not None:
            return known
    note.parent.mkdir(parents=True, exist_ok=True)
    chosen = Layout(home, requirements.free_network(requirements.in_use()))
    note.write_text(json.dumps({"network": str(chosen.network)}))
    return chosen


def _write(node: Layout, found: Programs, described: Machine, plane: ControlPlane) -> None:
    """The node's configuration files and folders."""
    etc = node.configuration
    kubeconfig = etc / "kubeconfig.yaml"
    relay = f"https://{node.host_address}:{configuration.API_PORT}"
    authority = plane.folder / "pki" / "ca.crt"
    texts = {
        etc / "containerd.toml": configuration.containerd(node, found.runc, found.plugins),
        etc / "cni" / "10-berth.conflist": configuration.cni(node),
        etc / "kubelet.yaml": configuration.kubelet(node, authority, described.reserved),
        etc / "kube-proxy.yaml": configuration.kube_proxy(node, kubeconfig, described.node),
        etc / "Corefile": configuration.corefile(node, kubeconfig),
        etc / "resolv.conf": f"nameserver {node.dns_address}\n",
        kubeconfig: configuration.kubeconfig(plane.kubeconfig(), relay),
        node.devices / "gpus.json": configuration.devices(described.gpus),
        node.enter: processes.enter_script(node, found),
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        if path.read_text() != text:  # the service proxy ends when its file is written, whatever is in it
            path.write_text(text)
    node.enter.chmod(0o700)
    for folder in (node.kubelet / "device-plugins", node.containerd):
        folder.mkdir(parents=True, exist_ok=True)


def _enter(node: Layout, *command: object) -> str:
    return debian.run([str(node.enter), *map(str, command)], f"{command[0]} in the real node", env=dict(os.environ))


def _import(node: Layout, found: Programs, archives: dict[str, Path], progress: Progress) -> None:
    """Give containerd the images that it doesn't have, or has of another make."""
    ctr = (found.built["ctr"], "--address", node.socket, "--namespace", "k8s.io", "images")
    note = node.containerd / "imported.json"
    there = set(_enter(node, *ctr, "list", "--quiet").split())
    known: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(note.read_text())
    missing = {name: path for name, path in archives.items() if name not in there or known.get(name) != str(path)}
    if not missing:
        return
    with progress.step("giving containerd the images", f"images: {', '.join(missing)}"):
        for name, path in missing.items():
            _enter(node, *ctr, "import", path)
            known[name] = str(path)
    note.write_text(json.dumps(known))


def _kubectl(home: Home, *arguments: str, data: str | None = None) -> str:
    command = [str(home.bin / "kubectl"), "--kubeconfig", str(home.kubeconfig), *arguments]
    result = subprocess.run(command, input=data, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise LabError(f"kubectl {' '.join(arguments[:3])}: {result.stderr.strip()}", "run `make lab-real` again")
    return result.stdout


def _publish_api(node: Layout) -> None:
    """Let the `kubernetes` service lead to the relay: the API server itself may not name a loopback address."""
    manifest: dict[str, Any] = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": _SLICE,
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": configuration.API_PORT, "protocol": "TCP"}],
        "endpoints": [{"addresses": [str(node.host_address)], "conditions": {"ready": True}}],
    }
    _kubectl(node.home, "apply", "--server-side", "--force-conflicts", "-f", "-", data=yaml.safe_dump(manifest))


def _wait(what: str, answer: Callable[[], str | None], log: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while (problem := answer()) is not None:
        if time.monotonic() > deadline:
            raise LabError(
                f"{what} after {READY_SECONDS:.0f} s: {problem}", f"see {log}, then run `make lab-real` again"
            )
        time.sleep(_INTERVAL_SECONDS)


def _addressless(home: Home, described: Machine) -> str | None:
    """Why the node has no address yet; None if it has one."""
    told = _kubectl(home, "get", "node", described.node, "-o", "jsonpath={.status.addresses[0].address}")
    return None if told else "the kubelet has not reported"


def _unready(home: Home, described: Machine) -> str | None:
    """Why the node can't take pods yet; None if it can."""
    node = json.loads(_kubectl(home, "get", "node", described.node, "-o", "json"))
    status = node.get("status") or {}
    ready = next((each for each in status.get("conditions") or [] if each["type"] == "Ready"), None)
    if ready is None or ready["status"] != "True":
        return str((ready or {}).get("message") or "the kubelet has not reported")
    if any(taint["key"].startswith("node.kubernetes.io/") for taint in node["spec"].get("taints") or []):
        return "its taint for not being ready is not gone yet"
    offered = (status.get("allocatable") or {}).get("nvidia.com/gpu", "0")
    if int(offered) != described.gpus:
        return f"it offers {offered} GPUs instead of {described.gpus}"
    slices = json.loads(
        _kubectl(home, "get", "resourceslices", f"--field-selector=spec.nodeName={described.node}", "-o", "json")
    )
    nics = sum(
        len(each["spec"].get("devices") or []) for each in slices["items"] if each["spec"]["driver"] == "dra.net"
    )
    return None if nics == len(layout.NICS) else f"DraNet has published {nics} NICs instead of {len(layout.NICS)}"


def up(home: Home, plane: ControlPlane, progress: Progress) -> str:
    """Join the real node to a lab that is up and has a pool for it.

    Returns:
        The node's name.

    Raises:
        LabError: this machine can't have one, something can't be made, or a program doesn't come up.
    """
    found, archives = prepare(home, progress)
    with _alone(home, progress):
        pool = machine.pool_of(home)
        described = machine.describe(pool)
        supervisor = Supervisor(home)
        before = machine.joined(home)
        if supervisor.running(processes.NAMESPACES) is None or before not in {"", described.node}:
            _end(home)
        node = _layout(home)
        _write(node, found, described, plane)
        cleanup.make_group(home)
        target = plane.server.removeprefix("https://")
        first, rest = processes.first(node, found, target), processes.rest(node, found, described)
        with progress.step("starting the real node", "") as step:
            started = _started(supervisor, first)
            _import(node, found, archives, progress)
            _publish_api(node)
            if machine.joined(home) != described.node:
                machine.replace(home, pool, described.node, real=True)
            kubelet = tuple(process for process in rest if process.name == processes.KUBELET)
            started += _started(supervisor, kubelet)
            # The service proxy ends when its node's address changes, so it starts once there is one.
            _wait(
                f"node {described.node} has no address",
                lambda: _addressless(home, described),
                str(supervisor.log(processes.KUBELET)),
            )
            started += _started(supervisor, rest)
            log = str(supervisor.log(processes.KUBELET))
            _wait(f"node {described.node} is not ready", lambda: _unready(home, described), log)
            step.done = f"node {described.node} is real ({'started ' + ', '.join(started) if started else 'all works'})"
        return described.node


def _started(supervisor: Supervisor, wanted: tuple[Process, ...]) -> list[str]:
    if all(supervisor.problem(process, patience=0) is None for process in wanted):
        return []
    return supervisor.start(wanted)


def names(home: Home) -> list[str]:
    """The real node's processes that were started, running or not."""
    return [name for name in Supervisor(home).records() if name.startswith("real-")]


def _end(home: Home) -> list[str]:
    """End everything of the node on this machine."""
    stopped = Supervisor(home).stop(names(home))
    cleanup.sweep(home)
    (layout.folder(home) / layout.NAMESPACES).unlink(missing_ok=True)
    return stopped


def has_pool(home: Home) -> bool:
    """Whether the lab has a pool whose node can be real."""
    with contextlib.suppress(LabError):
        machine.pool_of(home)
        return True
    return False


def all_processes(home: Home, plane: ControlPlane) -> tuple[Process, ...]:
    """Every process of the real node, while there is one."""
    if not machine.joined(home):
        return ()
    found, node = programs(Progress()), _layout(home)
    described = machine.describe(machine.pool_of(home))
    target = plane.server.removeprefix("https://")
    return (*processes.first(node, found, target), *processes.rest(node, found, described))


def mend(home: Home, plane: ControlPlane, progress: Progress) -> None:
    """Leave a real node alone that runs; one that broke leaves the lab, and so do the remains of one."""
    supervisor = Supervisor(home)
    wanted = [process.name for process in all_processes(home, plane)]
    dead = [name for name in wanted if supervisor.running(name) is None]
    if wanted and not dead:
        return
    if wanted or names(home) or cleanup.leftovers(home):
        down(home)
        progress.say("the real node did not run any more and is simulated again; `make lab-real` brings it back")


def down(home: Home) -> list[str]:
    """Take the real node out of the lab, where there is one; its pool's node is simulated again.

    Returns:
        The names of the processes that ran.

    Raises:
        LabError: something of it would not go.
    """
    node = machine.joined(home)
    if node:
        # Where the API server does not run any more, the next `up` of the lab makes the simulated node.
        with contextlib.suppress(LabError):
            _kubectl(home, "delete", "endpointslice", "--namespace=default", "--ignore-not-found", _SLICE)
            _kubectl(home, "delete", "resourceslices", f"--field-selector=spec.nodeName={node}")
    stopped = _end(home)
    if node:
        with contextlib.suppress(LabError):
            machine.replace(home, machine.pool_of(home), node, real=False)
    return stopped
