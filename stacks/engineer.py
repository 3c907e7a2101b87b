"""The program of an engineer's own stack: one berth on an environment that another stack made.

It imports no pulumi_gcp, and its cost does not grow with the number of engineers.
"""

from __future__ import annotations

from typing import Any

import pulumi
from pydantic import ValidationError

from berth.components.berth import Berth, BerthInputs
from berth.components.cluster.provider import kubernetes_provider
from berth.components.isolation.settings import IsolationSettings
from berth.stacks.load import berth_on
from berth.stacks.notices import say
from berth.stacks.policies.settings import judge_engineer
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.resolve import EnvironmentContract
from berth.stacks.stack_file import StackFile
from berth.stacks.waiting import wait_until_ready


async def engineer(stack: str, settings: EngineerSettings, file: StackFile | None) -> None:
    """Make an engineer's berth.

    Args:
        stack: the stack's name.
        settings: checked settings.
        file: where they were written, for lines in errors.

    Raises:
        SettingsError: the berth doesn't fit on its environment.
        RunError: there is no such environment.
        NotReadyError: the RayCluster is not ready in time.
    """
    reference = pulumi.StackReference(full_name(settings.environment))
    output = await reference.get_output_details("environment")
    contract = read_contract(output.secret_value or output.value, settings.environment)
    resolved = berth_on(stack, settings, contract, file)
    say(resolved.warnings, judge_engineer(contract, resolved).waivers)
    berth_settings = resolved.berths[0]
    kubeconfig = reference.require_output("kubeconfig")
    kubernetes = kubernetes_provider(kubeconfig, reference.require_output("clusterId"))
    berth = Berth(
        berth_settings.name,
        BerthInputs(
            berth_settings,
            resolved.pools,
            environment=contract.name,
            stack=stack,
            kind="engineer",
            resource_api=contract.resource_api,
            isolation=contract.isolation or IsolationSettings(),
            kuberay=contract.kuberay,
        ),
        pulumi.ResourceOptions(providers={"kubernetes": kubernetes}),
    )
    pulumi.export("namespace", berth.namespace)
    pulumi.export("rayCluster", berth_settings.name)
    await wait_until_ready(stack, kubeconfig, [berth])


def full_name(environment: str) -> str:
    """The name by which Pulumi knows an environment's stack: `organization/project/stack`."""
    if "/" in environment:
        return environment
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{environment}"


def read_contract(value: Any, environment: str) -> EnvironmentContract:
    """What the environment's stack says of itself.

    Raises:
        RunError: it says nothing, or not what this version of berth reads.
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
            f"environment {environment!r} was made by another version of berth; bring it up to date: pulumi up -s {environment}"
        )
    return contract


def _whole_numbers(value: Any) -> Any:
    """The engine's wire format knows only floats: 8 comes back as 8.0."""
    if isinstance(value, dict):
        return {key: _whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
