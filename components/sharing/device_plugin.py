"""The device plugin's ConfigMap, and the labels by which a node chooses from it, or has no device plugin at all.

Format: https://github.com/NVIDIA/k8s-device-plugin#configuration-file, and for the GPU Operator
https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import yaml

from berth.components.hardware.names import (
    CLAIMED_LABEL,
    CONFIG_LABEL,
    GPU_RESOURCE,
    MIG_LABEL,
    NO_GKE_PLUGIN_LABEL,
    OPERANDS_LABEL,
    POOL_LABEL,
    WHOLE_KEY,
)
from berth.components.sharing.pools import Pool, Pools
from berth.components.sharing.settings import WHOLE, Profiles, SharingProfile

PREINSTALLED_LABEL = "berth/driver"
"""Node label that says that the driver is there without anyone's doing."""

CONFIG_MAP = "time-slicing-config-all"
"""Begin of the ConfigMap's name, as NVIDIA's guides have it."""


def config(profile: SharingProfile) -> str:
    """One entry of the ConfigMap: YAML text."""
    strategy = profile.strategy or "none"
    document: dict[str, Any] = {"version": "v1", "flags": {"migStrategy": strategy}}
    if profile.kind in ("time-slicing", "mps"):
        sharing: dict[str, Any] = {}
        if profile.rename_by_default:
            sharing["renameByDefault"] = True
        if profile.fail_requests_greater_than_one:
            sharing["failRequestsGreaterThanOne"] = True
        sharing["resources"] = [{"name": GPU_RESOURCE, "replicas": profile.replicas}]
        document["sharing"] = {"timeSlicing" if profile.kind == "time-slicing" else "mps": sharing}
    return yaml.safe_dump(document, sort_keys=False)


def config_map(pools: Pools, profiles: Profiles) -> dict[str, Any]:
    """Helm's `devicePlugin.config` for the pools that the GPU Operator serves.

    The plugin does not watch the ConfigMap, so its name follows from its content: an edit is another ConfigMap, and the
    operator restarts the plugin for it.
    """
    used = {pool.settings.sharing for pool in pools.values() if pool.settings.by_operator}
    shared = {name: profile for name, profile in profiles.items() if name in used}
    data = {key: config(profile) for key, profile in {**shared, WHOLE_KEY: WHOLE}.items()}
    digest = hashlib.sha256(yaml.safe_dump(data).encode()).hexdigest()[:8]
    return {"create": True, "name": f"{CONFIG_MAP}-{digest}", "default": WHOLE_KEY, "data": data}


def serving_labels(pool: Pool) -> dict[str, str]:
    """Labels of a GPU pool's nodes that say who serves the GPUs, and how they are shared.

    The GPU Operator serves every node with an NVIDIA device unless the node's labels opt out, and any cluster may get the
    operator later: so every GPU pool that the operator does not serve opts out.
    """
    settings = pool.settings
    if not settings.machine.gpus:
        return {}
    if settings.by_dra:
        # A device plugin would hand out the same GPUs a second time.
        return {
            NO_GKE_PLUGIN_LABEL: "true",
            OPERANDS_LABEL: "false",
            "nvidia.com/gpu.present": "true",
            CLAIMED_LABEL: "true",
        }
    if not settings.by_operator:
        return {OPERANDS_LABEL: "false"}
    labels = {NO_GKE_PLUGIN_LABEL: "true", CONFIG_LABEL: settings.sharing or WHOLE_KEY}
    if pool.profile.kind == "mig":
        labels[MIG_LABEL] = f"all-{pool.profile.profile}"
    return labels


def node_labels(pool: Pool) -> dict[str, str]:
    """Labels of a GPU pool, for the pool's own config, so that nodes added later have them too."""
    settings, labels = pool.settings, serving_labels(pool)
    if settings.driver == "preinstalled" and (settings.by_operator or settings.by_dra):
        labels[PREINSTALLED_LABEL] = "preinstalled"
    return labels


def label_command(pool: str, labels: Mapping[str, str]) -> str:
    """The command that sets labels on the nodes that a pool has now.

    Args:
        pool: the pool's name.
        labels: the labels.
    """
    pairs = " ".join(f"{key}={value}" for key, value in labels.items())
    return f"kubectl label nodes --overwrite --selector={POOL_LABEL}={pool} {pairs}"
