"""NVIDIA's GPU Operator on GKE. Where its nodes need Google's driver installer, that comes first (driver_installer.py).

Values: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.gke import tolerations
from berth.components.operators.driver_installer import HOST_DRIVER
from berth.components.operators.helm import Chart, operator_namespace, release
from berth.components.operators.settings import GpuOperatorSettings
from berth.components.sharing import Occupants, Pool, Pools, Profiles, config_map, of_configs

CRITICAL_PODS = "100k"
"""GKE admits pods of system priority only where a quota allows them. The operator has one on every node, and up to eight on a
node with GPUs: Google's example of 100 would keep the daemons off the nodes of a larger cluster."""

CONTROL_PLANE = {
    "key": "node-role.kubernetes.io/control-plane",
    "operator": "Equal",
    "value": "",
    "effect": "NoSchedule",
}
"""Toleration that the chart gives the worker of node feature discovery, beside the one for GPUs."""


@dataclass(frozen=True)
class GpuOperatorInputs:
    """What the operator needs to know.

    Attributes:
        settings: chart, version, toggles.
        pools: all pools by name; those that it serves are among them.
        profiles: the sharing profiles by name.
        occupants: who is on which pool.
    """

    settings: GpuOperatorSettings
    pools: Pools
    profiles: Profiles
    occupants: Occupants = field(default_factory=dict)


class GpuOperator(pulumi.ComponentResource):
    """The operator, and the quota that lets its daemons in."""

    def __init__(self, name: str, inputs: GpuOperatorInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Install it.

        Args:
            name: name of the Helm release.
            inputs: settings, pools, profiles.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:operators:GpuOperator", name, None, opts)
        settings = inputs.settings
        child = pulumi.ResourceOptions(parent=self)
        namespace = operator_namespace(name, settings.namespace, child)
        its_quota = KubernetesObject(
            name, quota(settings.namespace), pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        )
        chart = Chart(
            chart=settings.chart,
            repository=settings.repository,
            version=settings.version,
            namespace=settings.namespace,
            values=values(inputs),
            timeout=900,
            # The chart's hook upgrades the CRD after Helm would hold the new ClusterPolicy to the old one ("Upgrading the NVIDIA
            # GPU Operator", https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/upgrade.html).
            validated=False,
        )

        def warn(change: pulumi.ResourceHookArgs) -> None:
            for line in of_configs(
                _plugin_config(change.old_inputs), _plugin_config(change.new_inputs), inputs.pools, inputs.occupants
            ):
                pulumi.log.warn(line)

        hook = pulumi.ResourceHook(f"{name}-sharing", warn, pulumi.ResourceHookOptions(on_dry_run=True))
        hooks = pulumi.ResourceHookBinding(before_update=[hook])
        release(name, chart, pulumi.ResourceOptions(parent=self, depends_on=[its_quota], hooks=hooks))
        self.register_outputs({})


def _plugin_config(inputs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    found = ((inputs or {}).get("values") or {}).get("devicePlugin", {}).get("config", {})
    return dict(found)


def served(pools: Pools) -> Mapping[str, Pool]:
    """The pools that the operator serves."""
    return {name: pool for name, pool in pools.items() if pool.settings.by_operator}


def values(inputs: GpuOperatorInputs) -> dict[str, Any]:
    """Helm values: what differs from the chart's own."""
    settings, pools = inputs.settings, served(inputs.pools)
    on_cos = any(pool.settings.node_image == "cos" for pool in pools.values())
    strategies = {pool.profile.mig_strategy for pool in pools.values() if pool.profile.mig_strategy}
    chosen: dict[str, Any] = {
        "operator": {"upgradeCRD": True, "cleanupCRD": False},
        "driver": {"enabled": any(pool.settings.driver == "operator" for pool in pools.values())},
        "cdi": {"enabled": True},
        "nfd": {"enabled": settings.node_feature_discovery},
        "dcgmExporter": {"enabled": settings.dcgm_exporter},
        "mig": {"strategy": strategies.pop() if strategies else "single"},
        "devicePlugin": {"config": config_map(inputs.pools)},
        # GKE 1.33 and newer configure containerd from files, not from its running state.
        "toolkit": {"env": [{"name": "RUNTIME_CONFIG_SOURCE", "value": "file"}]},
    }
    if on_cos:
        # The root file system is read-only: driver and toolkit live where Google's installer puts the driver.
        chosen["hostPaths"] = {"driverInstallDir": HOST_DRIVER}
        chosen["toolkit"]["installDir"] = HOST_DRIVER
        # A COS node has to be restarted before MIG mode holds.
        chosen["migManager"] = {"env": [{"name": "WITH_REBOOT", "value": "true"}]}
    if not settings.validator:
        # The validator runs the workload unless it is told not to (gpu-operator v26.7.0, cmd/nvidia-validator).
        chosen["validator"] = {"cuda": {"env": [{"name": "WITH_WORKLOAD", "value": "false"}]}}
    if tolerated := _tolerations(pools):
        chosen["daemonsets"] = {"tolerations": tolerated}
        if settings.node_feature_discovery:
            chosen["node-feature-discovery"] = {"worker": {"tolerations": [CONTROL_PLANE, *tolerated]}}
    return chosen


def _tolerations(pools: Pools) -> list[dict[str, str]]:
    """Tolerations of the operator's daemons, for Helm, which replaces lists as a whole; empty where the chart's own will do.

    Without them a pool with taints has no device plugin, or no label by which the operator finds it.
    """
    wanted: list[dict[str, str]] = []
    for pool in pools.values():
        wanted += [each for each in tolerations(pool.settings) if each not in wanted]
    return wanted if len(wanted) > 1 else []


def quota(namespace: str) -> Manifest:
    """The quota without which GKE refuses pods of system priority outside kube-system."""
    scope = {
        "operator": "In",
        "scopeName": "PriorityClass",
        "values": ["system-node-critical", "system-cluster-critical"],
    }
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpu-operator-quota", "namespace": namespace, "labels": dict(MANAGED_BY)},
        "spec": {"hard": {"pods": CRITICAL_PODS}, "scopeSelector": {"matchExpressions": [scope]}},
    }
