"""NVIDIA's DRA driver for GPUs on GKE: pods claim GPUs, or NVLink to the GPUs of other nodes.

A claimed GPU comes with the NIC of its PCIe root.

Values: "Prepare GKE infrastructure for DRA workloads"
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra) and
https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu,
deployments/helm/dra-driver-nvidia-gpu/values.yaml. Google's installer installs the GPU driver: GKE
installs none on nodes whose GPUs are claimed.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from berth.components.core.types import Name
from berth.components.gke import PoolSettings, pool_affinity
from berth.components.hardware import versions
from berth.components.hardware.names import CLAIMED_LABEL
from berth.components.operators.chart_settings import ChartName, ChartSettings, Repository
from berth.components.operators.driver_installer import HOST_DRIVER, DriverInstaller
from berth.components.operators.operator import Operator, OtherInstallation
from berth.components.operators.parts import Part, namespace_of
from berth.components.plan.fleet import PlannedPool

_NO_PRIORITY = ""
"""Priority class in place of the chart's: GKE admits pods of system priority outside kube-system
only by a quota, and Google's guide does without one."""


class GpuDraSettings(ChartSettings):
    """NVIDIA's DRA driver: installed for pools with `gpuAllocation: dra`, or A4X with NICs."""

    source: Literal["chart", "present"] = "chart"
    """`chart`: berth installs it. `present`: it is there already."""
    chart: ChartName = versions.GPU_DRA_CHART
    repository: Repository = None
    version: Annotated[str, Field(examples=[versions.GPU_DRA], pattern=r"^\d+\.\d+\.\d+$")] = (
        versions.GPU_DRA
    )
    """Version of chart and driver."""
    namespace: Annotated[Name, Field(examples=["nvidia-dra"])] = "nvidia-dra-driver-gpu"
    """Namespace that the driver runs in."""


class GpuDra(Operator[GpuDraSettings]):
    """The driver by its Helm chart, which brings the device classes of GPUs and MIG instances."""

    title: ClassVar[str] = "GPU DRA driver"
    release: ClassVar[str] = "dra-driver-nvidia-gpu"
    setting: ClassVar[str] = "gpu_dra"
    needs: ClassVar[tuple[type[Operator[Any]], ...]] = (DriverInstaller,)
    pool_setting: ClassVar[str] = "`gpuAllocation: dra`, or A4X with `rdma: managed`"
    settings_by_value: ClassVar[Mapping[str, str]] = {
        "kubeletPlugin.affinity": "`gpuAllocation: dra` of the pools"
    }
    other_installation: ClassVar[OtherInstallation | None] = OtherInstallation(
        conflict="two of them would hand out the same GPUs",
        remedy="write `source: present`",
        images=("dra-driver-nvidia-gpu", "k8s-dra-driver-gpu"),
    )
    noun: ClassVar[str] = "NVIDIA's DRA driver"
    when_removed: ClassVar[str] = (
        "running pods keep their GPUs, those that end hang until it is back, and none that claims"
        " GPUs starts"
    )
    when_changed: ClassVar[str] = (
        "NVIDIA's DRA driver restarts on its nodes: running pods keep their GPUs, and none that"
        " claims GPUs starts meanwhile"
    )

    @classmethod
    def serves(cls, pool: PoolSettings) -> bool:
        """Return whether a pool's GPUs, or NVLink between them, are claimed."""
        return pool.by_dra or pool.nvlink

    @classmethod
    def serves_planned(cls, pool: PlannedPool) -> bool:
        """Return whether the GPUs of a plan's pool, or NVLink between them, are claimed."""
        placed = pool.settings.get("placementPolicy") or {}
        return pool.labels.get(CLAIMED_LABEL) == "true" or bool(placed.get("policyName"))

    def parts(self, name: str) -> Iterator[Part]:
        """Yield the namespace and the chart."""
        yield namespace_of(name, self.settings.namespace)
        yield self.settings.chart_with(self.values(), self.repositories, timeout=600)

    def values(self) -> dict[str, Any]:
        """Return the Helm values that differ from the chart's own."""
        nvlink = any(pool.settings.nvlink for pool in self.pools.values())
        claimed = any(pool.settings.by_dra for pool in self.pools.values())
        values: dict[str, Any] = {
            "nvidiaDriverRoot": HOST_DRIVER,
            # Compute domains are for NVLink between nodes. Without them the chart installs no
            # controller.
            "resources": {"gpus": {"enabled": claimed}, "computeDomains": {"enabled": nvlink}},
            "kubeletPlugin": {
                "priorityClassName": _NO_PRIORITY,
                "tolerations": [{"operator": "Exists"}],
                "affinity": pool_affinity(self.pools),
            },
        }
        if claimed:
            # The chart refuses to serve GPUs unless no device plugin serves the same nodes: their
            # labels keep it off.
            values["gpuResourcesEnabledOverride"] = True
        if nvlink:
            values["controller"] = {"priorityClassName": _NO_PRIORITY}
        return values
