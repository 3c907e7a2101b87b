"""Configuration of NVIDIA's device plugin: a ConfigMap, from which labels of nodes choose.

Format: https://github.com/NVIDIA/k8s-device-plugin#configuration-file, and for the GPU Operator
https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import yaml

from berth.components.hardware.names import (
    CLAIMED_LABEL,
    CONFIG_LABEL,
    NO_GKE_PLUGIN_LABEL,
    OPERANDS_LABEL,
    POOL_LABEL,
    WHOLE_KEY,
)
from berth.components.sharing.modes import WHOLE, AnyMode
from berth.components.sharing.pools import Pool, Pools

PREINSTALLED_LABEL = "berth/driver"
"""Node label for drivers that are part of the node's image."""

CONFIG_MAP = "time-slicing-config-all"
"""Prefix of the ConfigMap's name, as in NVIDIA's guides."""


def plugin_config(profile: AnyMode) -> str:
    """Return the entry of the ConfigMap for a profile, as YAML."""
    document: dict[str, Any] = {
        "version": "v1",
        "flags": {"migStrategy": profile.facts.mig_strategy or "none"},
    }
    if profile.facts.plugin:
        document["sharing"] = profile.facts.plugin
    return yaml.safe_dump(document, sort_keys=False)


def config_entries(pools: Pools) -> dict[str, str]:
    """Return the entries of the ConfigMap for nodes that the GPU Operator serves."""
    served = {
        pool.settings.sharing or WHOLE_KEY: pool.profile
        for pool in pools.values()
        if pool.settings.by_operator
    }
    return {key: plugin_config(profile) for key, profile in served.items()}


def plugin_config_map(pools: Pools) -> dict[str, Any]:
    """Return Helm's `devicePlugin.config` for the pools that the GPU Operator serves.

    The plugin does not watch the ConfigMap. Its name comes from its content: an edit is another
    ConfigMap, for which the operator restarts the plugin.
    """
    data = config_entries(pools) | {WHOLE_KEY: plugin_config(WHOLE)}
    digest = hashlib.sha256(yaml.safe_dump(data).encode()).hexdigest()[:8]
    return {"create": True, "name": f"{CONFIG_MAP}-{digest}", "default": WHOLE_KEY, "data": data}


def serving_labels(pool: Pool) -> dict[str, str]:
    """Return labels of a pool's nodes that choose who serves the GPUs, and their mode.

    The GPU Operator serves every node with an NVIDIA device unless its labels opt out, and any
    cluster may get the operator later: every GPU pool that the operator does not serve opts out.
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
    return {
        NO_GKE_PLUGIN_LABEL: "true",
        CONFIG_LABEL: settings.sharing or WHOLE_KEY,
        **pool.profile.facts.labels,
    }


def node_labels(pool: Pool) -> dict[str, str]:
    """Return the labels of a GPU pool's own config, which nodes added later get too."""
    settings = pool.settings
    labels = serving_labels(pool)
    if settings.driver == "preinstalled" and (settings.by_operator or settings.by_dra):
        labels[PREINSTALLED_LABEL] = "preinstalled"
    return labels


def label_command(pool: str, labels: Mapping[str, str]) -> str:
    """Return the command that sets labels on the nodes that a pool has now."""
    pairs = " ".join(f"{key}={value}" for key, value in labels.items())
    return f"kubectl label nodes --overwrite --selector={POOL_LABEL}={pool} {pairs}"
