"""The berth on the real node: brought up as any engineer's, and a job run on its RayCluster.

Answers to (real): a job of Ray on a RayCluster of KubeRay, in containers of this machine.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from berth.lab.errors import LabError
from berth.lab.lifecycle import stacks
from berth.lab.update import dead_locks, pulumi

if TYPE_CHECKING:
    from berth.lab.home import Home
    from berth.lab.progress import Progress

STACK = "real"
NAMESPACE = f"berth-{STACK}"

JOB = """
import os, socket, time
import ray, torch

ray.init(logging_level="ERROR")

@ray.remote(num_cpus=1, num_gpus=1, scheduling_strategy="SPREAD")
def look():
    time.sleep(1)  # long enough that the other worker takes the other one
    gpus = sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))
    nics = sorted(name for name in os.listdir("/sys/class/net") if "rdma" in name)
    return f"{socket.gethostname()} at {ray.util.get_node_ip_address()} has {', '.join(gpus + nics)}"

for line in sorted(ray.get([look.remote() for _ in range(2)])):
    print("worker", line)
print("ray", ray.__version__, "torch", torch.__version__)
"""


def update(home: Home, progress: Progress) -> None:
    """Bring the berth to what its stack says.

    Raises:
        LabError: the update failed; the engine has said why.
    """
    if STACK not in stacks(home) and pulumi(home, "stack", "init", STACK, "--no-select") != 0:
        raise LabError(f"stack {STACK} could not be made", "see Pulumi's own words above")
    for path in dead_locks(home, STACK):
        progress.say(f"an earlier update of stack {STACK} was killed: its lock is removed")
        path.unlink(missing_ok=True)
    options = ("--stack", STACK, "--yes", "--skip-preview", "--suppress-outputs", "--refresh")
    if pulumi(home, "up", *options) != 0:
        raise LabError(
            f"the update of stack {STACK} did not succeed; Pulumi says above what failed and why",
            "mend that and run `make lab-real` again",
        )


def run_job(home: Home) -> None:
    """Run a job on the berth's RayCluster with `ray job submit`, its output shown.

    Raises:
        LabError: it did not succeed.
    """
    kubectl = [str(home.bin / "kubectl"), "--kubeconfig", str(home.kubeconfig), "--namespace", NAMESPACE]
    pods = [*kubectl, "get", "pods", f"--selector=ray.io/cluster={STACK},ray.io/node-type=head", "--output=name"]
    head = subprocess.run(pods, capture_output=True, text=True, check=False).stdout.split()
    if not head:
        raise LabError(f"RayCluster {STACK} in {NAMESPACE} has no head pod", "run `make lab-real` again")
    submit = ["ray", "job", "submit", "--address=http://127.0.0.1:8265", "--", "python", "-c", JOB]
    command = [*kubectl, "exec", head[0], "--container=ray-head", "--", *submit]
    if subprocess.run(command, env=os.environ | {"NO_COLOR": "1"}, check=False).returncode != 0:
        raise LabError("the job on the real node did not succeed; Ray says above why", "run `make lab-real` again")
