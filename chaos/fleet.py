"""Environment that the campaign disturbs: an existing cluster, reached through the proxy."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from berth.components.core.manifest import MANAGED_BY
from berth.components.core.owner import STACK_LABEL
from berth.lab import controlplane
from chaos.proxy import Proxy
from tests.lab.conftest import Lab
from tests.lab.project import CHARTS, Project, Settings

ENV = "env"
"""Stack of the environment, with bob's berth."""
OWN = "alice"
"""Stack of an engineer's own berth."""

CASE = "BERTH_CHAOS_CASE"
"""Environment variable that marks all processes of a case."""

_MACHINES = {"cpu": ("n2-standard-128", 0), "dev": ("g2-standard-4", 1)}
_SETTLE_SECONDS = 8.0
_NODE = "berth-chaos/node"
_RAY = {"cpu": 1, "memory": "2Gi"}


def node(name: str, pool: str, number: int) -> dict[str, Any]:
    """Return a node for KWOK, with the labels of GKE."""
    machine, gpus = _MACHINES[pool]
    labels = {
        _NODE: "true",
        "cloud.google.com/gke-nodepool": pool,
        "cloud.google.com/gke-os-distribution": "cos",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": machine,
    }
    taints = []
    if gpus:
        labels |= {
            "cloud.google.com/gke-accelerator": "nvidia-l4",
            "cloud.google.com/gke-accelerator-count": str(gpus),
            "cloud.google.com/gke-gpu-driver-version": "default",
        }
        taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    size = {"cpu": "128", "memory": "512Gi", "pods": "250", "ephemeral-storage": "1Ti"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"providerID": f"kwok://{pool}/{number}", "taints": taints},
        "status": {"allocatable": size, "capacity": size},
    }


def environment(kubeconfig: Path, charts: Path, engineers: Sequence[str] = ("bob",)) -> Settings:
    """Return the environment's settings."""
    return {
        "cluster": {"existing": {"kubeconfig": str(kubeconfig)}},
        "pools": {
            "cpu": {"machineType": "n2-standard-128", "nodes": 2},
            "dev": {"machineType": "g2-standard-4", "nodes": 2},
        },
        "operators": {"kuberay": {"chart": str(charts / CHARTS["kuberay"])}},
        "defaults": {
            "head": _RAY,
            "worker": {"pool": "cpu", "gpus": 0, **_RAY},
            "wait": {"timeout": "3m"},
        },
        "engineers": {name: {} for name in engineers},
    }


@dataclass(frozen=True)
class Ended:
    """End of a command.

    Attributes:
        code: exit code; a signal's number below zero.
        stdout: standard output.
        stderr: standard error.
        seconds: duration.
    """

    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def text(self) -> str:
        """Standard output and standard error."""
        return f"{self.stdout}\n{self.stderr}"


@dataclass
class Command:
    """A command of a case, while it runs.

    Attributes:
        process: the process.
        mark: mark of its case.
        began: monotonic time of its start.
    """

    process: subprocess.Popen[str]
    mark: str
    began: float = field(default_factory=time.monotonic)

    def end(self, seconds: float) -> Ended | None:
        """Wait for the end; None if it takes longer."""
        try:
            stdout, stderr = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        return Ended(self.process.returncode, stdout, stderr, time.monotonic() - self.began)

    def family(self) -> list[psutil.Process]:
        """Return all living processes of the case, also those whose parents have ended."""
        return marked(self.mark)


def marked(mark: str) -> list[psutil.Process]:
    """Return the living processes with a case's mark."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(CASE) == mark and process.status() not in ("zombie", "dead"):
                found.append(process)
    return found


def left_behind(mark: str, spared: Sequence[str] = (), lasting: Collection[int] = ()) -> list[str]:
    """Return the command lines of a case's processes that go on, and end them.

    Args:
        mark: mark of the case.
        spared: programs that may go on, which are ended and not reported.
        lasting: pids of processes that are meant to stay.
    """
    deadline = time.monotonic() + _SETTLE_SECONDS
    while (found := _lines(mark, lasting)) and time.monotonic() < deadline:
        if all(_runs_one_of(spared, line) for line in found.values()):
            break
        time.sleep(0.1)
    for process in found:
        with contextlib.suppress(psutil.Error):
            process.kill()
    return [line[:200] for line in found.values() if not _runs_one_of(spared, line)]


def _runs_one_of(programs: Collection[str], line: str) -> bool:
    return any(program in line for program in programs)


def _lines(mark: str, lasting: Collection[int]) -> dict[psutil.Process, str]:
    """Return the command lines of a case's living processes, without lasting ones."""
    found = {}
    for process in marked(mark):
        with contextlib.suppress(psutil.Error):
            if process.pid not in lasting:
                found[process] = " ".join(process.cmdline())
    return found


@dataclass(frozen=True)
class BehindProxy(Lab):
    """The lab, for programs that log in to its API server through the proxy."""

    login: Path

    @property
    def env(self) -> dict[str, str]:
        return super().env | {"KUBECONFIG": str(self.login)}


