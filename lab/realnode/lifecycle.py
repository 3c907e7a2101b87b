"""Life of a real node: it joins a running lab and leaves it again, from any state."""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from string import Template

from berth.components.cluster.api import Object
from berth.lab.controlplane import ControlPlane
from berth.lab.errors import LabError
from berth.lab.home import LabHome
from berth.lab.locking import exclusive
from berth.lab.processes import LabProcess, Supervisor
from berth.lab.programs import kubectl
from berth.lab.progress import LabProgress
from berth.lab.realnode import (
    cleanup,
    configuration,
    debian,
    images,
    layout,
    machine,
    processes,
    requirements,
)
from berth.lab.realnode.layout import Layout
from berth.lab.realnode.machine import RealMachine
from berth.lab.realnode.processes import Programs
from berth.lab.toolchain.cache import Cache, default_folder
from berth.lab.toolchain.ensure import programs_of
from berth.lab.toolchain.tools import REAL_NODE_TOOLS

PACKAGES = (
    *("containernetworking-plugins", "nftables", "runc"),
    # Libraries of these three, beyond what every Debian has.
    *("libedit2", "libbsd0", "libmd0", "libjansson4", "libmnl0", "libnftables1", "libnftnl11"),
    *("libseccomp2", "libxtables12"),
)
"""Debian's packages with the node's programs; unpacked beside the lab's tools, never installed."""

READY_SECONDS = 90.0
_LOCK = ".real.lock"
_INTERVAL_SECONDS = 0.2
_SLICE = "berth-lab-api"
_AGAIN = "run `make lab-real` again"


def programs(progress: LabProgress) -> Programs:
    """Return the programs of a node, built or fetched where they are missing."""
    built = programs_of(REAL_NODE_TOOLS, progress)
    key = hashlib.sha256(
        "\n".join([*PACKAGES, Path("/etc/os-release").read_text()]).encode()
    ).hexdigest()

    def make(folder: Path) -> None:
        debian.unpack(PACKAGES, folder)

    title = "runc, network plugins, nftables"
    unpacked = Cache(default_folder(), progress).obtain(
        "debian", key, make, f"fetching {title} from Debian", title
    )
    return processes.Programs(built, unpacked)


def prepare(home: LabHome, progress: LabProgress) -> tuple[Programs, dict[str, Path]]:
    """Return programs and images, created where they are missing; nothing is started."""
    requirements.require(home)
    found = programs(progress)
    return found, images.ensure(found.built["pause"], progress)


def _layout(home: LabHome) -> Layout:
    """Return the node's layout; without a running node, its network is chosen again."""
    note = layout.folder(home) / "layout.json"
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = Layout(home, IPv4Network(json.loads(note.read_text())["network"]))
        if Supervisor(home).running(processes.NAMESPACES) is not None:
            return known
    note.parent.mkdir(parents=True, exist_ok=True)
    chosen = Layout(home, requirements.free_network(requirements.in_use()))
    note.write_text(json.dumps({"network": str(chosen.network)}))
    return chosen


