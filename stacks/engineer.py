"""Program of an engineer's own stack: one berth on an environment that another stack registers.

It imports no pulumi_gcp, and its cost does not grow with the number of engineers.
"""

from __future__ import annotations

from typing import Any

import pulumi
from pydantic import ValidationError

from berth.components.berth import Berth
from berth.stacks.existing import on_cluster
from berth.stacks.load import EngineerStack
from berth.stacks.notices import log
from berth.stacks.settings.resolve import EnvironmentContract
from berth.stacks.waiting import wait_until_ready


async def engineer(loaded: EngineerStack) -> None:
    """Register an engineer's berth.

    Raises:
        SettingsError: the berth doesn't fit on its environment.
        KubeconfigError: no kubeconfig of this machine logs in to the environment's cluster.
        RunError: there is no such environment.
        NotReadyError: the RayCluster is not ready in time.
    """
    environment = loaded.settings.environment
    reference = pulumi.StackReference(full_name(environment))
    output = await reference.get_output_details("environment")
    found = loaded.on(read_contract(output.secret_value or output.value, environment))
    log(found.warnings, found.judgment.waivers)
    text = await reference.get_output_details("kubeconfig")
    platform = on_cluster(
        str(text.secret_value or text.value), reference.require_output("clusterId"), found.contract.login
    )
    kubernetes = platform.provider()
    name = found.berth.settings.name
    berth = Berth(name, found.berth, pulumi.ResourceOptions(providers={"kubernetes": kubernetes}))
    pulumi.export("namespace", berth.namespace)
    pulumi.export("rayCluster", name)
    await wait_until_ready(loaded.stack, platform.kubeconfig, [berth])


def full_name(environment: str) -> str:
    """Return Pulumi's name of an environment's stack: `organization/project/stack`."""
    if "/" in environment:
        return environment
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{environment}"


def read_contract(value: Any, environment: str) -> EnvironmentContract:
    """Read the output with which an environment's stack describes the environment.

    Raises:
        RunError: there is no such output, or this version of berth cannot read it.
    """
    if value is None:
        raise pulumi.RunError(
            f"environment {environment!r} has no output `environment`; make it first: pulumi up -s {environment}"
        )
    try:
        contract = EnvironmentContract.model_validate(_whole_numbers(value))
    except ValidationError:
        contract = None
    if contract is None or contract.isolation is None:
        raise pulumi.RunError(
            f"environment {environment!r} was made by another version of berth; update it: pulumi up -s {environment}"
        )
    return contract


def _whole_numbers(value: Any) -> Any:
    """Return a value with whole floats as integers: the engine passes 8 as 8.0."""
    if isinstance(value, dict):
        return {key: _whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
