"""Pulumi project of a test, with berth's program, run by the real engine against a lab."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from berth.components.core.owner import namespace_of
from tests.lab.conftest import Lab

CLONE = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 120
SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0

CHARTS = {
    "kuberay": "kuberay-operator",
    "gpu": "gpu-operator",
    "dranet": "dranet",
    "gpuDra": "dra-driver-nvidia-gpu",
}
"""Charts of the lab by the operator's name in the settings."""

NETWORK = {"existing": {"network": "shared", "subnetwork": "shared-nodes"}}
"""An existing network: the import of pulumi_gcp.compute, for new ones, is a third of what an update
without changes costs. It is in no project: where `berth doctor` looks for it, and where pools have
RDMA networks, a test asks for new ones by `network={}`. The shipped stacks have new ones.
"""

HEAD = {"cpu": 1, "memory": "2Gi"}
SMALL = {"head": HEAD, "worker": {"cpu": 1, "memory": "4Gi"}}
"""Pods that fit on small nodes."""

Settings = dict[str, Any]
Done = subprocess.CompletedProcess[str]


def environment_settings(
    lab: Lab, pools: Settings, *operators: str, defaults: Settings | None = None, **settings: Any
) -> Settings:
    """Settings of an environment with the lab's charts of KubeRay and other operators, and a CPU
    pool of one node beside the given pools.
    """
    return {
        "project": "berth-test",
        "zone": "us-central1-b",
        "network": NETWORK,
        "cluster": {"deletionProtection": False},
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}, **pools},
        "operators": {
            name: {"chart": str(lab.home.charts / CHARTS[name])} for name in ("kuberay", *operators)
        },
        "defaults": {"wait": {"timeout": "2m"}} | (defaults or {}),
        **settings,
    }


@dataclass(frozen=True)
class Project:
    """Project in a folder, and the commands that run in it.

    Attributes:
        folder: Pulumi.yaml, __main__.py and stacks/ of the test.
        lab: the lab that it runs against.
    """

    folder: Path
    lab: Lab

    @classmethod
    def make(cls, folder: Path, lab: Lab) -> Project:
        """Lay a project out with the clone's own Pulumi.yaml and __main__.py."""
        (folder / "stacks").mkdir(parents=True)
        for name in ("Pulumi.yaml", "__main__.py"):
            (folder / name).write_bytes((CLONE / name).read_bytes())
        return cls(folder, lab)

    def write(self, stack: str, **config: Settings) -> None:
        """Write a stack's config: `environment=…` or `engineer=…`."""
        path = self.folder / "stacks" / f"Pulumi.{stack}.yaml"
        text = yaml.safe_load(path.read_text()) if path.exists() else {}
        path.write_text(
            yaml.safe_dump(
                text | {"config": {f"berth:{key}": value for key, value in config.items()}}
            )
        )

    def state(self, stack: str) -> Path:
        """File of a stack's state in the lab's backend."""
        name = yaml.safe_load((self.folder / "Pulumi.yaml").read_text())["name"]
        return self.lab.home.backend / f".pulumi/stacks/{name}/{stack}.json"

    def run(self, *command: str, check: bool = True) -> Done:
        """Run a command in the project's folder."""
        return self.lab.run(list(command), cwd=self.folder, check=check)

    def up(self, stack: str, *options: str, check: bool = True) -> Done:
        """`pulumi up` without questions; the stack is made where it is missing."""
        if not self.state(stack).exists():
            self.run("pulumi", "stack", "init", stack, "--no-select")
        return self.run(
            "pulumi", "up", "-s", stack, "--yes", "--skip-preview", *options, check=check
        )

    def destroy(self, stack: str) -> Done:
        """`pulumi destroy` without questions."""
        return self.run("pulumi", "destroy", "-s", stack, "--yes", "--skip-preview")

    def status(self, stack: str) -> dict[str, Any]:
        """Document of `berth status --json`, healthy or not."""
        done = self.run("berth", "status", "-s", stack, "--json", check=False)
        assert done.stdout, done.stderr
        return dict(json.loads(done.stdout))

    def preview(self, stack: str) -> dict[str, str]:
        """Operations of `pulumi preview` by `type::name`, without unchanged resources."""
        steps = json.loads(self.run("pulumi", "preview", "-s", stack, "--json").stdout)["steps"]
        return {_short(step["urn"]): step["op"] for step in steps if step["op"] != "same"}

    def outputs(self, stack: str) -> dict[str, Any]:
        """The stack's outputs, secrets shown."""
        return dict(
            json.loads(
                self.run(
                    "pulumi", "stack", "output", "-s", stack, "--json", "--show-secrets"
                ).stdout
            )
        )

    def resources(self, stack: str) -> list[dict[str, Any]]:
        """The resources in the stack's state."""
        state = json.loads(self.state(stack).read_text())
        return list(state["checkpoint"]["latest"].get("resources") or [])

    def get(self, *what: str) -> list[dict[str, Any]]:
        """Objects of the cluster, by kubectl: `get("pods", "-n", "berth-bob")`."""
        return list(self.lab.get(*what)["items"])

    def versions(self) -> dict[str, str]:
        """resourceVersion of every berth's namespace, RayCluster and pods."""
        found = [*self.get("namespaces"), *self.get("rayclusters,pods", "-A")]
        return {
            f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}": (
                item["metadata"]["resourceVersion"]
            )
            for item in found
            if "berth-" in item["metadata"].get("namespace", item["metadata"]["name"])
        }

    def workers(self, owner: str) -> list[dict[str, Any]]:
        """Worker pods of a berth or a named cluster that are not going away."""
        pods = self.get("pods", "-n", namespace_of(owner), "-l", "ray.io/node-type=worker")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def brought_up(folder: Path, lab: Lab, stack: str, environment: Settings) -> Project:
    """Project with one environment that is up."""
    project = Project.make(folder / "project", lab)
    project.write(stack, environment=environment)
    project.up(stack)
    return project


@contextlib.contextmanager
def started(project: Project, *command: str) -> Iterator[subprocess.Popen[str]]:
    """Command that runs in the project's folder meanwhile; interrupted at the end, so that it
    leaves no lock and no child behind.
    """
    with subprocess.Popen(
        command,
        cwd=project.folder,
        env=project.lab.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _short(urn: str) -> str:
    """Type and name of a resource, without the types of its parents."""
    types, name = urn.rsplit("::", 2)[1:]
    return f"{types.rsplit('$', 1)[-1]}::{name}"


def eventually(condition: Callable[[], bool], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Wait until a condition holds; fail, naming it, when it doesn't in time."""
    deadline = time.monotonic() + seconds
    pause = SHORTEST_PAUSE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        # A condition is mostly a run of kubectl, which takes a core from the tests beside it.
        time.sleep(pause)
        pause = min(pause * 1.2, LONGEST_PAUSE_SECONDS)
