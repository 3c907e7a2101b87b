"""NVIDIA's GPU Operator on GKE, after Google's driver installer where nodes need that.

Values: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html.

Effects of changes: docs.nvidia.com/datacenter/cloud-native/gpu-operator, "Upgrading the NVIDIA GPU
Operator" and "GPU Driver Upgrades" (the driver of a node is reloaded once its GPU pods are
evicted), "Time-Slicing GPUs in Kubernetes" (the device plugin restarts for another config, running
pods keep what they have), "GPU Operator with MIG".
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from berth.components.core.manifest import Manifest, manifest_of
from berth.components.core.merge import merged
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.table import beside, broken
from berth.components.core.types import Name
from berth.components.gke import PoolSettings, tolerations
from berth.components.hardware import versions
from berth.components.hardware.names import CONFIG_LABEL, WHOLE_KEY
from berth.components.operators.driver_installer import HOST_DRIVER, DriverInstaller
from berth.components.operators.operator import (
    ChartName,
    ChartSettings,
    Object,
    Operator,
    Part,
    Repository,
    Values,
    namespace_of,
)
from berth.components.plan.effect import Effect, Level, sitting_on, where_somebody_works
from berth.components.plan.fleet import PlannedFleet, PlannedPool
from berth.components.plan.paths import below
from berth.components.plan.plan import Step
from berth.components.sharing import (
    KEEPS,
    Pools,
    config_changes,
    lines_of_configs,
    plugin_config_map,
)

_CONFIG = "values.devicePlugin.config"


def _good_version(version: str) -> str:
    if version in versions.GPU_OPERATOR_BAD:
        raise ValueError(f"{version} {versions.GPU_OPERATOR_BAD[version]}")
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
    """GPU metrics by NVIDIA's exporter; GKE's managed DCGM has the same, so it is off."""
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
        usages = [usage for occupant in fleet.occupants for usage in occupant.on.items()]
        return sorted({pool for pool, usage in usages if usage.gpus})

    def parts(self, name: str) -> Iterator[Part]:
        """Yield the namespace, the quota and the chart."""
        yield namespace_of(name, self.settings.namespace)
        yield Object(name, quota(self.settings.namespace))
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

    @classmethod
    def problems(
        cls, settings: GpuOperatorSettings, path: SettingPath, *, existing: bool
    ) -> Iterator[Problem]:
        """Yield Helm values with which a pod would get GPUs that it does not request."""
        del existing
        values = settings.values or {}
        where = (*path, "values")
        no_cdi = not isinstance(cdi := values.get("cdi", {}), Mapping) or not cdi.get(
            "enabled", True
        )
        yield from broken(
            beside(__file__)["gpu"],
            where,
            no_cdi=no_cdi,
            nri=not no_cdi and cdi.get("nriPluginEnabled"),
        )
        for daemon in ("toolkit", "devicePlugin"):
            yield from _of_environment(values, daemon, where)

    def _warnings(self, old: Values, new: Values) -> list[str]:
        return lines_of_configs(
            _plugin_config(old), _plugin_config(new), self.site.pools, self.site.occupants
        )

    def values(self) -> dict[str, Any]:
        """Return the Helm values that differ from the chart's own."""
        pools = self.pools
        chosen = manifest_of(
            __file__,
            "gpu_operator",
            driver=any(pool.settings.driver == "operator" for pool in pools.values()),
            feature_discovery=self.settings.node_feature_discovery,
            dcgm_exporter=self.settings.dcgm_exporter,
            mig_strategy=next(
                (mig for pool in pools.values() if (mig := pool.profile.facts.mig_strategy)),
                "single",
            ),
            plugin_config=plugin_config_map(self.site.pools),
        )
        tolerated = _tolerations(pools)
        parts = {
            "on_cos": any(pool.settings.node_image == "cos" for pool in pools.values()),
            "without_validator": not self.settings.validator,
            "tolerations": tolerated,
            "feature_discovery": tolerated and self.settings.node_feature_discovery,
        }
        for part in (part for part, needed in parts.items() if needed):
            more = manifest_of(
                __file__, f"gpu_operator_{part}", driver=HOST_DRIVER, tolerations=tolerated
            )
            chosen = merged(chosen, more)
        return chosen

    @classmethod
    def effects(cls, step: Step, fleet: PlannedFleet, changed: Sequence[str]) -> list[Effect]:
        """Return the effects of a change of the release."""
        if step.operation != "update":
            return super().effects(step, fleet, changed)
        effects = []
        old, new = step.before.get("values") or {}, step.after.get("values") or {}
        sitting = sitting_on(fleet, cls.pools_of(fleet))
        driver = any(below(path, "values.driver") for path in changed)
        chart = any(below(path, prefix) for path in changed for prefix in ("version", "chart"))
        if driver or (chart and (new.get("driver") or {}).get("enabled")):
            why = (
                "the driver changes"
                if driver
                else "another version of the GPU Operator brings its own driver"
            )
            text = (
                f"{why}: the GPU Operator evicts the GPU pods of one node after the other and"
                " reloads it"
            )
            effects.append(Effect(where_somebody_works(fleet, sitting), text, sitting))
        if any(below(path, _CONFIG) for path in changed):
            effects += _of_configs(
                _plugin_config(old), _plugin_config(new), fleet, cls.pools_of(fleet)
            )
        if any(not below(path, "values.driver") and not below(path, _CONFIG) for path in changed):
            what = (
                "another version of the GPU Operator"
                if chart
                else "other settings of the GPU Operator"
            )
            text = f"{what}: its daemons restart on every node that it serves; {KEEPS}"
            effects.append(Effect(Level.DISTURBS, text, sitting))
        return effects


