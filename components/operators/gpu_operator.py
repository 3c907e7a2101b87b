"""NVIDIA's GPU Operator on GKE, after Google's driver installer where nodes need that.

Values: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.core.types import Name
from berth.components.gke import PoolSettings, tolerations
from berth.components.hardware import versions
from berth.components.operators.chart_settings import ChartName, ChartSettings, Repository
from berth.components.operators.driver_installer import HOST_DRIVER, DriverInstaller
from berth.components.operators.gpu_operator_effects import plugin_config, update_effects
from berth.components.operators.operator import BY_CHART, Operator, OtherInstallation
from berth.components.operators.parts import Object, Part, Values, namespace_of
from berth.components.plan.effect import Effect
from berth.components.plan.fleet import PlannedFleet, PlannedPool
from berth.components.plan.plan import Step
from berth.components.sharing import Pools, lines_of_configs, plugin_config_map

_TOOLKIT_VARIABLES = (
    # GKE 1.33 and newer configure containerd from files, not from its running state.
    {"name": "RUNTIME_CONFIG_SOURCE", "value": "file"},
    # A container without privileges gets no GPUs by naming them in NVIDIA_VISIBLE_DEVICES. Pods
    # that request GPUs keep theirs: with CDI on, containerd injects what the device plugin
    # allocates (nvidia-container-toolkit v1.20.0, internal/config/image/cuda_image.go). NVIDIA's
    # other two values against the variable are for the stack before CDI, and break pods
    # (gpu-operator issue 1876).
    {"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", "value": "false"},
)
_CONTROL_PLANE = {
    "key": "node-role.kubernetes.io/control-plane",
    "operator": "Equal",
    "value": "",
    "effect": "NoSchedule",
}
"""Toleration that the chart gives the worker of node feature discovery beside those for nodes."""


def _good_version(version: str) -> str:
    if fault := versions.fault_of_gpu_operator(version):
        raise ValueError(f"{version} {fault}")
    return version


class GpuOperatorSettings(ChartSettings):
    """NVIDIA's GPU Operator: installed where it manages a pool, once for the cluster."""

    source: Literal["chart", "present"] = "chart"
    """`chart`: berth installs it. `present`: it is there already; what it lacks for the pools,
    `berth doctor` and an update tell."""
    chart: ChartName = "gpu-operator"
    repository: Repository = versions.GPU_OPERATOR_REPOSITORY
    version: Annotated[
        str,
        Field(examples=[versions.GPU_OPERATOR], pattern=r"^v\d+\.\d+\.\d+$"),
        AfterValidator(_good_version),
    ] = versions.GPU_OPERATOR
    """Version of chart and operator."""
    namespace: Annotated[Name, Field(examples=["nvidia"])] = "gpu-operator"
    """Namespace that the operator and its daemons run in."""
    dcgm_exporter: bool = False
    """GPU metrics by NVIDIA's exporter. Off, since GKE's managed DCGM has them on its own nodes;
    whether it has them on nodes that the operator serves is unknown."""
    node_feature_discovery: bool = True
    """Label nodes by their hardware. An NFD that the cluster has already must tolerate the taints
    of the operator's pools, and label nodes by PCI vendor and os-release."""
    validator: bool = True
    """Run a CUDA workload of the operator's own on every node that it serves; it takes no GPU from
    pods."""


