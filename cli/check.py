"""`berth check`: settings without the engine; `berth schema`: their JSON Schema."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from rich import box
from rich.table import Table

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem
from berth.stacks import stack_file
from berth.stacks.load import KINDS, SettingsError, berth_on, load, located
from berth.stacks.policies.policy import POLICIES, House, Waiver
from berth.stacks.policies.settings import house_for_engineers, house_of, judge_engineer, judge_environment
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.resolve import EnvironmentContract, contract_of, resolve_environment
from berth.stacks.stack_file import NAMESPACE, StackFile, StackFileError


@dataclass(frozen=True)
class Checked:
    """What the check of one stack found.

    Attributes:
        stack: the stack.
        kind: `environment` or `engineer`, None where that cannot be told.
        lines: one for each problem, with file and line.
        warnings: what works, but likely not as it is meant, one line each.
        policies: names of the policies that it keeps; None where they were not checked.
        waivers: those that it does not keep, with the reasons.
        house: what they are applied with; None where they were not checked.
    """

    stack: str
    kind: str | None
    lines: list[str]
    warnings: list[str] = field(default_factory=list)
    policies: list[str] | None = None
    waivers: list[Waiver] = field(default_factory=list)
    house: House | None = None

    @property
    def summary(self) -> str:
        """What was checked: `environment, 4 policies kept, 1 waived`."""
        if self.policies is None:
            return f"{self.kind}, policies not checked: its environment could not be read"
        waived = f", {len(self.waivers)} waived" if self.waivers else ""
        return f"{self.kind}, {len(self.policies)} policies kept{waived}"

    def as_json(self) -> dict[str, Any]:
        """For programs, with camelCase keys."""
        return {
            "stack": self.stack,
            "kind": self.kind,
            "problems": self.lines,
            "warnings": self.warnings,
            "policies": self.policies,
            "waived": [asdict(waiver) for waiver in self.waivers],
        }


def check(stack: str, text: str | None = None) -> Checked:
    """Check one stack's settings, an engineer's also against the environment's file where that is at hand.

    Args:
        stack: the stack.
        text: what its file is to have in it; None for what it has.
    """
    path = stack_file.stack_path(stack)
    if text is None and not path.exists():
        known = did_you_mean(stack, stack_file.stack_names())
        return Checked(stack, None, [f"there is no stack {stack!r}: {stack_file.shown(path)} does not exist{known}"])
    try:
        file = stack_file.read(path) if text is None else stack_file.parse(path, text)
    except StackFileError as error:
        return Checked(stack, None, [str(error)])
    kind = next((kind for kind in KINDS if kind in file.settings), None)
    try:
        settings = load(stack, file.settings, file)
        if isinstance(settings, EngineerSettings):
            return _check_engineer(stack, settings, file)
        resolved = resolve_environment(settings)
        judged = judge_environment(stack, settings, resolved)
    except SettingsError as error:
        return Checked(stack, kind, error.lines)
    warnings = [located(warning, file) for warning in (*resolved.warnings, *judged.warnings)]
    house = house_of(stack, settings, resolved.pools)
    return Checked(stack, kind, [], warnings, judged.held, judged.waivers, house)


def _check_engineer(stack: str, settings: EngineerSettings, file: StackFile) -> Checked:
    kind = "engineer"
    if "/" in settings.environment:
        return Checked(stack, kind, [])  # of another project: only `pulumi preview` can ask its state
    contract = _contract_from_file(settings.environment)
    if contract is None:
        known = did_you_mean(settings.environment, _environments())
        message = f"there is no environment {settings.environment!r}{known}"
        raise SettingsError(stack, [Problem(("engineer", "environment"), message)], file)
    if isinstance(contract, SettingsError):
        return Checked(stack, kind, [])
    resolved = berth_on(stack, settings, contract, file)
    judged = judge_engineer(contract, resolved)
    warnings = [located(warning, file) for warning in resolved.warnings]
    house = house_for_engineers(contract, resolved.pools)
    return Checked(stack, kind, [], warnings, judged.held, judged.waivers, house)


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


def policies() -> list[dict[str, Any]]:
    """Every policy that settings are held to, for programs."""
    return [asdict(policy) for policy in POLICIES.values()]


def policies_table() -> Table:
    """Every policy that settings are held to, for people."""
    table = Table("policy", "asks", "without it", box=box.SIMPLE_HEAD)
    for policy in POLICIES.values():
        table.add_row(policy.name, policy.asks, policy.why)
    return table


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
