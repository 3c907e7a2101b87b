"""The Job by which the GPU Operator's chart upgrades its custom resource definitions, played: no container runs in the lab.

The lab's chart puts the definitions into a ConfigMap of the Job's name, and a scheduling gate on its pod. The gate goes once the
definitions are applied, so that Helm sees the Job complete after them and not before.

Answers to (read): hook `gpu-operator-upgrade-crd` of the published chart and `manage-crds apply`, GPU Operator v26.7.0,
    https://github.com/NVIDIA/gpu-operator/blob/v26.7.0/deployments/gpu-operator/templates/upgrade_crd.yaml
"""

from __future__ import annotations

import json
import logging
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berth.lab.home import Home

GATE = "lab.berth/upgrade-crd"

_log = logging.getLogger("berth.lab.devices")


def is_waiting(pod: Mapping[str, Any]) -> bool:
    """Whether a pod waits for definitions to be applied."""
    gates = (pod.get("spec") or {}).get("schedulingGates") or []
    return any(gate["name"] == GATE for gate in gates) and not pod["metadata"].get("deletionTimestamp")


def play(home: Home, pod: Mapping[str, Any]) -> None:
    """Apply the definitions that a pod waits for, and let it go; a pod that went meanwhile is left.

    Args:
        home: the lab.
        pod: a pod that was seen waiting.
    """
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    now = _kubectl(home, "get", "pod", name, "-n", namespace, "-o", "json", "--ignore-not-found")
    if not now or not is_waiting(json.loads(now)):
        return
    (job,) = [owner["name"] for owner in pod["metadata"].get("ownerReferences") or [] if owner["kind"] == "Job"]
    files = json.loads(_kubectl(home, "get", "configmap", job, "-n", namespace, "-o", "json"))["data"]
    for file, text in files.items():
        _kubectl(home, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
        _log.info("job %s/%s: applied %s", namespace, job, file)
    ungated = json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}])
    _kubectl(home, "patch", "pod", name, "-n", namespace, "--type=json", f"--patch={ungated}")


def _kubectl(home: Home, *arguments: str, stdin: str = "") -> str:
    command = [str(home.bin / "kubectl"), "--kubeconfig", str(home.kubeconfig), *arguments]
    result = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"kubectl {arguments[0]}: {result.stderr.strip()}")
    return result.stdout
