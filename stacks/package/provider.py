"""Program `pulumi-resource-berth`, which the engine starts for components of the package."""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import pulumi
from pulumi import provider
from pulumi.runtime.settings import set_root_resource

from berth.components.core.errors import BerthError
from berth.components.core.numbers import whole_numbers
from berth.stacks.load.stack import EngineerStack, Environment, SettingsError, load
from berth.stacks.package.names import name_after
from berth.stacks.package.schema import COMPONENTS, OUTPUTS, package_schema
from berth.stacks.program.main import register
from berth.stacks.program.waiting import wait_until_ready

Outputs = dict[str, Any]
"""Outputs of a component, some of which may be Pulumi's."""


class PackageProvider(provider.Provider):
    """Provider of the package's components."""

    def __init__(self) -> None:
        schema = package_schema()
        super().__init__(schema["version"], json.dumps(schema))

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> provider.ConstructResult:
        """Register a component and what belongs to it."""
        component = pulumi.ComponentResource(resource_type, name, None, options)
        # What has no parent gets this one. The engine's call has a context of its own, so several
        # components can be constructed at once.
        set_root_resource(component)
        kind = COMPONENTS[resource_type]
        if kind == "environment":  # a berth has the name of its engineer, which no other has
            name_after(name)
        making: pulumi.Input[Outputs] = _construct(name, kind, inputs)
        made: pulumi.Output[Outputs] = pulumi.Output.from_input(making)
        outputs = {output: made.apply(_output(output)) for output in OUTPUTS[resource_type]}
        component.register_outputs(outputs)
        return provider.ConstructResult(component.urn, outputs)


async def _construct(name: str, kind: str, inputs: pulumi.Inputs) -> Outputs:
    """Register what the inputs say, wait until it is ready, and return the component's outputs.

    Raises:
        InputPropertiesError: inputs have problems, and the error has all of them; or something
            cannot be made, or is not ready in time. Other errors are shown with a traceback.
    """
    await _refuse_secrets(name, inputs)
    settings = await pulumi.Output.all(**inputs).future()
    if settings is None:
        raise _refusal(
            f"inputs of {name} come from resources that do not exist yet, and berth checks all"
            " settings before it makes anything: write the values, or create those resources first"
            " with `pulumi up --target`"
        )
    given = _with_name(name, kind, whole_numbers(settings))
    try:
        loaded = load(pulumi.get_stack(), {kind: given}, None)
        registered = await register(loaded, prefix=f"{name}-")
        await wait_until_ready(loaded.stack, registered)
    except SettingsError as error:
        raise pulumi.InputPropertiesError(
            f"{name}: its inputs have problems; nothing of it is made",
            # Below the kind of the settings, which are the inputs of the component.
            [
                {"property_path": problem.where.partition(".")[2], "reason": problem.message}
                for problem in error.problems
            ],
        ) from None
    except (BerthError, pulumi.RunError) as error:
        raise _refusal(str(error)) from None
    return dict(registered.outputs) | _names(loaded)


def _refusal(text: str) -> pulumi.InputPropertiesError:
    """Return an error that is about no single input.

    It has an empty list: the SDK cannot send an error that has none (pulumi 3.272,
    create_grpc_invalid_properties_status in provider/server.py).
    """
    return pulumi.InputPropertiesError(text, [])


async def _refuse_secrets(name: str, inputs: pulumi.Inputs) -> None:
    """Refuse secrets, which would be plain text in the state and on the cluster.

    Raises:
        InputPropertiesError: some inputs are secret; the error shows none of their values.
    """
    secret = [
        key for key, value in inputs.items() if await pulumi.Output.from_input(value).is_secret()
    ]
    if secret:
        # No path to them: the engine shows the value of an input that an error has the path of.
        raise _refusal(
            f"{name}: inputs with a secret: {', '.join(secret)}; nothing of it is made, since berth"
            " writes its inputs into the state and into objects of the cluster as plain text. The"
            " setting `secrets` names a Kubernetes Secret instead, and pulumi.Output.unsecret takes"
            " a value that need not be secret"
        )


def _with_name(name: str, kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings in which a berth, or a cluster that is made, has its component's name."""
    if kind == "engineer":
        return settings | {"name": settings.get("name") or name}
    cluster = settings.get("cluster") or {}
    if isinstance(cluster, dict) and not cluster.get("existing"):
        return settings | {"cluster": cluster | {"name": cluster.get("name") or name}}
    return settings


def _names(loaded: Environment | EngineerStack) -> Outputs:
    """Return the names of what an environment has, which are one text each in a stack's outputs."""
    if not isinstance(loaded, Environment):
        return {}
    resolved = loaded.resolved
    return {
        "berths": [berth.name for berth in resolved.berths],
        "clusters": [cluster.name for cluster in resolved.clusters],
        "jobs": [job.name for job in resolved.jobs],
        "services": [service.name for service in resolved.services],
    }


def _output(name: str) -> Callable[[Outputs], Any]:
    return lambda outputs: outputs.get(name)


def _leave(_signal: int, _frame: object) -> NoReturn:
    """Exit at once: the interpreter's own end takes seconds on a busy machine.

    The engine closes its plugins one after the other, and has five seconds for all of them. Those
    that it does not reach it reports as "exited prematurely" (pulumi 3.250, ReleaseContext in
    pkg/host/host.go).
    """
    os._exit(0)


def main() -> None:
    """Serve the package until the engine ends this program."""
    signal.signal(signal.SIGINT, _leave)
    provider.main(PackageProvider(), sys.argv[1:])
