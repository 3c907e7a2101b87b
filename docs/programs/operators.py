"""Operators on an existing cluster, for the pools that it has."""

import pulumi
import pulumi_kubernetes

from berth.components.cluster.objects import KubernetesObject
from berth.components.gke import PoolSettings
from berth.components.isolation import pod_policy, priority_classes
from berth.components.operators import (
    DriverInstaller,
    GpuOperator,
    GpuOperatorSettings,
    Installation,
    KubeRay,
    KubeRaySettings,
    Site,
)
from berth.components.sharing import TimeSlicing, offered_pools

kubeconfig = pulumi.Config().require_secret("kubeconfig")
cluster = pulumi_kubernetes.Provider("cluster", kubeconfig=kubeconfig)
on_cluster = pulumi.ResourceOptions(providers={"kubernetes": cluster})

profiles = {"any": TimeSlicing(kind="time-slicing", replicas=4)}
pools = offered_pools(
    {"dev": PoolSettings(machine_type="g2-standard-24", nodes=1, sharing="any")}, profiles
)
# On Container-Optimized OS, Google's installer brings the driver that the operator works with.
driver = Installation("nvidia-driver-installer", DriverInstaller(), on_cluster)
with_driver = pulumi.ResourceOptions(providers={"kubernetes": cluster}, depends_on=[driver])
Installation("gpu-operator", GpuOperator(GpuOperatorSettings(), Site(pools)), with_driver)
Installation(
    "kuberay-operator", KubeRay(KubeRaySettings(), Site(kubeconfig=kubeconfig)), on_cluster
)
for manifest in [*priority_classes(), *pod_policy()]:  # for the berths in the next program
    KubernetesObject(
        manifest["metadata"]["name"], manifest, pulumi.ResourceOptions(provider=cluster)
    )
