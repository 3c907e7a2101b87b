"""Program `pulumi-resource-berth`, which the engine starts for components of the package.

The package's schema is derived from the models of the settings.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pulumi
from pulumi import provider
from pulumi.runtime.settings import set_root_resource

from berth.components.core.distribution import installed_version
from berth.components.core.errors import BerthError
from berth.components.core.numbers import whole_numbers
from berth.stacks.load.schema import schema as settings_schema
from berth.stacks.load.stack import KINDS, SettingsError, load
from berth.stacks.program.main import register
from berth.stacks.program.waiting import Registered, wait_until_ready

COMPONENTS = {"berth:index:Environment": "environment", "berth:index:EngineerBerth": "engineer"}
"""Kinds of settings by the type of the component that takes them."""

_ANY = {"$ref": "pulumi.json#/Any"}


def _text(description: str, *, secret: bool = False) -> dict[str, Any]:
    """Return an output that is a text."""
    return {"type": "string", "description": description} | ({"secret": True} if secret else {})


OUTPUTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "berth:index:Environment": {
        "environment": {
            **_ANY,
            "secret": True,
            "description": "What engineers' own stacks read.",
        },
        "kubeconfig": _text("Kubeconfig of the cluster, without credentials.", secret=True),
        "clusterId": _text("Id of the cluster for its whole life."),
        "berths": _text("Names of the engineers' berths."),
        "clusters": _text("Names of the shared RayClusters."),
        "jobs": _text("Names of the RayJobs."),
        "services": _text("Names of the RayServices."),
    },
    "berth:index:EngineerBerth": {
        "namespace": _text("Namespace of the berth."),
        "rayCluster": _text("Name of the RayCluster, if this berth registers it."),
    },
}
"""Outputs of the components, by type and name
(https://www.pulumi.com/docs/iac/extending-pulumi/schema)."""


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
            f"inputs of {name} come from resources that do not exist yet, and berth checks all"
            " settings before it makes anything: write the values, or create those resources first"
            " with `pulumi up --target`"
        )
    # By default a berth has the name of its component.
    given = ({"name": name} if kind == "engineer" else {}) | whole_numbers(settings)
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
        raise pulumi.InputPropertiesError(str(error)) from None
    return registered


def _output(name: str) -> Callable[[Registered], Any]:
    return lambda registered: registered.outputs.get(name)


def package_schema() -> dict[str, Any]:
    """Return the schema of the package (https://www.pulumi.com/docs/iac/extending-pulumi/schema)."""
    definitions = settings_schema()["$defs"]
    resources: dict[str, Any] = {}
    for token, kind in COMPONENTS.items():
        resources[token] = _resource(definitions.pop(KINDS[kind].__name__), OUTPUTS[token])
    types: dict[str, Any] = {}
    for name, node in definitions.items():
        if "properties" in node:
            types[f"berth:index:{name}"] = {"type": "object"} | _members(node)
    return {
        "name": "berth",
        "displayName": "berth",
        "version": installed_version(),
        "description": "Every engineer gets a berth on shared GPUs.",
        "types": types,
        "resources": resources,
    }


def _resource(model: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a component, by the schema of its settings."""
    members = _members(model)
    return {
        "isComponent": True,
        "description": model.get("description", ""),
        "inputProperties": members["properties"],
        "requiredInputs": members["required"],
        "properties": outputs,
    }


def _members(node: Mapping[str, Any]) -> dict[str, Any]:
    described = {
        name: _type_of(member) | {"description": member.get("description", "")}
        for name, member in node["properties"].items()
    }
    return {"properties": described, "required": sorted(node.get("required", []))}


def _type_of(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the package's type of a value; a null is a property that is left out."""
    if "$ref" in node:
        return {"$ref": f"#/types/berth:index:{node['$ref'].rpartition('/')[2]}"}
    alternatives = node.get("anyOf") or node.get("oneOf") or ()
    choices = [_type_of(choice) for choice in alternatives if choice.get("type") != "null"]
    if choices:
        unique = [
            choice for position, choice in enumerate(choices) if choice not in choices[:position]
        ]
        return unique[0] if len(unique) == 1 else {"oneOf": unique}
    kind = node.get("type")
    if kind == "array":
        return {"type": "array", "items": _type_of(node["items"])}
    if kind == "object":
        values = node.get("additionalProperties")
        return {
            "type": "object",
            "additionalProperties": _type_of(values) if isinstance(values, dict) else _ANY,
        }
    return {"type": kind} if kind else dict(_ANY)


def main() -> None:
    """Serve the package until the engine ends this program."""
    provider.main(PackageProvider(), sys.argv[1:])
