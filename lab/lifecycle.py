"""A lab's life: up, down, clean. Each can be repeated, and interrupted, at any point."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.lab import controlplane, environment, kubernetes_plugin, programs
from berth.lab.errors import USAGE, LabError
from berth.lab.home import CLONE, SIGN
from berth.lab.locking import exclusive
from berth.lab.plugins.gcp import conditions
from berth.lab.probes import Probe
from berth.lab.processes import Process, Supervisor
from berth.lab.toolchain.ensure import ensure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berth.lab.controlplane import ControlPlane
    from berth.lab.home import Home
    from berth.lab.kubernetes_plugin import Plugin
    from berth.lab.progress import Progress

LOCK = ".lock"

CONTROLLER = "lab-controller"
GOOGLE_API = "google-api"
IDENTITY_SECONDS = 30.0


@dataclass(frozen=True)
class Running:
    """A lab that is up.

    Attributes:
        plane: its control plane.
        plugin: its kubernetes provider plugin.
        started: names of the processes that had to be started.
        forgotten: the cluster's database is another one than at the last `up`, so what Pulumi remembers is gone.
    """

    plane: ControlPlane
    plugin: Plugin
    started: tuple[str, ...]
    forgotten: bool


def _is_lab(home: Home) -> bool:
    return (home.root / SIGN).is_file()


@contextlib.contextmanager
def _alone(home: Home, progress: Progress) -> Iterator[None]:
    """Keep other commands from changing the same lab meanwhile."""
    with exclusive(home.root / LOCK, lambda: progress.say("waiting for another command that is changing this lab")):
        yield


def _claim(home: Home) -> None:
    if home.root.exists() and not _is_lab(home) and any(path.name != LOCK for path in home.root.iterdir()):
        raise LabError(
            f"{home.root} is not a lab's folder, and not empty: nothing was changed",
            "name another folder with --home or BERTH_LAB",
            code=USAGE,
        )
    home.root.mkdir(parents=True, exist_ok=True)
    (home.root / SIGN).write_text("A lab of berth. `berth lab clean` removes this folder.\n")


def _controller(home: Home, plane: ControlPlane) -> Process:
    port = plane.ports[controlplane.CONTROLLER_PORT]
    liveness = f"http://127.0.0.1:{port}/healthz"
    return Process(
        name=CONTROLLER,
        argv=(sys.executable, "-m", "berth.lab.devices", f"--liveness={liveness}"),
        purpose="simulates the GPUs' device plugins, runs the KubeRay operator",
        needs=("kube-apiserver",),
        ports=(port,),
        environment=environment.complete(home),
        probe=Probe(liveness),
        version=_version_of_the_lab(),
    )


def _google_api(home: Home, plane: ControlPlane) -> Process:
    port = plane.ports[controlplane.GOOGLE_PORT]
    return Process(
        name=GOOGLE_API,
        argv=(sys.executable, "-m", "berth.lab.google_api", str(port)),
        purpose="simulates Google's APIs, for what `berth doctor` reads",
        ports=(port,),
        environment=environment.complete(home),
        probe=Probe(f"http://127.0.0.1:{port}/healthz"),
        version=_version_of_the_lab(),
    )


def _version_of_the_lab() -> str:
    """A digest of the lab's own code: after an update of the clone a running lab would go on by the old rules."""
    digest = hashlib.sha256()
    for path in sorted((CLONE / "lab").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def processes(home: Home, plane: ControlPlane) -> tuple[Process, ...]:
    """Every process of a lab."""
    return (*plane.processes, _google_api(home, plane), _controller(home, plane))


def _identity(home: Home) -> str:
    """What tells this cluster's database from any other: the uid of its first namespace."""
    command = [str(home.bin / "kubectl"), "--kubeconfig", str(home.kubeconfig), "get", "namespace", "kube-system"]
    deadline = time.monotonic() + IDENTITY_SECONDS
    while True:
        result = subprocess.run(
            [*command, "-o", "jsonpath={.metadata.uid}"], capture_output=True, text=True, check=False
        )
        if result.returncode == 0 and result.stdout:
            return result.stdout
        if time.monotonic() > deadline:
            raise LabError(
                f"the lab's API server does not answer as it should: {result.stderr.strip()}",
                "run `make lab` again; `make lab-clean` makes a new lab",
            )
        time.sleep(0.1)


def stacks(home: Home) -> list[str]:
    """Names of the stacks with a state in the lab's Pulumi backend."""
    return sorted(path.stem for path in home.backend.glob(".pulumi/stacks/*/*.json"))


def _database_is_new(home: Home) -> bool:
    """Note which database this is; whether Pulumi has states that tell of another one."""
    note = home.root / "identity.json"
    identity = _identity(home)
    try:
        known = json.loads(note.read_text())["cluster"]
    except (OSError, ValueError, KeyError, TypeError):
        known = None
    if known != identity:
        note.write_text(json.dumps({"cluster": identity}))
    return known != identity and bool(stacks(home))


def up(home: Home, progress: Progress) -> Running:
    """Bring a lab to work, from whatever state it is in; what works already is left alone.

    Raises:
        LabError: a tool can't be built, or a process doesn't come up.
    """
    _claim(home)
    with _alone(home, progress):
        _claim(home)  # again: a `clean` that we waited for removed it
        tools = ensure(home, progress)
        programs.write_bin(home, tools)
        plugin = kubernetes_plugin.choose(home, tools.program("pulumi"), progress)
        programs.write_plugins(home, plugin)
        programs.write_charts(home, tools)
        home.backend.mkdir(exist_ok=True)
        conditions.place(home)
        supervisor = Supervisor(home)
        plane = controlplane.load(home)
        if plane is None:
            with progress.step("laying out the control plane", "control plane laid out: certificates, ports, flags"):
                plane = controlplane.lay_out(home, supervisor)
        else:
            supervisor.end_strays()
        programs.write_credentials(home, plane)
        wanted = processes(home, plane)
        started: list[str] = []
        if any(supervisor.problem(process, patience=0) is not None for process in wanted):
            with progress.step("starting what does not run", "") as step:
                started = supervisor.start(wanted)
                step.done = f"started {', '.join(started)}" if started else "all works"
        if had_real_node(home):
            from berth.lab.realnode import lifecycle as realnode  # noqa: PLC0415 - few labs ever have one

            realnode.mend(home, plane, progress)
        return Running(plane, plugin, tuple(started), _database_is_new(home))


def had_real_node(home: Home) -> bool:
    """Whether this lab has, or had, a real node."""
    return (home.root / "real").is_dir()


def _end_real_node(home: Home) -> list[str]:
    if not had_real_node(home):
        return []
    from berth.lab.realnode import lifecycle as realnode  # noqa: PLC0415 - as above

    return realnode.down(home)


def is_up(home: Home) -> bool:
    """Whether every process of the lab runs (whether each works, `berth.lab.report` tells)."""
    plane = controlplane.load(home)
    if plane is None:
        return False
    supervisor = Supervisor(home)
    return all(supervisor.running(process.name) is not None for process in processes(home, plane))


def down(home: Home, progress: Progress) -> list[str]:
    """End every process of a lab; its state stays.

    Returns:
        The names of the processes that ran.
    """
    if not _is_lab(home):
        return []
    with _alone(home, progress):
        return _end_real_node(home) + Supervisor(home).stop_all()


def clean(home: Home, progress: Progress) -> bool:
    """End every process of a lab and remove its folder.

    Returns:
        Whether there was one.

    Raises:
        LabError: the folder is not a lab's.
    """
    if not home.root.exists():
        return False
    if not _is_lab(home):
        raise LabError(
            f"{home.root} is not a lab's folder: nothing was removed",
            "name the lab's folder with --home or BERTH_LAB",
            code=USAGE,
        )
    with _alone(home, progress):
        _end_real_node(home)
        Supervisor(home).stop_all()
        shutil.rmtree(home.root)
    return True
