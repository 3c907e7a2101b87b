"""NVIDIA's DRA driver for GPUs on GKE: pods claim single GPUs, each beside the NIC of its PCIe root.

Values: "Prepare GKE infrastructure for DRA workloads" (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra) and
https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm/dra-driver-nvidia-gpu/values.yaml. The driver of the
GPUs themselves is Google's installer's: GKE installs none on nodes whose GPUs are claimed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from berth.components.gke import on_pools
from berth.components.operators.driver_installer import HOST_DRIVER
from berth.components.operators.helm import Chart, operator_namespace, release
from berth.components.operators.settings import GpuDraSettings
from berth.components.sharing import Pool, Pools


class GpuDra(pulumi.ComponentResource):
    """The driver by its Helm chart. The chart brings the device classes gpu.nvidia.com, mig.nvidia.com and vfio.gpu.nvidia.com."""

    def __init__(
        self, name: str, settings: GpuDraSettings, pools: Pools, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Install it.

        Args:
            name: name of the Helm release.
            settings: chart, version, namespace.
            pools: all pools by name; those whose GPUs are claimed are among them.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:operators:GpuDra", name, None, opts)
        namespace = operator_namespace(name, settings.namespace, pulumi.ResourceOptions(parent=self))
        chart = Chart(
            chart=settings.chart,
            repository=settings.repository,
            version=settings.version,
            namespace=settings.namespace,
            values=values(pools),
            timeout=600,
        )
        release(name, chart, pulumi.ResourceOptions(parent=self, depends_on=[namespace]))
        self.register_outputs({})


def served(pools: Pools) -> Mapping[str, Pool]:
    """The pools whose GPUs are claimed."""
    return {name: pool for name, pool in pools.items() if pool.settings.by_dra}


def values(pools: Pools) -> dict[str, Any]:
    """Helm values: what differs from the chart's own.

    The controller is for compute domains, which no machine type of berth has (GB200's NVLink across nodes): without them the chart
    installs none, so that Google's values for it (no affinity, no priority class) have nothing to act on.
    """
    return {
        "nvidiaDriverRoot": HOST_DRIVER,
        # The chart refuses to serve GPUs until it is told that no device plugin does on the same nodes: their labels see to it.
        "gpuResourcesEnabledOverride": True,
        "resources": {"gpus": {"enabled": True}, "computeDomains": {"enabled": False}},
        "kubeletPlugin": {
            # GKE admits pods of system priority in other namespaces than kube-system only by a quota; Google's guide does without.
            "priorityClassName": "",
            "tolerations": [{"operator": "Exists"}],
            "affinity": on_pools(served(pools)),
        },
    }
