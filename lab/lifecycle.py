"""Life of a lab: up, down, clean. Each can be repeated, and interrupted, at any point."""

import contextlib
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from berth.lab import controlplane, environment, programs
from berth.lab.controlplane import ControlPlane
from berth.lab.errors import USAGE, LabError
from berth.lab.home import CLONE, SIGN, LabHome
from berth.lab.locking import exclusive
from berth.lab.plugins.gcp import conditions
from berth.lab.processes import LabProcess, Supervisor
from berth.lab.progress import LabProgress
from berth.lab.toolchain.ensure import programs_of
from berth.lab.toolchain.tools import TOOLS

LOCK = ".lock"

IDENTITY_SECONDS = 30.0


@dataclass(frozen=True)
class Running:
    """Lab that is up."""

    plane: ControlPlane
    started: tuple[str, ...]
    """Names of the processes that had to be started."""
    forgotten: bool
    """Whether the cluster's database is new: the resources in Pulumi's states are gone."""


def _is_lab(home: LabHome) -> bool:
    return (home.root / SIGN).is_file()


@contextlib.contextmanager
def _alone(home: LabHome, progress: LabProgress) -> Iterator[None]:
    """Keep other commands from changing the same lab meanwhile."""
    with exclusive(
        home.root / LOCK,
        lambda: progress.say("waiting for another command that is changing this lab"),
    ):
        yield


def _claim(home: LabHome) -> None:
    if (
        home.root.exists()
        and not _is_lab(home)
        and any(path.name != LOCK for path in home.root.iterdir())
    ):
        raise LabError(
            f"{home.root} is not a lab's folder, and not empty: nothing was changed",
            "name another folder with --home or BERTH_LAB",
            code=USAGE,
        )
    home.root.mkdir(parents=True, exist_ok=True)
    # Keys, states and sockets of the lab are its user's alone.
    home.root.chmod(0o700)
    (home.root / SIGN).write_text("A lab of berth. `berth lab clean` removes this folder.\n")


def processes(home: LabHome, plane: ControlPlane) -> tuple[LabProcess, ...]:
    """Return every process of a lab."""
    # A digest of the lab's own code: after an update of the clone, a running lab must not go on by
    # the old rules.
    files = sorted(path for path in (CLONE / "lab").rglob("*") if path.suffix in {".py", ".yaml"})
    code = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    variables = environment.complete(home)
    values = {**plane.ports, "python": sys.executable, "repository": home.repository}
    own = [
        LabProcess.of_row(name, row, values)
        for name, row in controlplane.TABLE.items()
        if "command" in row
    ]
    return (
        *plane.processes,
        *(replace(process, environment=variables, version=code) for process in own),
    )


def _identity(home: LabHome) -> str:
    """Return the uid of the first namespace, which no other cluster's database has."""
    deadline = time.monotonic() + IDENTITY_SECONDS
    while True:
        try:
            if uid := programs.kubectl(
                home, "get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}"
            ):
                return uid
        except LabError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def stacks(home: LabHome) -> list[str]:
    """Return the names of stacks with a state in the lab's Pulumi backend."""
    return sorted(path.stem for path in home.backend.glob(".pulumi/stacks/*/*.json"))


def _database_is_new(home: LabHome) -> bool:
    """Note which database this is; return whether Pulumi has states of another one."""
    note = home.root / "identity.json"
    identity = _identity(home)
    known = None
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(note.read_text())["cluster"]
    if known != identity:
        note.write_text(json.dumps({"cluster": identity}))
    return known != identity and bool(stacks(home))


def up(home: LabHome, progress: LabProgress) -> Running:
    """Bring a lab to work, from whatever state it is in; working processes are left alone."""
    _claim(home)
    with _alone(home, progress):
        _claim(home)  # again: a `clean` that held the lock removed it
        tools = programs_of(TOOLS, progress)
        programs.write_bin(home, tools)
        programs.write_plugins(home, tools)
        programs.write_charts(home, tools)
        programs.write_head_bin(home)
        home.backend.mkdir(exist_ok=True)
        conditions.place(home.cloud)
        supervisor = Supervisor(home)
        plane = controlplane.load(home)
        if plane is None:
            with progress.step(
                "setting up the control plane", "control plane set up: certificates, ports, flags"
            ):
                plane = controlplane.lay_out(home, supervisor)
        else:
            supervisor.end_strays()
        controlplane.keep_private(plane)
        programs.write_credentials(home, plane)
        needed = processes(home, plane)
        started: list[str] = []
        if any(supervisor.problem(process, patience=0) is not None for process in needed):
            with progress.step("starting the processes that are not running", "") as step:
                started = supervisor.start(needed)
                step.done = f"started {', '.join(started)}" if started else "all processes work"
        if had_real_node(home):
            from berth.lab.realnode import lifecycle as realnode  # noqa: PLC0415 - few labs ever have one

            realnode.repair(home, plane, progress)
        environment.announce(home)
        return Running(plane, tuple(started), _database_is_new(home))


def had_real_node(home: LabHome) -> bool:
    """Return whether this lab has, or had, a real node."""
    return (home.root / "real").is_dir()


def _end_all(home: LabHome) -> list[str]:
    home.environment.unlink(missing_ok=True)
    ended: list[str] = []
    if had_real_node(home):
        from berth.lab.realnode import lifecycle as realnode  # noqa: PLC0415 - as above

        ended = realnode.down(home)
    return ended + Supervisor(home).stop_all()


def is_up(home: LabHome) -> bool:
    """Return whether every process of the lab runs (`berth.lab.report` has whether each works)."""
    plane = controlplane.load(home)
    supervisor = Supervisor(home)
    return plane is not None and all(
        supervisor.running(process.name) for process in processes(home, plane)
    )


def down(home: LabHome, progress: LabProgress) -> list[str]:
    """End every process of a lab and return their names; the lab's state stays."""
    if not _is_lab(home):
        return []
    with _alone(home, progress):
        return _end_all(home)


def clean(home: LabHome, progress: LabProgress) -> bool:
    """End every process of a lab and remove its folder; return whether there was one."""
    if not home.root.exists():
        return False
    if not _is_lab(home):
        raise LabError(
            f"{home.root} is not a lab's folder: nothing was removed",
            "name the lab's folder with --home or BERTH_LAB",
            code=USAGE,
        )
    with _alone(home, progress):
        _end_all(home)
        shutil.rmtree(home.root)
    return True
