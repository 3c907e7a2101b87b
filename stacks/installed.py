"""Operators that an environment's program installs on its cluster, each after the ones that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pulumi

from berth.components.core.errors import BadInputError
from berth.components.core.problems import Problem
from berth.components.hardware.names import ResourceApi
from berth.components.operators import dranet, gib, gpu_dra, gpu_operator
from berth.components.operators.driver_installer import DriverInstaller, wants_installer
from berth.components.operators.kuberay import KubeRay
from berth.components.sharing import Occupants
from berth.stacks.load import Environment, SettingsError
from berth.stacks.manifest_file import Object, read
from berth.stacks.stack_file import project


def install(
    loaded: Environment,
    occupants: Occupants,
    resource_api: ResourceApi,
    kubeconfig: pulumi.Input[str],
    dranet_manifest: Sequence[Object],
    on_nodes: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Install the operators that an environment needs.

    Args:
        loaded: the environment.
        occupants: names of the RayClusters on each pool.
        resource_api: version of resource.k8s.io that the cluster serves.
        kubeconfig: the cluster's, as text.
        dranet_manifest: objects of DraNet where a file has them.
        on_nodes: carries the kubernetes provider, and the resources that must exist before.

    Returns:
        The resources that berths and clusters need.
    """
    operators, pools = loaded.settings.operators, loaded.resolved.pools
    resources: list[pulumi.Resource] = []
    if operators.kuberay.source == "chart":
        resources.append(KubeRay("kuberay-operator", operators.kuberay, kubeconfig, on_nodes))
    with_driver = on_nodes
    if wants_installer(pools):
        installer = DriverInstaller("nvidia-driver-installer", on_nodes)
        resources.append(installer)
        with_driver = pulumi.ResourceOptions.merge(on_nodes, pulumi.ResourceOptions(depends_on=[installer]))
    if gpu_operator.served(pools):
        inputs = gpu_operator.GpuOperatorInputs(operators.gpu, pools, loaded.settings.sharing, occupants)
        resources.append(gpu_operator.GpuOperator("gpu-operator", inputs, with_driver))
    if gpu_dra.served(pools) and operators.gpu_dra.source == "chart":
        resources.append(gpu_dra.GpuDra("dra-driver-nvidia-gpu", operators.gpu_dra, pools, with_driver))
    if dranet.served(pools):
        its = dranet.DraNetInputs(operators.dranet, pools, resource_api, dranet_manifest)
        resources.append(dranet.DraNet("dranet", its, on_nodes))
    if gib.with_rdma(pools) and operators.gib.source == "installer":
        resources.append(gib.Gib("gib", operators.gib, pools, on_nodes))
    return resources


def dranet_objects(loaded: Environment) -> list[Object]:
    """Return the objects of DraNet where a file has them; read before anything is registered.

    Raises:
        SettingsError: the file cannot be used.
    """
    dranet_settings = loaded.settings.operators.dranet
    if dranet_settings.source != "manifest" or dranet_settings.manifest is None:
        return []
    try:
        return read(project() / Path(dranet_settings.manifest).expanduser())
    except BadInputError as error:
        problem = Problem(("environment", "operators", "dranet", "manifest"), str(error))
        raise SettingsError(loaded.stack, [problem], loaded.file) from None