def _write(node: Layout, found: Programs, described: RealMachine, plane: ControlPlane) -> None:
    """Write the node's configuration files and folders."""
    relay = f"https://{node.host_address}:{configuration.API_PORT}"
    texts = configuration.files(node, found.debian, plane.folder / "pki" / "ca.crt", described) | {
        node.configuration / "kubeconfig.yaml": configuration.kubeconfig(plane.kubeconfig(), relay),
        node.devices / "gpus.json": configuration.devices(described.gpus),
        node.enter: processes.enter_script(node, found),
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        if (
            path.read_text() != text
        ):  # the service proxy ends when its file is written, even if nothing changes
            path.write_text(text)
    node.enter.chmod(0o700)
    for folder in (node.kubelet / "device-plugins", node.containerd):
        folder.mkdir(parents=True, exist_ok=True)


def _import(
    node: Layout, found: Programs, archives: dict[str, Path], progress: LabProgress
) -> None:
    """Import images that containerd lacks, or has from another archive."""

    def images(*command: object) -> str:
        words = (
            node.enter,
            found.built["ctr"],
            "--address",
            node.socket,
            "--namespace",
            "k8s.io",
            "images",
            *command,
        )
        return debian.run([*map(str, words)], "ctr in the real node", env=dict(os.environ))

    note = node.containerd / "imported.json"
    there = set(images("list", "--quiet").split())
    known: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(note.read_text())
    missing = {
        name: path
        for name, path in archives.items()
        if name not in there or known.get(name) != str(path)
    }
    if not missing:
        return
    with progress.step("importing the images into containerd", f"images: {', '.join(missing)}"):
        for name, path in missing.items():
            images("import", path)
            known[name] = str(path)
    note.write_text(json.dumps(known))


def _publish_api(node: Layout) -> None:
    """Point the `kubernetes` service to the relay: the API server may not name loopback."""
    text = Template(Path(__file__).with_name("api.yaml").read_text())
    manifest = text.substitute(port=configuration.API_PORT, address=node.host_address, name=_SLICE)
    kubectl(node.home, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)


def _wait(
    answer: Callable[[LabHome, RealMachine], str | None], home: LabHome, described: RealMachine
) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while (problem := answer(home, described)) is not None:
        if time.monotonic() > deadline:
            log = Supervisor(home).log(processes.KUBELET)
            raise LabError(
                f"node {described.node} is not ready after {READY_SECONDS:.0f} s: {problem}",
                f"see {log}, then {_AGAIN}",
            )
        time.sleep(_INTERVAL_SECONDS)


def _addressless(home: LabHome, described: RealMachine) -> str | None:
    """Return why the node has no address yet; None if it has one."""
    address = kubectl(
        home, "get", "node", described.node, "--output=jsonpath={.status.addresses[0].address}"
    )
    return None if address else "the kubelet has not reported an address"


def _unready(home: LabHome, described: RealMachine) -> str | None:
    """Return why the node cannot take pods yet; None if it can."""
    node = json.loads(kubectl(home, "get", "node", described.node, "--output=json"))
    if problem := _not_ready(node):
        return problem
    offered = (node["status"].get("allocatable") or {}).get("nvidia.com/gpu", "0")
    if int(offered) != described.gpus:
        return f"it offers {offered} GPUs instead of {described.gpus}"
    nics = _published_nics(home, described)
    if nics != len(layout.NICS):
        return f"DraNet has published {nics} NICs instead of {len(layout.NICS)}"
    return None


def _not_ready(node: Object) -> str:
    """Return why Kubernetes takes a node for not ready; empty if it is ready."""
    conditions = (node.get("status") or {}).get("conditions") or []
    ready: Object = {}
    for condition in conditions:
        if condition["type"] == "Ready":
            ready = condition
    if ready.get("status") != "True":
        return str(ready.get("message") or "the kubelet has not reported")
    taints = node["spec"].get("taints") or []
    if any(taint["key"].startswith("node.kubernetes.io/") for taint in taints):
        return "its taint for not being ready is still there"
    return ""


def _published_nics(home: LabHome, described: RealMachine) -> int:
    selector = f"--field-selector=spec.nodeName={described.node}"
    slices = json.loads(kubectl(home, "get", "resourceslices", selector, "--output=json"))["items"]
    specs = [item["spec"] for item in slices if item["spec"]["driver"] == "dra.net"]
    return sum(len(spec.get("devices") or []) for spec in specs)


def up(home: LabHome, plane: ControlPlane, progress: LabProgress) -> str:
    """Join the real node to a lab that is up and has a pool for it; return the node's name."""
    found, archives = prepare(home, progress)
    with exclusive(
        home.root / _LOCK,
        lambda: progress.say("waiting for another command that changes the real node"),
    ):
        pool = machine.pool_of(home)
        described = machine.describe(pool)
        supervisor = Supervisor(home)
        if supervisor.running(processes.NAMESPACES) is None or machine.joined(home) not in {
            "",
            described.node,
        }:
            _end(home)
        node = _layout(home)
        _write(node, found, described, plane)
        cleanup.make_group(home)
        first, rest = processes.table(node, found, described, plane.server.removeprefix("https://"))
        with progress.step("starting the real node", "") as step:
            started = _start(supervisor, first)
            _import(node, found, archives, progress)
            _publish_api(node)
            if machine.joined(home) != described.node:
                machine.replace(home, pool, described.node, real=True)
            started += _start(
                supervisor, tuple(process for process in rest if process.name == processes.KUBELET)
            )
            # The service proxy ends when its node's address changes, so it starts once there is
            # one.
            _wait(_addressless, home, described)
            started += _start(supervisor, rest)
            _wait(_unready, home, described)
            state = "started " + ", ".join(started) if started else "all processes work"
            step.done = f"node {described.node} is real ({state})"
        return described.node


def _start(supervisor: Supervisor, needed: tuple[LabProcess, ...]) -> list[str]:
    if all(supervisor.problem(process, patience=0) is None for process in needed):
        return []
    return supervisor.start(needed)


def names(home: LabHome) -> list[str]:
    """Return the names of the real node's processes that were started, running or not."""
    return [name for name in Supervisor(home).records() if name.startswith("real-")]


def _end(home: LabHome) -> list[str]:
    """End everything of the node on this machine."""
    stopped = Supervisor(home).stop(names(home))
    cleanup.sweep(home)
    (layout.folder(home) / layout.NAMESPACES).unlink(missing_ok=True)
    return stopped


def has_pool(home: LabHome) -> bool:
    """Return whether the lab has a pool for the real node."""
    with contextlib.suppress(LabError):
        machine.pool_of(home)
        return True
    return False


def all_processes(home: LabHome, plane: ControlPlane) -> tuple[LabProcess, ...]:
    """Return every process of the real node, while there is one."""
    if not machine.joined(home):
        return ()
    found = programs(LabProgress())
    node = _layout(home)
    described = machine.describe(machine.pool_of(home))
    first, rest = processes.table(node, found, described, plane.server.removeprefix("https://"))
    return first + rest


def repair(home: LabHome, plane: ControlPlane, progress: LabProgress) -> None:
    """Remove a real node that broke, or its remains; one that runs stays."""
    supervisor = Supervisor(home)
    needed = [process.name for process in all_processes(home, plane)]
    if needed and all(supervisor.running(name) for name in needed):
        return
    if needed or names(home) or cleanup.leftovers(home):
        down(home)
        progress.say(
            "the real node had stopped, so it is simulated now; `make lab-real` starts it again"
        )


def down(home: LabHome) -> list[str]:
    """End the real node and simulate it again; return the names of its processes that ran."""
    node = machine.joined(home)
    if node:
        # Where the API server does not run any more, the next `up` of the lab creates the simulated
        # node.
        with contextlib.suppress(LabError):
            kubectl(
                home, "delete", "endpointslice", "--namespace=default", "--ignore-not-found", _SLICE
            )
            kubectl(home, "delete", "resourceslices", f"--field-selector=spec.nodeName={node}")
    stopped = _end(home)
    if node:
        with contextlib.suppress(LabError):
            machine.replace(home, machine.pool_of(home), node, real=False)
    return stopped
