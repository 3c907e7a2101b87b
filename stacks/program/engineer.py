"""Program of an engineer's own stack: one berth on an environment that another stack registers.

It imports no pulumi_gcp, and its cost does not grow with the number of engineers.
"""

import asyncio
from typing import Any

import pulumi
from pydantic import ValidationError

from berth.components.berth import Berth
from berth.components.core.numbers import whole_numbers
from berth.stacks.load.stack import EngineerBerth, EngineerStack
from berth.stacks.program.notices import log_notices
from berth.stacks.program.own_part import read_own_part, require_claims
from berth.stacks.program.platform import (
    CLUSTER,
    Platform,
    platform_of_environment,
    platform_of_login,
)
from berth.stacks.program.waiting import Registered
from berth.stacks.settings.contract import EnvironmentContract


async def register_engineer(loaded: EngineerStack, *, prefix: str = "") -> Registered:
    """Register an engineer's berth, and return what `pulumi up` waits for and its outputs.

    With `prefix` begin Pulumi's names of what each of several berths needs for itself.
    """
    if loaded.settings.part == "cluster":
        own = await asyncio.to_thread(read_own_part, loaded.settings, loaded.stack)
        judged = loaded.on(own.contract)
        platform = platform_of_login(own.context, own.login)
        await asyncio.to_thread(require_claims, judged.berth, own.kubeconfig)
    else:
        judged, platform = await _by_reference(loaded, prefix)
    log_notices(judged.warnings, judged.judgment.waivers)
    name = judged.berth.settings.name
    providers = {"kubernetes": platform.provider(f"{prefix}{CLUSTER}")}
    berth = Berth(name, judged.berth, pulumi.ResourceOptions(providers=providers))
    outputs: dict[str, pulumi.Input[Any]] = {"namespace": berth.namespace}
    if berth.main:
        outputs["rayCluster"] = name
    return Registered(outputs, platform.kubeconfig, [berth], judged.resolved.pools)


async def _by_reference(loaded: EngineerStack, prefix: str) -> tuple[EngineerBerth, Platform]:
    """Return the berth and its cluster by the state of the environment's stack."""
    environment = loaded.settings.environment
    project = "" if "/" in environment else f"{pulumi.get_organization()}/{pulumi.get_project()}/"
    full = f"{project}{environment}"
    reference = pulumi.StackReference(f"{prefix}{full}", full)
    output = await reference.get_output_details("environment")
    judged = loaded.on(read_contract(output.secret_value or output.value, environment))
    text = await reference.get_output_details("kubeconfig")
    platform = platform_of_environment(
        str(text.secret_value or text.value),
        reference.require_output("clusterId"),
        judged.contract.login,
    )
    return judged, platform


def read_contract(value: Any, environment: str) -> EnvironmentContract:
    """Read the output with which an environment's stack describes the environment."""
    if value is None:
        raise pulumi.RunError(
            f"environment {environment!r} has no output `environment`; make it first: berth up -s"
            f" {environment}"
        )
    try:
        contract = EnvironmentContract.model_validate(whole_numbers(value))
    except ValidationError:
        contract = None
    if contract is None or contract.isolation is None:
        raise pulumi.RunError(
            f"environment {environment!r} was made by another version of berth; update it: berth"
            f" up -s {environment}"
        )
    return contract
