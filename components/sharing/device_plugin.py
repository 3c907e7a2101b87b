"""The device plugin's ConfigMap, and the labels by which a node chooses from it, or has no device plugin at all.

Format: https://github.com/NVIDIA/k8s-device-plugin#configuration-file, and for the GPU Operator
https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import yaml

from stacks.settings.pools import Pool, Pools
from stacks.settings.sharing import GPU, WHOLE, Profiles, SharingProfile

CONFIG_LABEL = "nvidia.com/device-plugin.config"
"""Node label that names a key of the ConfigMap; watched live by the plugin."""

MIG_LABEL = "nvidia.com/mig.config"
"""Node label that names a layout of MIG instances; watched by the MIG manager."""

NO_GKE_PLUGIN_LABEL = "gke-no-default-nvidia-gpu-device-plugin"
"""Node label that keeps GKE's own device plugin off (docs.cloud.google.com/kubernetes-engine, "GPU Operator on GKE")."""

CLAIMED_LABEL = "cloud.google.com/gke-nvidia-gpu-dra-driver"
"""Node label that says that NVIDIA's DRA driver serves the GPUs: GKE's autoscaler counts devices to claim by it
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra)."""

OPERANDS_LABEL = "nvidia.com/gpu.deploy.operands"
"""Node label that, when "false", keeps all daemons of the GPU Operator off a node, its device plugin too
(https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html)."""

PREINSTALLED_LABEL = "berth/driver"
"""Node label that says that the driver is there without anyone's doing."""

CONFIG_MAP = "time-slicing-config-all"
"""Begin of the ConfigMap's name, as NVIDIA's guides have it."""

DEFAULT_KEY = "any"
"""The key that nodes without a label use, as NVIDIA's guides have it."""

WHOLE_KEY = "none"


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
        sharing["resources"] = [{"name": GPU, "replicas": profile.replicas}]
        document["sharing"] = {"timeSlicing" if profile.kind == "time-slicing" else "mps": sharing}
    return yaml.safe_dump(document, sort_keys=False)


def config_map(pools: Pools, profiles: Profiles) -> dict[str, Any]:
    """Helm's `devicePlugin.config` for the pools that the GPU Operator serves.

    The plugin does not watch the ConfigMap, so its name follows from its content: an edit is another ConfigMap, and the
    operator restarts the plugin for it.
    """
    data = {key: config(profile) for key, profile in _keys(pools, profiles).items()}
    digest = hashlib.sha256(yaml.safe_dump(data).encode()).hexdigest()[:8]
    default = DEFAULT_KEY if DEFAULT_KEY in data else WHOLE_KEY
    return {"create": True, "name": f"{CONFIG_MAP}-{digest}", "default": default, "data": data}


def _keys(pools: Pools, profiles: Profiles) -> Mapping[str, SharingProfile]:
    """The profiles in use, by key; whole GPUs where a pool has them, or where no default is named."""
    used = {pool.settings.sharing for pool in pools.values() if pool.settings.by_operator}
    keys = {name: profile for name, profile in profiles.items() if name in used or name == DEFAULT_KEY}
    if None in used or DEFAULT_KEY not in keys:
        keys[WHOLE_KEY] = WHOLE
    return keys


def node_labels(pool: Pool) -> dict[str, str]:
    """Labels of a GPU pool that say who serves its GPUs, for the pool's own config, so that nodes added later have them too.

    The GPU Operator serves every node with an NVIDIA device unless the node's labels opt out, and any cluster may get the
    operator later: so every GPU pool that the operator does not serve opts out.
    """
    settings = pool.settings
    if not settings.machine.gpus:
        return {}
    if settings.by_operator:
        labels = {NO_GKE_PLUGIN_LABEL: "true", CONFIG_LABEL: settings.sharing or WHOLE_KEY}
        if pool.profile.kind == "mig":
            labels[MIG_LABEL] = f"all-{pool.profile.profile}"
    elif settings.by_dra:
        # A device plugin would hand out the same GPUs a second time.
        labels = {
            NO_GKE_PLUGIN_LABEL: "true",
            OPERANDS_LABEL: "false",
            "nvidia.com/gpu.present": "true",
            CLAIMED_LABEL: "true",
        }
    else:
        return {OPERANDS_LABEL: "false"}
    if settings.driver == "preinstalled":
        labels[PREINSTALLED_LABEL] = "preinstalled"
    return labels
