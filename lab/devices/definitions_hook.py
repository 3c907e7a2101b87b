"""The Job by which the GPU Operator's chart upgrades its custom resource definitions.

No container runs in the lab. Its chart puts the definitions into a ConfigMap of the Job's name, and
a scheduling gate on its pod. The gate goes once the definitions are applied, so that Helm sees the
Job complete after that.

Answers to (read): hook `gpu-operator-upgrade-crd` of the published chart and `manage-crds apply`,
    GPU Operator v26.7.0,
    https://github.com/NVIDIA/gpu-operator/blob/v26.7.0/deployments/gpu-operator/templates/upgrade_crd.yaml
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import yaml

from berth.components.cluster.api import JSON_PATCH
from berth.lab.devices.api import Api, path_of

_GATE = "lab.berth/upgrade-crd"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_log = logging.getLogger("berth.lab.devices")


def is_waiting(pod: Mapping[str, Any]) -> bool:
    """Whether a pod waits for definitions to be applied."""
    gates = (pod.get("spec") or {}).get("schedulingGates") or []
    return any(gate["name"] == _GATE for gate in gates) and not pod["metadata"].get("deletionTimestamp")


def play(api: Api, pod: dict[str, Any]) -> bool:
    """Apply the definitions that a pod waits for, and remove its gate, unless the pod is gone.

    Returns:
        Whether nothing is left to do. A write that met another one has to be tried again.
    """
    present = api.get(path_of(pod))
    if present is None or not is_waiting(present):
        return True
    (job,) = [owner["name"] for owner in pod["metadata"].get("ownerReferences") or [] if owner["kind"] == "Job"]
    config_map = api.get(f"/api/v1/namespaces/{pod['metadata']['namespace']}/configmaps/{job}")
    for file, text in (config_map or {"data": {}})["data"].items():
        for definition in filter(None, yaml.safe_load_all(text)):
            if not api.apply(f"{_DEFINITIONS}/{definition['metadata']['name']}", definition):
                return False
        _log.info("job %s/%s: applied %s", pod["metadata"]["namespace"], job, file)
    return api.patch(path_of(pod), [{"op": "remove", "path": "/spec/schedulingGates"}], JSON_PATCH)