@dataclass(frozen=True)
class Fleet:
    """Lab, proxy and project of a campaign.

    Attributes:
        lab: the lab, reached without the proxy.
        proxy: the proxy.
        project: project whose commands go through the proxy.
        kubeconfig: kubeconfig that leads to the proxy.
    """

    lab: Lab
    proxy: Proxy
    project: Project
    kubeconfig: Path

    def start(self, mark: str, *command: str, **more: str) -> Command:
        """Start a command with a case's mark."""
        process = subprocess.Popen(
            command,
            cwd=self.project.folder,
            env=self.project.lab.env | {CASE: mark, "PYTHONUNBUFFERED": "1"} | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return Command(process, mark)

    def run(self, mark: str, *command: str, seconds: float = 300) -> Ended:
        """Run a command to its end; a hung one is killed and has code -9."""
        running = self.start(mark, *command)
        try:
            if ended := running.end(seconds):
                return ended
        finally:
            if running.process.poll() is None:
                os.killpg(running.process.pid, signal.SIGKILL)
        return running.end(30) or Ended(-9, "", "hung", seconds)

    def locks(self, stack: str) -> list[Path]:
        """Return the locks of Pulumi's state."""
        return sorted(self.lab.home.backend.glob(f".pulumi/locks/*/*/{stack}/*.json"))

    def unlock(self, stack: str) -> None:
        """Remove the locks of ended commands, so that the next case can begin."""
        for path in self.locks(stack):
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Destroy both stacks, and delete the nodes."""
        for stack in (OWN, ENV):
            self.unlock(stack)
            self.project.run(
                "pulumi", "destroy", "-s", stack, "--yes", "--skip-preview", check=False
            )
        self.lab.run(
            ["kubectl", "delete", "nodes", "-l", f"{_NODE}=true", "--wait=false"], check=False
        )

    def suspend(self, *, suspended: bool) -> None:
        """Suspend or wake bob's berth without berth."""
        patch = f'{{"spec":{{"suspend":{str(suspended).lower()}}}}}'
        self.lab.run(
            [
                "kubectl",
                "patch",
                "raycluster",
                "bob",
                "-n",
                "berth-bob",
                "--type=merge",
                "-p",
                patch,
            ]
        )

    def objects(self, stack: str) -> dict[str, Any]:
        """Return the objects that a stack made, without what the server adds, by name.

        A stack labels its namespaces, and what is outside of them.
        """
        managed = managed_objects(self.lab)
        labeled = [item for item in managed if item["metadata"]["labels"].get(STACK_LABEL) == stack]
        namespaces = {item["metadata"]["name"] for item in labeled if item["kind"] == "Namespace"}
        inside = [item for item in managed if item["metadata"].get("namespace") in namespaces]
        return {
            f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}": (
                plain(item)
            )
            for item in [*labeled, *inside]
        }

    def known(self, stack: str) -> set[str]:
        """Return the objects of the cluster that a stack's state has, by kind and name."""
        known = set()
        for resource in self.project.resources(stack):
            outputs = resource.get("outputs") or {}
            metadata = outputs.get("metadata") or {}
            if (
                resource["type"].startswith("kubernetes:")
                and "kind" in outputs
                and "name" in metadata
            ):
                known.add(f"{outputs['kind']} {metadata.get('namespace', '')}/{metadata['name']}")
        return known


def managed_objects(lab: Lab) -> list[dict[str, Any]]:
    """Return all objects of a lab that berth manages, of every kind and namespace."""
    listed = lab.run(
        ["kubectl", "api-resources", "--verbs=list,create", "--output=name"]
    ).stdout.split()
    kinds = ",".join(name for name in listed if name not in ("events", "events.events.k8s.io"))
    selector = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())
    return list(lab.get(kinds, "-A", "-l", selector)["items"])


_OF_THE_SERVER = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object without its status and what differs from one creation to the next."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in _OF_THE_SERVER}
    metadata["owned"] = bool(metadata.pop("ownerReferences", None))
    return {key: value for key, value in item.items() if key not in ("status", "metadata")} | {
        "metadata": metadata
    }


def _through(proxy: Proxy, lab: Lab) -> str:
    """Return the lab's kubeconfig with the proxy as its server."""
    config = yaml.safe_load(lab.kubeconfig.read_text())
    plane = controlplane.load(lab.home)
    if plane is None:
        raise RuntimeError("the lab has no control plane")
    for cluster in config["clusters"]:
        cluster["cluster"] = {
            "server": proxy.address,
            "certificate-authority-data": base64.b64encode(plane.certificate("ca.crt")).decode(),
        }
    return json.dumps(config)


@contextlib.contextmanager
def launched(folder: Path, lab: Lab) -> Iterator[Fleet]:
    """Yield an environment that is up on the lab, and stays."""
    plane = controlplane.load(lab.home)
    if plane is None:
        raise RuntimeError("the lab is not up")
    proxy = Proxy(plane)
    proxy.start()
    login = folder / "kubeconfig"
    fleet = Fleet(lab, proxy, Project.make(folder / "project", BehindProxy(lab.home, login)), login)
    try:
        fleet.kubeconfig.write_text(_through(proxy, lab))
        nodes = [
            node(f"{pool}-{number}", pool, number) for pool in _MACHINES for number in range(2)
        ]
        lab.run(
            ["kubectl", "apply", "-f", "-"],
            stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": nodes}),
        )
        fleet.project.write(ENV, environment=environment(fleet.kubeconfig, lab.home.charts))
        fleet.project.up(ENV)
        fleet.project.write(OWN, engineer={"environment": ENV})
        fleet.project.run("pulumi", "stack", "init", OWN, "--no-select", check=False)
        yield fleet
    finally:
        proxy.stop()
