"""Program `pulumi-resource-berth`, which the engine starts for components of the package."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pulumi
from pulumi import provider
from pulumi.runtime.settings import set_root_resource

from berth.components.core.errors import BerthError
from berth.components.core.numbers import whole_numbers
from berth.stacks.load.stack import SettingsError, load
from berth.stacks.package.schema import COMPONENTS, OUTPUTS, package_schema
from berth.stacks.program import NO_WAIT
from berth.stacks.program.main import register
from berth.stacks.program.waiting import Registered, wait_until_ready


class Package(provider.Provider):
    """Provider of the package's components."""

    def __init__(self) -> None:
        schema = package_schema()
        super().__init__(schema["version"], json.dumps(schema))

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> provider.ConstructResult:
        """Register a component and what belongs to it."""
        component = pulumi.ComponentResource(resource_type, name, None, options)
        # What has no parent gets this one. The engine's call has a context of its own, so several
        # components can be constructed at once.
        set_root_resource(component)
        registering: pulumi.Input[Registered] = _construct(name, COMPONENTS[resource_type], inputs)
        registered: pulumi.Output[Registered] = pulumi.Output.from_input(registering)
        outputs = {output: registered.apply(_output(output)) for output in OUTPUTS[resource_type]}
        component.register_outputs(outputs)
        return provider.ConstructResult(component.urn, outputs)


async def _construct(name: str, kind: str, inputs: pulumi.Inputs) -> Registered:
    """Register what the inputs say, and wait until it is ready.

    Raises:
        InputPropertiesError: inputs have problems, and the error has all of them; or something
            cannot be made, or is not ready in time. Other errors are shown with a traceback.
    """
    settings = await pulumi.Output.all(**inputs).future()
    if settings is None:
        raise pulumi.InputPropertiesError(
            f"inputs of {name} come from resources that do not exist yet, and berth checks all settings before it makes"
            " anything: write the values, or create those resources first with `pulumi up --target`"
        )
    # By default a berth has the name of its component.
    given = ({"name": name} if kind == "engineer" else {}) | whole_numbers(settings)
    try:
        loaded = load(pulumi.get_stack(), {kind: given}, None)
        registered = await register(loaded, prefix=f"{name}-")
        if not os.environ.get(NO_WAIT):
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
        raise pulumi.InputPropertiesError(str(error)) from None
    return registered


def _output(name: str) -> Callable[[Registered], Any]:
    return lambda registered: registered.outputs.get(name)


def main() -> None:
    """Serve the package until the engine ends this program."""
    provider.main(Package(), sys.argv[1:])
