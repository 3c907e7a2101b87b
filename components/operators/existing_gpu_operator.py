"""GPU Operator of an existing cluster: settings that it lacks for the pools that it serves."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from berth.components.cluster.api import ClusterApi, Object
from berth.components.cluster.nodes import untolerated_taint
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.words import names_in_words
from berth.components.gke import tolerations
from berth.components.hardware.versions import (
    GPU_OPERATOR_WITHOUT_ESCAPES,
    fault_of_container_toolkit,
)
from berth.components.sharing import Pools, config_entries

CLUSTER_POLICIES = "/apis/nvidia.com/v1/clusterpolicies"

_PLACE: SettingPath = ("environment", "operators", "gpu", "source")
_NEW_CONFIG_MAP = "time-slicing-config-all"
_GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""Toleration of the operator's daemons where its ClusterPolicy has none."""


@dataclass(frozen=True)
class _ClusterPolicy:
    """The settings of a cluster's GPU Operator."""

    name: str
    namespace: str
    """Namespace that the operator runs in."""
    spec: Mapping[str, Any]

    @property
    def config_map(self) -> str | None:
        """Name of the ConfigMap of the device plugin; None without one."""
        config = (self.spec.get("devicePlugin") or {}).get("config") or {}
        name: str | None = config.get("name")
        return name

    def patch_command(self, **spec: Any) -> str:
        """Return the command that changes the settings."""
        patch = json.dumps({"spec": spec})
        return (
            f"kubectl patch clusterpolicies.nvidia.com {self.name} --type=merge --patch='{patch}'"
        )


def shortcomings(api: ClusterApi, pools: Pools) -> Iterator[Problem]:
    """Yield what the GPU Operator of a cluster lacks for the pools that it serves.

    Raises:
        ClusterError: the cluster does not answer, or refuses.
    """
    policies, _ = api.list(CLUSTER_POLICIES)
    if not policies:
        yield Problem(
            _PLACE, "the cluster has no GPU Operator (no ClusterPolicy); take `source: present` out"
        )
        return
    policy = _policy_of(policies[0])
    yield from _missing_cdi(policy)
    yield from _escapes(policy)
    yield from _missing_configs(api, policy, pools)
    yield from _other_mig_strategy(policy, pools)
    yield from _untolerated_pools(policy, pools)


def _policy_of(item: Object) -> _ClusterPolicy:
    namespace = (item.get("status") or {}).get("namespace") or "gpu-operator"
    return _ClusterPolicy(item["metadata"]["name"], str(namespace), item["spec"])


def _missing_cdi(policy: _ClusterPolicy) -> Iterator[Problem]:
    if not (policy.spec.get("cdi") or {}).get("enabled", True):
        yield Problem(
            _PLACE,
            "its GPU Operator is without CDI, so any pod could take the GPUs of others; run:"
            f" {policy.patch_command(cdi={'enabled': True})}",
        )


def _escapes(policy: _ClusterPolicy) -> Iterator[Problem]:
    version = str((policy.spec.get("toolkit") or {}).get("version") or "")
    if fault := fault_of_container_toolkit(version):
        yield Problem(
            _PLACE,
            f"its GPU Operator has NVIDIA's container toolkit {version}, which {fault}, as the GPU"
            f" Operator from {GPU_OPERATOR_WITHOUT_ESCAPES} on has it",
        )


def _missing_configs(api: ClusterApi, policy: _ClusterPolicy, pools: Pools) -> Iterator[Problem]:
    """Yield configs of the device plugin that are not as the pools' sharing profiles have them."""
    on_cluster: Mapping[str, str] = {}
    if policy.config_map:
        path = f"/api/v1/namespaces/{policy.namespace}/configmaps/{policy.config_map}"
        on_cluster = (api.get(path) or {}).get("data") or {}
    missing = {
        key: text
        for key, text in config_entries(pools).items()
        if _sharing_in(on_cluster.get(key)) != _sharing_in(text)
    }
    if missing:
        yield Problem(
            _PLACE,
            f"its GPU Operator has no config {names_in_words(map(repr, missing), 'and')} as the"
            " settings have it, so nodes would offer another number of GPUs; run:"
            f" {_config_command(policy, missing)}",
        )


def _config_command(policy: _ClusterPolicy, entries: Mapping[str, str]) -> str:
    """Return the command that writes entries into the device plugin's ConfigMap."""
    if policy.config_map:
        data = json.dumps({"data": entries})
        return (
            f"kubectl patch configmap {policy.config_map} --namespace={policy.namespace}"
            f" --type=merge --patch='{data}'"
        )
    literals = " ".join(f"--from-literal={key}='{text}'" for key, text in entries.items())
    return (
        f"kubectl create configmap {_NEW_CONFIG_MAP} --namespace={policy.namespace} {literals} &&"
        f" {policy.patch_command(devicePlugin={'config': {'name': _NEW_CONFIG_MAP}})}"
    )


def _other_mig_strategy(policy: _ClusterPolicy, pools: Pools) -> Iterator[Problem]:
    strategies = {pool.profile.facts.mig_strategy for pool in pools.values()} - {None, ""}
    strategy = (policy.spec.get("mig") or {}).get("strategy", "single")
    if strategies and strategies != {strategy}:
        command = policy.patch_command(mig={"strategy": min(map(str, strategies))})
        yield Problem(_PLACE, f"its GPU Operator has the MIG strategy {strategy}; run: {command}")


def _untolerated_pools(policy: _ClusterPolicy, pools: Pools) -> Iterator[Problem]:
    tolerated = (policy.spec.get("daemonsets") or {}).get("tolerations") or [_GPU_TOLERATION]
    for name, pool in pools.items():
        needed = tolerations(pool.settings)
        taints = [
            {**toleration, "value": toleration.get("value", "")}
            for toleration in needed
            if toleration.get("key")
        ]
        taint = untolerated_taint(taints, tolerated)
        if taint:
            command = policy.patch_command(daemonsets={"tolerations": [*tolerated, *needed]})
            yield Problem(
                _PLACE,
                f"its GPU Operator tolerates no taint {taint['key']} of the nodes of pool {name!r};"
                f" run: {command}",
            )


def _sharing_in(text: str | None) -> Any:
    """Return the sharing of an entry of the device plugin's ConfigMap, without what is off."""
    if text is None:
        return None
    document = yaml.safe_load(text or "{}")
    if not isinstance(document, dict):
        return None
    return _without_off(document.get("sharing") or {})


def _without_off(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_off(inner)
            for key, inner in value.items()
            if inner not in (None, False, {}, [])
        }
    return [_without_off(inner) for inner in value] if isinstance(value, list) else value
