"""The fields of Google's resources that berth sets: those of real registrations, of every case
of the goldens (arguments.yaml) and every shipped stack.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from berth.components.gke.provider_fields import ResourceFields, resource_fields
from berth.components.sharing import offered_pools
from berth.stacks.files import stack_file
from berth.stacks.load.stack import load
from berth.stacks.program.google import register_in_google
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.cases import table
from tests.unit.components.gke import environment_of
from tests.unit.recording import Recorder, Registration, run


@cache
def google_registrations() -> tuple[Registration, ...]:
    """Google resources that the cases and the shipped stacks register."""
    return tuple(
        registration
        for name, settings in environments()
        for registration in recorded(name, settings).registrations
        if registration.type.startswith("gcp:")
    )


def registrations() -> tuple[Registration, ...]:
    """Google resources of which there are facts about the fields."""
    return tuple(found for found in google_registrations() if found.type in resource_fields())


@cache
def registered_fields() -> dict[str, frozenset[str]]:
    """Paths of the fields that are set, by Pulumi's type token."""
    return {
        token: frozenset(
            path
            for registration in registrations()
            if registration.type == token
            for path in paths(token, registration.inputs)
        )
        for token in resource_fields()
    }


@cache
def at_times() -> frozenset[tuple[str, str]]:
    """Types and paths of fields that some resource is registered with, and another one of the
    type is not.
    """
    found = set()
    for token, fields in registered_fields().items():
        each_time = [
            set(paths(token, registration.inputs))
            for registration in registrations()
            if registration.type == token
        ]
        for path in fields:
            block = path.rpartition(".")[0]
            if any(path not in given and (not block or block in given) for given in each_time):
                found.add((token, path))
    return frozenset(found)


def paths(token: str, inputs: dict[str, Any], facts: ResourceFields | None = None) -> Iterator[str]:
    """Paths of inputs without list indices; the keys of a map are none."""
    return _paths(
        "",
        {key: value for key, value in inputs.items() if not key.startswith("__")},
        facts or resource_fields()[token],
    )


def _paths(path: str, value: Any, facts: ResourceFields) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _paths(path, item, facts)
    elif isinstance(value, dict) and (not path or facts.fields[path].kind != "map"):
        for key, inner in value.items():
            if inner is not None:
                here = f"{path}.{key}" if path else key
                yield here
                yield from _paths(here, inner, facts)


def recorded(name: str, settings: EnvironmentSettings) -> Recorder:
    """Registrations of an environment's part on Google Cloud."""
    return run(lambda: _program(name, settings), name)


async def _program(name: str, settings: EnvironmentSettings) -> None:
    await register_in_google(name, settings, offered_pools(settings.pools, settings.sharing), {})


def environments() -> Iterator[tuple[str, EnvironmentSettings]]:
    """Environments of the cases and the shipped stacks, with the names of their stacks."""
    cases = table(__file__, "arguments.yaml")
    for values in cases["clusters"].values():
        yield "some", environment_of(**values)
    for pool, rest in cases["pools"].values():
        yield "some", environment_of({"it": pool}, **rest)
    for stack in stack_file.stack_names():
        file = stack_file.read_stack_file(stack_file.stack_path(stack))
        settings = load(stack, file.settings, file).settings
        if isinstance(settings, EnvironmentSettings) and not settings.cluster.existing:
            yield stack, settings
