"""RayJob that runs the all-reduce on an existing RayCluster. Pure."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from berth.components import programs
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.proof.checks import RUN_LABEL
from berth.components.ray import submitter_pod

PROGRAMS = tuple(
    Path(programs.__file__).with_name(name) for name in ("all_reduce_rank.py", "all_reduce.py")
)
"""Files of the program, in the order in which they run in one module."""

_VARIABLE = "BERTH_ALL_REDUCE"
_DECODED = f"base64.b64decode(os.environ['{_VARIABLE}'])"
_START = f"import base64, os; exec(compile({_DECODED}, '{PROGRAMS[-1].name}', 'exec'))"
# Longer than berth waits, so that it still finds the job and can say why that did not end.
_GRACE_SECONDS = 120
# Time of the submitter and Ray before the program begins, and to relay its last lines.
_OVERHEAD_SECONDS = 60


def job_name(run: str) -> str:
    """Return the name of a run's RayJob."""
    return f"berth-all-reduce-{run}"


def program_seconds(seconds: int) -> int:
    """Return the time for the program, short enough that it can still report what it found."""
    return max(seconds // 2, seconds - _OVERHEAD_SECONDS)


def job_manifest(
    cluster: dict[str, Any],
    run: str,
    *,
    workers: int,
    gpus: int,
    max_bytes: int,
    seconds: int,
    pods: Sequence[str],
    collective: bool = False,
) -> Manifest:
    """Return a RayJob that runs the program on a RayCluster, as the driver on its head.

    The program comes in the job's own environment, so that nothing is written to any file system;
    `kubectl get rayjob NAME -o jsonpath='{.spec.runtimeEnvYAML}'` has it, in base64. The submitter
    is a pod: its log is the driver's output, which everybody who may read pods' logs can read,
    without Ray's token.

    Args:
        cluster: manifest of the RayCluster.
        run: id of the run.
        workers: number of worker pods.
        gpus: GPUs of each worker; without any, there is one process a pod.
        max_bytes: size of the largest tensor; 0 for the program's own choice.
        seconds: time for all.
        pods: names of the workers that take part; empty for all.
        collective: whether Ray's own library sums, too.
    """
    metadata = cluster["metadata"]
    head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
    labels = {**MANAGED_BY, RUN_LABEL: run}
    program = base64.b64encode(program_text().encode()).decode()
    options = (
        f"--workers {workers} --gpus {gpus} --seconds {program_seconds(seconds)} --max-bytes"
        f" {max_bytes}"
    )
    if pods:
        options += f" --pods {','.join(pods)}"
    if collective:
        options += " --collective"
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": job_name(run),
            "namespace": metadata["namespace"],
            "labels": labels,
        },
        "spec": {
            "submissionMode": "K8sJobMode",
            "clusterSelector": {"ray.io/cluster": metadata["name"]},
            "activeDeadlineSeconds": seconds + _GRACE_SECONDS,
            # It passes through two shells: no dollar sign, no backtick, and quotes of one kind
            # inside the other.
            "entrypoint": f'python -c "{_START}" {options}',
            "runtimeEnvYAML": f"env_vars:\n  {_VARIABLE}: {program}\n",
            # A second submitter would only follow the same job's log.
            "submitterConfig": {"backoffLimit": 0},
            "submitterPodTemplate": submitter_pod(head, labels),
        },
    }


def program_text() -> str:
    """Return a program that runs the files in its main module, which Ray sends to its workers."""
    return "".join(
        f"exec(compile({path.read_text()!r}, {path.name!r}, 'exec'))\n" for path in PROGRAMS
    )
