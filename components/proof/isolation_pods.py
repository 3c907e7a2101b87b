"""Pods that look for GPUs which are not theirs: their Jobs, and the verdicts. Pure."""

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from berth.components.cluster.pods import why_not_ready
from berth.components.core.manifest import Manifest
from berth.components.hardware.names import VISIBLE_DEVICES
from berth.components.proof.checks import Check, first_texts
from berth.components.proof.cuda_vector_add import job_manifest, job_name
from berth.components.proof.job_verdicts import Ran, judge_job
from berth.components.proof.node_verdicts import offer_of
from berth.components.sharing import Pool

_LOOK = (
    'for device in /dev/nvidia[0-9]*; do [ -c "$device" ] && echo "sees $device"; done; echo done'
)
_SEES = re.compile(r"^sees ", re.MULTILINE)
_ONLY_A_GPU = "; a simulated node shows no device: only a node with GPUs confirms this"

_OPERANDS = (
    "gpu-feature-discovery",
    "nvidia-dcgm-exporter",
    "nvidia-device-plugin-daemonset",
    "nvidia-operator-validator",
)
"""Labels `app` of the operator's pods that look at every GPU of a node."""


@dataclass(frozen=True)
class Look:
    """Pod that looks for GPUs."""

    name: str
    """Words that set the pod apart from the others."""
    number: int
    """Number in the Job's name."""
    sees: int
    """Number of GPUs that the container may see."""
    gpus: int = 0
    """GPUs that the container requests."""
    beside: int = 0
    """GPUs that another container of its pod requests."""
    runtime_class: str | None = None


LOOKS = (
    Look("a request", 0, gpus=1, sees=1),
    Look("a request and RuntimeClass nvidia", 1, gpus=1, runtime_class="nvidia", sees=1),
    Look("RuntimeClass nvidia without a request", 2, runtime_class="nvidia", sees=0),
    Look("RuntimeClass nvidia-legacy without a request", 3, runtime_class="nvidia-legacy", sees=0),
    Look("a container beside one with a request", 4, beside=1, runtime_class="nvidia", sees=0),
)
"""Pods on a pool of NVIDIA's GPU Operator, whatever their image and variables say.

All ask for every GPU of the node by NVIDIA_VISIBLE_DEVICES, as CUDA's images do.
"""


def look_job(pool: Pool, look: Look, image: str, run: str, seconds: int, *, keep: bool) -> Manifest:
    """Return the Job of a pod, which counts the device files of GPUs that its container has."""
    resource = offer_of(pool).resource
    job = job_manifest(pool, image, resource, run, seconds, keep=keep)
    job["metadata"]["name"] = job_name(pool.name, run, f"gpu-look-{look.number}")
    pod = job["spec"]["template"]["spec"]
    if look.runtime_class:
        pod["runtimeClassName"] = look.runtime_class
    (container,) = pod["containers"]
    container["command"] = ["sh", "-c", _LOOK]
    container["env"] = [*container["env"], {"name": VISIBLE_DEVICES, "value": "all"}]
    if look.beside:
        pod["containers"].append(copy.deepcopy(container) | {"name": "beside"})
    if not look.gpus:
        for amounts in container["resources"].values():
            del amounts[resource]
    return job


def judge_look(look: Look, run: Ran, resource: str) -> Check:
    """Compare the GPUs that a container saw with those that it may see."""
    scheduled, ran = judge_job(run, resource, "done")
    for check in (scheduled, ran):
        if check.verdict == "fail":
            return Check(look.name, "fail", check.evidence)
    if ran.verdict == "simulated":
        return Check(look.name, "simulated", f"{ran.evidence}{_ONLY_A_GPU}")
    seen = len(_SEES.findall(run.log))
    text = f"its container sees {seen} GPUs, and may see {look.sees}"
    return Check(look.name, "pass" if seen == look.sees else "fail", text)


def judge_operands(pods: Iterable[dict[str, Any]], nodes: Sequence[str]) -> Check:
    """Check that the operator's own pods, which need every GPU, work on a pool's nodes."""
    title = "the operator's own pods"
    own = [pod for pod in pods if _app(pod) in _OPERANDS and pod["spec"].get("nodeName") in nodes]
    if not own:
        return Check(title, "fail" if nodes else "skipped", "there are none on the pool's nodes")
    waiting: list[str] = []
    for pod in own:
        reason = why_not_ready(pod)
        if reason:
            waiting.append(f"{pod['metadata']['name']}: {reason}")
    if waiting:
        return Check(title, "fail", first_texts(waiting))
    return Check(title, "pass", f"{len(own)} are Ready")


def _app(pod: dict[str, Any]) -> str:
    return str((pod["metadata"].get("labels") or {}).get("app"))
