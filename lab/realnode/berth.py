"""Berth on the real node, and a job that is run on its RayCluster.

Answers to (real): a job of Ray on a RayCluster of KubeRay, in containers of this machine.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from berth.lab.errors import LabError
from berth.lab.programs import kubectl
from berth.stacks.files import stack_file

if TYPE_CHECKING:
    from berth.lab.home import Home

STACK = "real"
NAMESPACE = f"berth-{STACK}"
_SETTINGS = Path(__file__).with_name(f"Pulumi.{STACK}.yaml")

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


def provide_settings() -> None:
    """Write the berth's settings to the project's stacks, unless the file is there."""
    path = stack_file.stack_path(STACK)
    if not path.exists():
        path.write_bytes(_SETTINGS.read_bytes())


def run_job(home: Home) -> None:
    """Run a job on the berth's RayCluster with `ray job submit`, its output shown."""
    selector = f"--selector=ray.io/cluster={STACK},ray.io/node-type=head"
    head = kubectl(home, "get", "pods", f"--namespace={NAMESPACE}", selector, "--output=name").split()
    if not head:
        raise LabError(f"RayCluster {STACK} in {NAMESPACE} has no head pod", "run `make lab-real` again")
    command = [str(home.bin / "kubectl"), "--kubeconfig", str(home.kubeconfig), f"--namespace={NAMESPACE}"]
    submit = ["ray", "job", "submit", "--address=http://127.0.0.1:8265", "--", "python", "-c", JOB]
    command += ["exec", head[0], "--container=ray-head", "--", *submit]
    if subprocess.run(command, env=os.environ | {"NO_COLOR": "1"}, check=False).returncode != 0:
        raise LabError(
            "the job on the real node failed; Ray's messages above have the cause", "run `make lab-real` again"
        )
