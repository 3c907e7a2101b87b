"""The objects that the GPU Operator writes: the device plugin's DaemonSet, a node's labels, the ClusterPolicy's status."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lab.devices.gpu_operator import Policy

PLUGIN = "nvidia-device-plugin-daemonset"
HASH = "nvidia.com/last-applied-hash"

# Node feature discovery keeps here which labels are its own; the lab lists the operator's with them.
OWNED = "nfd.node.kubernetes.io/feature-labels"

_CONFIGS, _DEFAULT = "available-configs", "DEFAULT_CONFIG"


def plugin_daemonset(policy: Policy, owner: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """The DaemonSet as the operator makes it from the ClusterPolicy, so far as it bears on where and how pods run.

    Args:
        policy: the ClusterPolicy's settings.
        owner: the ClusterPolicy itself: with it goes the DaemonSet.
        namespace: the operator's.
    """
    common, plugin = policy.part("daemonsets"), policy.part("devicePlugin")
    image = f"{plugin.get('repository')}/{plugin.get('image')}:{plugin.get('version')}"
    environment = [{"name": "MIG_STRATEGY", "value": policy.mig_strategy}] if policy.mig_strategy else []
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    if policy.config_map:
        environment.append({"name": "CONFIG_FILE", "value": "/config/config.yaml"})
        environment.append({"name": _DEFAULT, "value": policy.default_config})
        volumes.append({"name": _CONFIGS, "configMap": {"name": policy.config_map}})
        mounts.append({"name": _CONFIGS, "mountPath": "/available-configs"})
    container = {
        "name": "nvidia-device-plugin",
        "image": image,
        "env": [*environment, *(plugin.get("env") or [])],
        "volumeMounts": mounts,
    }
    labels = {**(common.get("labels") or {}), "app": PLUGIN}
    unavailable = (common.get("rollingUpdate") or {}).get("maxUnavailable") or "1"
    update: dict[str, Any] = {"type": common.get("updateStrategy") or "RollingUpdate"}
    if update["type"] == "RollingUpdate":
        update["rollingUpdate"] = {"maxUnavailable": int(unavailable) if str(unavailable).isdecimal() else unavailable}
    fingerprint = hashlib.sha256(policy.fingerprint().encode()).hexdigest()[:16]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": PLUGIN,
            "namespace": namespace,
            "labels": labels,
            "annotations": {HASH: fingerprint},
            "ownerReferences": [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "selector": {"matchLabels": {"app": PLUGIN}},
            "updateStrategy": update,
            "template": {
                "metadata": {"labels": labels, "annotations": dict(common.get("annotations") or {})},
                "spec": {
                    "nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"},
                    "tolerations": list(common.get("tolerations") or []),
                    "priorityClassName": common.get("priorityClassName") or "system-node-critical",
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    }


def mounted(pod: Mapping[str, Any]) -> tuple[str, str]:
    """The ConfigMap that a pod of the plugin has, and the entry that it takes without a label; empty for none."""
    spec = pod["spec"]
    names = [volume["configMap"]["name"] for volume in spec.get("volumes") or [] if volume["name"] == _CONFIGS]
    variables = {each["name"]: each.get("value") or "" for each in spec["containers"][0].get("env") or []}
    return (names[0] if names else "", str(variables.get(_DEFAULT, "")))


def label_change(metadata: Mapping[str, Any], wanted: Mapping[str, str]) -> dict[str, Any]:
    """A patch of a node's metadata that gives it these labels and takes away earlier ones of ours; empty if it has them.

    A label that somebody else gave the node with the same value stays theirs.
    """
    now: Mapping[str, str] = metadata.get("labels") or {}
    listed = str((metadata.get("annotations") or {}).get(OWNED) or "")
    owned = {name for name in listed.split(",") if name}
    labels: dict[str, str | None] = {name: None for name in owned if name not in wanted and name in now}
    labels |= {name: value for name, value in wanted.items() if now.get(name) != value}
    keeps = ",".join(sorted(name for name in wanted if name in owned or name in labels))
    change: dict[str, Any] = {"labels": labels} if labels else {}
    if keeps != listed:
        change["annotations"] = {OWNED: keeps or None}
    return change


def status(namespace: str, problems: Mapping[str, str], served: int, now: str) -> dict[str, Any]:
    """The ClusterPolicy's status.

    Args:
        namespace: the operator's.
        problems: why nodes are not served, by the node's name.
        served: how many are.
        now: the time (RFC 3339).
    """
    if problems:
        told = "; ".join(f"{name}: {problem}" for name, problem in sorted(problems.items()))
        state, reason, message = "notReady", "OperandNotReady", f"ClusterPolicy is not ready; {told}"
    elif served:
        state, reason = "ready", "Reconciled"
        message = "ClusterPolicy is ready as all resources have been successfully reconciled"
    else:
        state, reason = "ready", "NoGPUNodes"
        message = "No GPU node found, watching for new nodes to join the cluster."
    ready = "False" if problems else "True"
    conditions = [
        {"type": "Ready", "status": ready, "reason": reason, "message": message, "lastTransitionTime": now},
        {
            "type": "Error",
            "status": "True" if problems else "False",
            "reason": reason,
            "message": message if problems else "",
            "lastTransitionTime": now,
        },
    ]
    return {"state": state, "namespace": namespace, "conditions": conditions}


def same_status(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two statuses say the same, whenever they began to."""
    return _timeless(one) == _timeless(other)


def _timeless(value: Mapping[str, Any]) -> str:
    conditions = [
        {name: text for name, text in condition.items() if name != "lastTransitionTime"}
        for condition in value.get("conditions") or []
    ]
    return json.dumps([value.get("state"), value.get("namespace"), conditions], sort_keys=True)
