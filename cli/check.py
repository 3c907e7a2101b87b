"""`berth check`: settings without the engine; `berth schema`: their JSON Schema."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from stacks import stack_file
from stacks.load import KINDS, SettingsError, load, located
from stacks.settings.engineer import EngineerSettings
from stacks.settings.nearest import did_you_mean
from stacks.settings.problems import Problem
from stacks.settings.resolve import EnvironmentContract, contract_of, resolve_engineer, resolve_environment
from stacks.stack_file import NAMESPACE, StackFile, StackFileError


@dataclass(frozen=True)
class Checked:
    """What the check of one stack found.

    Attributes:
        stack: the stack.
        kind: `environment` or `engineer`, None where that cannot be told.
        lines: one for each problem, with file and line.
        warnings: what works, but likely not as it is meant, one line each.
    """

    stack: str
    kind: str | None
    lines: list[str]
    warnings: list[str] = field(default_factory=list)


def check(stack: str) -> Checked:
    """Check one stack's settings, an engineer's also against the environment's file where that is at hand."""
    path = stack_file.stack_path(stack)
    if not path.exists():
        known = did_you_mean(stack, stack_file.stack_names())
        return Checked(stack, None, [f"there is no stack {stack!r}: {stack_file.shown(path)} does not exist{known}"])
    try:
        file = stack_file.read(path)
    except StackFileError as error:
        return Checked(stack, None, [str(error)])
    kind = next((kind for kind in KINDS if kind in file.settings), None)
    try:
        settings = load(stack, file.settings, file)
        if isinstance(settings, EngineerSettings):
            warnings = _check_engineer(stack, settings, file)
        else:
            warnings = resolve_environment(settings).warnings
    except SettingsError as error:
        return Checked(stack, kind, error.lines)
    return Checked(stack, kind, [], [located(warning, file) for warning in warnings])


def _check_engineer(stack: str, settings: EngineerSettings, file: StackFile) -> list[Problem]:
    """The warnings; problems are raised."""
    if "/" in settings.environment:
        return []  # of another project: only `pulumi preview` can ask its state
    contract = _contract_from_file(settings.environment)
    if contract is None:
        known = did_you_mean(settings.environment, _environments())
        message = f"there is no environment {settings.environment!r}{known}"
        raise SettingsError(stack, [Problem(("engineer", "environment"), message)], file)
    if isinstance(contract, EnvironmentContract):
        resolved = resolve_engineer(settings, stack, contract)
        if resolved.problems:
            raise SettingsError(stack, resolved.problems, file)
        return resolved.warnings
    return []


def _contract_from_file(environment: str) -> EnvironmentContract | SettingsError | None:
    """The environment as its file describes it; its own errors, which are reported with it; None without a file."""
    path = stack_file.stack_path(environment)
    try:
        file = stack_file.read(path)
        if "environment" not in file.settings:
            return None
        settings = load(environment, file.settings, file)
    except StackFileError:
        return None
    except SettingsError as error:
        return error
    if isinstance(settings, EngineerSettings):
        return None
    return contract_of(settings, environment, resolve_environment(settings))


def _environments() -> list[str]:
    names = []
    for name in stack_file.stack_names():
        try:
            if "environment" in stack_file.read(stack_file.stack_path(name)).settings:
                names.append(name)
        except StackFileError:
            continue
    return names


def schema() -> dict[str, Any]:
    """The JSON Schema of a stack's config file, for editors."""
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for kind, model in KINDS.items():
        part = model.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        definitions |= part.pop("$defs", {})
        definitions[model.__name__] = part
        properties[f"{NAMESPACE}:{kind}"] = {"$ref": f"#/$defs/{model.__name__}"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Config of a berth stack",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": properties,
                "oneOf": [{"required": [key]} for key in properties],
                # Other providers' settings (gcp:…) are Pulumi's business; a misspelt one of ours is not.
                "patternProperties": {f"^{NAMESPACE}:(?!({'|'.join(KINDS)})$)": False},
            }
        },
        "required": ["config"],
        "$defs": definitions,
    }


def schema_text() -> str:
    """The schema as the file stacks/schema.json has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