def _of_environment(values: Values, daemon: str, where: SettingPath) -> Iterator[Problem]:
    """Yield what is wrong with variables of a daemon in the Helm values of a user."""
    of_daemon = values.get(daemon, {})
    if not isinstance(of_daemon, Mapping):
        yield Problem(
            (*where, daemon),
            f"is not a mapping; write {daemon}: {{env: [{{name: NAME, value: TEXT}}]}}",
        )
        return
    entries = of_daemon.get("env", [])
    if not isinstance(entries, list) or not all(
        isinstance(entry, Mapping) and "name" in entry for entry in entries
    ):
        yield Problem(
            (*where, daemon, "env"), "is not a list of variables; write [{name: NAME, value: TEXT}]"
        )
        return
    for position, entry in enumerate(entries):
        path = (*where, daemon, "env", position)
        yield from broken(beside(__file__)["gpu_env"], path, daemon=daemon, name=entry["name"])


def _plugin_config(values: Values) -> Mapping[str, Any]:
    return dict((values.get("devicePlugin") or {}).get("config") or {})


def _of_configs(
    old: Values, new: Values, fleet: PlannedFleet, served: Sequence[str]
) -> list[Effect]:
    """Return the effects on pools whose nodes read another config than before."""
    pools = {name: pool for name, pool in fleet.before.items() if name in served}
    keys = {name: pool.labels.get(CONFIG_LABEL, WHOLE_KEY) for name, pool in pools.items()}
    effects = [
        Effect(Level.DISTURBS, text, sitting_on(fleet, [name]))
        for name, text in config_changes(old, new, keys).items()
    ]
    if not effects:
        # The ConfigMap has another name because of a pool that is new or goes; no node reads
        # anything else in it.
        text = f"the device plugins read another ConfigMap and restart; {KEEPS}"
        effects.append(Effect(Level.DISTURBS, text, sitting_on(fleet, served)))
    return effects


def _tolerations(pools: Pools) -> list[dict[str, str]]:
    """Return the tolerations of the operator's daemons; empty where the chart's own suffice.

    Helm replaces lists as a whole. Without them a pool with taints has no device plugin, or no
    label by which the operator finds it.
    """
    found: list[dict[str, str]] = []
    for pool in pools.values():
        found += [
            toleration for toleration in tolerations(pool.settings) if toleration not in found
        ]
    return found if len(found) > 1 else []


def quota(namespace: str) -> Manifest:
    """Return the quota for pods of system priority, which GKE refuses outside kube-system."""
    return manifest_of(__file__, "gpu_operator_quota", namespace=namespace)