class GpuOperator(Operator[GpuOperatorSettings]):
    """The operator, and the quota that admits its daemons."""

    title: ClassVar[str] = "GPU Operator"
    release: ClassVar[str] = "gpu-operator"
    setting: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[type[Operator[Any]], ...]] = (DriverInstaller,)
    settings_by_source: ClassVar[Mapping[tuple[str, ...], tuple[str, ...]]] = {
        ("chart",): (*BY_CHART, "dcgmExporter", "nodeFeatureDiscovery", "validator")
    }
    settings_by_value: ClassVar[Mapping[str, str]] = {
        "driver.enabled": "`driver` of the pools",
        "nfd.enabled": "operators.gpu.nodeFeatureDiscovery",
        "dcgmExporter.enabled": "operators.gpu.dcgmExporter",
        "devicePlugin.config": "`sharing` of the environment and of the pools",
        "mig.strategy": "`sharing` of the environment and of the pools",
    }
    other_installation: ClassVar[OtherInstallation | None] = OtherInstallation(
        conflict="two of them would offer the same GPUs, each to two pods",
        remedy="write `source: present`, with which berth uses this one",
        images=("gpu-operator",),
    )
    noun: ClassVar[str] = "the GPU Operator"
    when_removed: ClassVar[str] = "its nodes offer no GPUs, and lose a driver that it installed"

    @classmethod
    def serves(cls, pool: PoolSettings) -> bool:
        """Return whether the operator serves a pool's GPUs."""
        return pool.by_operator

    @classmethod
    def serves_planned(cls, pool: PlannedPool) -> bool:
        """Return whether the operator serves the GPUs of a plan's pool."""
        return pool.by_operator

    @classmethod
    def pools_of(cls, fleet: PlannedFleet) -> list[str]:
        """Return the served pools; on an existing cluster those with GPUs in use."""
        if fleet.before:
            return super().pools_of(fleet)
        used: set[str] = set()
        for occupant in fleet.occupants:
            used |= {pool for pool, usage in occupant.on.items() if usage.gpus}
        return sorted(used)

    def parts(self, name: str) -> Iterator[Part]:
        """Yield the namespace, the quota and the chart."""
        yield namespace_of(name, self.settings.namespace)
        yield Object(name, quota_for_daemons(self.settings.namespace))
        # The chart's hook upgrades the CRD after Helm would check the new ClusterPolicy against the
        # old one ("Upgrading the NVIDIA GPU Operator",
        # https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/upgrade.html).
        yield self.settings.chart_with(
            self.values(),
            self.repositories,
            by_name=("env",),
            timeout=900,
            validated=False,
            warn=self._warnings,
        )

    def _warnings(self, old: Values, new: Values) -> list[str]:
        return lines_of_configs(
            plugin_config(old), plugin_config(new), self.site.pools, self.site.occupants
        )

    def values(self) -> dict[str, Any]:
        """Return the Helm values that differ from the chart's own."""
        pools = [pool.settings for pool in self.pools.values()]
        values: dict[str, Any] = {
            "operator": {"upgradeCRD": True, "cleanupCRD": False},
            "driver": {"enabled": any(pool.driver == "operator" for pool in pools)},
            "cdi": {"enabled": True},
            "nfd": {"enabled": self.settings.node_feature_discovery},
            "dcgmExporter": {"enabled": self.settings.dcgm_exporter},
            "mig": {"strategy": self._mig_strategy()},
            "devicePlugin": {"config": plugin_config_map(self.site.pools)},
            "toolkit": {"env": list(_TOOLKIT_VARIABLES)},
        }
        if any(pool.node_image == "cos" for pool in pools):
            # On Container-Optimized OS the root file system is read-only: driver and toolkit live
            # where Google's installer puts the driver. A node has to be restarted before MIG mode
            # holds.
            values["hostPaths"] = {"driverInstallDir": HOST_DRIVER}
            values["toolkit"]["installDir"] = HOST_DRIVER
            values["migManager"] = {"env": [{"name": "WITH_REBOOT", "value": "true"}]}
        if not self.settings.validator:
            # The validator runs the workload unless it is told not to (gpu-operator v26.7.0,
            # cmd/nvidia-validator).
            values["validator"] = {"cuda": {"env": [{"name": "WITH_WORKLOAD", "value": "false"}]}}
        tolerated = _tolerations(self.pools)
        if tolerated:
            values["daemonsets"] = {"tolerations": tolerated}
        if tolerated and self.settings.node_feature_discovery:
            worker = {"tolerations": [_CONTROL_PLANE, *tolerated]}
            values["node-feature-discovery"] = {"worker": worker}
        return values

    def _mig_strategy(self) -> str:
        for pool in self.pools.values():
            if pool.profile.facts.mig_strategy:
                return pool.profile.facts.mig_strategy
        return "single"

    @classmethod
    def effects(cls, step: Step, fleet: PlannedFleet, changed: Sequence[str]) -> list[Effect]:
        """Return the effects of a change of the release."""
        if step.operation == "update":
            return update_effects(step, fleet, changed, cls.pools_of(fleet))
        return super().effects(step, fleet, changed)


def _tolerations(pools: Pools) -> list[dict[str, str]]:
    """Return the tolerations of the operator's daemons; empty where the chart's own suffice.

    Helm replaces lists as a whole. Without them a pool with taints has no device plugin, or no
    label by which the operator finds it.
    """
    tolerated: list[dict[str, str]] = []
    for pool in pools.values():
        for toleration in tolerations(pool.settings):
            if toleration not in tolerated:
                tolerated.append(toleration)
    return tolerated if len(tolerated) > 1 else []


def quota_for_daemons(namespace: str) -> Manifest:
    """Return the quota for pods of system priority, which GKE refuses outside kube-system.

    The operator has one such pod on every node, and up to eight on a node with GPUs: Google's
    example of 100 would keep the daemons off the nodes of a larger cluster.
    """
    system_priority = {
        "scopeName": "PriorityClass",
        "operator": "In",
        "values": ["system-node-critical", "system-cluster-critical"],
    }
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": "gpu-operator-quota",
            "namespace": namespace,
            "labels": dict(MANAGED_BY),
        },
        "spec": {
            "hard": {"pods": "100k"},
            "scopeSelector": {"matchExpressions": [system_priority]},
        },
    }
