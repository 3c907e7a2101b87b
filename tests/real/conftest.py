"""Lab of the tests with a real node, and an engineer's berth on that node."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.hardware.versions import RAY_IMAGE
from berth.lab.realnode import layout, requirements
from berth.lab.toolchain.cache import default_folder
from tests.lab import project
from tests.lab.conftest import BUILD_SECONDS, Lab, brought_up
from tests.lab.project import Project, Settings

POOL = "bench"
NAMESPACE = "real-test"
DEADLINE_SECONDS = 240

Object = dict[str, Any]

HYPERDISK: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "hyperdisk"},
    "provisioner": "pd.csi.storage.gke.io",
    "parameters": {"type": "hyperdisk-balanced"},
    "volumeBindingMode": "WaitForFirstConsumer",
}
"""StorageClass of an admin: an A4 node takes no Persistent Disk, and the heads are on one here."""


def environment(lab: Lab) -> Settings:
    labels = {"lab-node": "real"}
    pool = {"machineType": "a4-highgpu-8g", "nodes": 2, "rdma": "networks", "labels": labels}
    settings = project.environment_settings(
        lab,
        {POOL: pool},
        "dranet",
        network={},
        defaults={"wait": {}},
        policies={"waived": {"rdma-whole": "all pods share the one real node, and its NICs"}},
    )
    # Its image does not exist on a real node, and it would write to this machine.
    settings["operators"]["gib"] = {"source": "present"}
    return settings


def berth(**shape: Any) -> Settings:
    """Engineer's settings with all pods on the real pool, with the least resources that Ray
    needs.
    """
    pods = {
        "head": {"pool": POOL, "cpu": 1, "memory": "3Gi"},
        "worker": {"pool": POOL, "cpu": 1, "memory": "2Gi"},
    }
    return {"environment": "env", **pods, "wait": {"timeout": "5m"}, **shape}


def home(size: str) -> Settings:
    """Home of a berth whose head is on the real node."""
    return {"size": size, "storageClass": HYPERDISK["metadata"]["name"]}


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait as on simulated nodes, with the time that real containers take."""
    project.eventually(condition, what, seconds=DEADLINE_SECONDS)


def printed(process: subprocess.Popen[str]) -> Object:
    """JSON document that a command prints before it goes on; the command is ended where it prints
    none in time.
    """
    text = ""
    late = threading.Timer(DEADLINE_SECONDS, process.kill)
    late.start()
    try:
        for line in process.stdout or ():
            text += line
            if line == "}\n":
                return dict(json.loads(text))
    finally:
        late.cancel()
    raise AssertionError(f"no document: {text}{process.stderr.read() if process.stderr else ''}")


def machine_state() -> dict[str, set[str]]:
    """State of this machine that a real node could change."""

    def lines(*command: str) -> set[str]:
        return set(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        )

    debian = next(iter(default_folder().glob("debian-*")), Path("/"))
    libraries = f"LD_LIBRARY_PATH={debian / 'usr/lib/x86_64-linux-gnu'}"
    return {
        "interfaces": {line.split(": ")[1] for line in lines("ip", "-oneline", "link")},
        "network namespaces": lines("ip", "netns"),
        "routes": lines("ip", "route", "show", "table", "all"),
        "mounts": {
            line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()
        },
        "firewall tables": lines("env", libraries, str(debian / "usr/sbin/nft"), "list", "tables"),
        # Every container is in one.
        "control groups": {str(path) for path in Path("/sys/fs/cgroup").glob("*/*/")},
    }


@dataclass(frozen=True)
class RealNode:
    """The lab with a real node, and the environment on it.

    Attributes:
        lab: the lab.
        project: its stacks.
        before: this machine before there was a real node.
    """

    lab: Lab
    project: Project
    before: dict[str, set[str]]

    def command(self, *arguments: str) -> str:
        """Run `berth lab real …`; return its progress lines."""
        berth_command = ["berth", "lab", "real", *arguments]
        return self.lab.run(berth_command, timeout=BUILD_SECONDS).stderr

    @property
    def node(self) -> Object:
        """The real node's object."""
        nodes = self.lab.get("nodes", "-l", "lab-node=real")["items"]
        return next(
            node for node in nodes if "kwok.x-k8s.io/node" not in node["metadata"]["annotations"]
        )

    def apply(self, *objects: Object) -> None:
        self.lab.run(["kubectl", "apply", "-f", "-"], stdin=yaml.safe_dump_all(objects))

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        return self.lab.run(["kubectl", "--namespace", NAMESPACE, *arguments], check=check).stdout

    def inside(self, *command: str) -> str:
        """Output of a program in the node's own namespaces."""
        return self.lab.run([str(layout.folder(self.lab.home) / "enter"), *command]).stdout

    def heads(self, owner: str) -> set[str]:
        """Head pods of an engineer's RayCluster that are not being deleted; empty until KubeRay
        creates the next one.
        """
        pods = self.project.get(
            "pods", "-n", f"berth-{owner}", "-l", f"ray.io/node-type=head,ray.io/cluster={owner}"
        )
        return {
            pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
        }

    def head(self, owner: str) -> str:
        """The head pod of an engineer's RayCluster."""
        (head,) = self.heads(owner)
        return head

    def on_head(
        self, owner: str, *command: str, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the head's container."""
        where = [
            "kubectl",
            "exec",
            "-n",
            f"berth-{owner}",
            self.head(owner),
            "-c",
            "ray-head",
            "--",
        ]
        return self.lab.run([*where, *command], check=check)


def pod(name: str, command: Sequence[str], **spec: Any) -> Object:
    """A pod on the real node, of the only image that is there."""
    container: Object = {"name": "main", "image": RAY_IMAGE, "command": list(command)} | spec.pop(
        "container", {}
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"cloud.google.com/gke-nodepool": POOL},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "containers": [container],
            **spec,
        },
    }


@pytest.fixture(scope="package")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """Lab with a real node, one for the session; the machine is unchanged afterward."""
    obstacle = requirements.obstacle()
    if obstacle is not None:
        pytest.skip(obstacle)
    with brought_up(tmp_path_factory.mktemp("real") / "lab") as lab:
        project = Project.make(tmp_path_factory.mktemp("real-project") / "project", lab)
        project.write("env", environment=environment(lab))
        project.up("env")
        lab.run(["berth", "lab", "real", "prepare"], timeout=BUILD_SECONDS)
        node = RealNode(lab, project, machine_state())
        # Only the first of the pool's two nodes is real: pods that must be on it shall find no
        # other.
        node.command("up", "--no-berth")
        simulated = [
            item["metadata"]["name"]
            for item in lab.get("nodes", "-l", "lab-node=real")["items"]
            if item["metadata"]["name"] != node.node["metadata"]["name"]
        ]
        lab.run(["kubectl", "cordon", *simulated])
        lab.run(["kubectl", "create", "namespace", NAMESPACE])
        node.apply(HYPERDISK)
        yield node
        node.command("down")
        assert machine_state() == node.before


@pytest.fixture(scope="package")
def alice(real: RealNode) -> str:
    """An engineer with a RayCluster of a head and two workers that are ready."""
    real.project.write("alice", engineer=berth(workers=2))
    real.project.up("alice")
    return "alice"
