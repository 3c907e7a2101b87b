"""What an environment's program installs on its cluster, in the order in which one needs the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pulumi

from berth.components.core.problems import Problem
from berth.components.hardware.names import ResourceApi
from berth.components.operators import dranet, gib, gpu_dra, gpu_operator
from berth.components.operators.driver_installer import DriverInstaller, wants_installer
from berth.components.operators.kuberay import KubeRay
from berth.components.sharing import Occupants, Pools
from berth.stacks.load import SettingsError
from berth.stacks.manifest_file import ManifestError, Object, read
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.stack_file import StackFile, project


@dataclass(frozen=True)
class Wanted:
    """What is to be installed.

    Attributes:
        settings: of the environment.
        pools: its pools with what they offer.
        occupants: who is on which pool.
        resource_api: the version of resource.k8s.io that the cluster serves.
        kubeconfig: the cluster, as text.
        dranet_manifest: the objects of DraNet where it comes by a file.
    """

    settings: EnvironmentSettings
    pools: Pools
    occupants: Occupants
    resource_api: ResourceApi
    kubeconfig: pulumi.Input[str]
    dranet_manifest: Sequence[Object] = field(default_factory=list)


def install(wanted: Wanted, on_nodes: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Install all of it.

    Args:
        wanted: what.
        on_nodes: carries the kubernetes provider, and what must be there before.

    Returns:
        What berths and clusters need to be there.
    """
    operators, pools = wanted.settings.operators, wanted.pools
    made: list[pulumi.Resource] = []
    if operators.kuberay.source == "chart":
        made.append(KubeRay("kuberay-operator", operators.kuberay, wanted.kubeconfig, on_nodes))
    with_driver = on_nodes
    if wants_installer(pools):
        installer = DriverInstaller("nvidia-driver-installer", on_nodes)
        made.append(installer)
        with_driver = pulumi.ResourceOptions.merge(on_nodes, pulumi.ResourceOptions(depends_on=[installer]))
    if gpu_operator.served(pools):
        inputs = gpu_operator.GpuOperatorInputs(operators.gpu, pools, wanted.settings.sharing, wanted.occupants)
        made.append(gpu_operator.GpuOperator("gpu-operator", inputs, with_driver))
    if gpu_dra.served(pools) and operators.gpu_dra.source == "chart":
        made.append(gpu_dra.GpuDra("dra-driver-nvidia-gpu", operators.gpu_dra, pools, with_driver))
    if dranet.served(pools):
        its = dranet.DraNetInputs(operators.dranet, pools, wanted.resource_api, wanted.dranet_manifest)
        made.append(dranet.DraNet("dranet", its, on_nodes))
    if gib.with_rdma(pools) and operators.gib.source == "installer":
        made.append(gib.Gib("gib", operators.gib, pools, on_nodes))
    return made


def dranet_manifest(stack: str, settings: EnvironmentSettings, file: StackFile | None) -> list[Object]:
    """The objects of DraNet where it comes by a file; read before anything is made.

    Args:
        stack: the stack's name.
        settings: of the environment.
        file: where they were written, for lines in errors.

    Raises:
        SettingsError: the file cannot be used.
    """
    source, path = settings.operators.dranet.source, settings.operators.dranet.manifest
    if source != "manifest" or path is None:
        return []
    try:
        return read(project() / Path(path).expanduser())
    except ManifestError as error:
        problem = Problem(("environment", "operators", "dranet", "manifest"), str(error))
        raise SettingsError(stack, [problem], file) from None
