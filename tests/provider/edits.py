"""Edits on which the provider's verdict is asked: of settings, and of each field that berth sets.

Edits of settings are those of docs/edits.yaml. A field is changed, removed and added, in the first
resource where that can be done.
"""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from berth.components.core.errors import BadInputError
from berth.components.gke.provider_fields import Field
from berth.components.plan.paths import MISSING
from berth.lab.plugins.gcp.provider import TYPES
from berth.stacks.files import stack_file
from berth.stacks.load.stack import load
from berth.stacks.settings.environment import EnvironmentSettings
from docs.edits import ENVIRONMENTS, edits_of, settings
from tests.provider.engine import Key, Resource, up
from tests.provider.plugin import Properties, Provider
from tests.unit.cases import table
from tests.unit.components.gke import environment_of, registered
from tests.unit.components.gke.registered import paths, recorded

Place = tuple[str | int, ...]
"""Keys and indices that lead to a value."""
Changes = Sequence[tuple[Place, Any]]
"""New values by their places; MISSING where there is none."""


_OF_GOOGLE = {
    *("project", "zone", "region", "zones", "labels", "cluster", "network", "pools", "sharing"),
    "operators",
}

_NAMES = ("name", "accountId")


@dataclass(frozen=True)
class Environment:
    """Environment that is up.

    Attributes:
        stack: name of its stack.
        settings: its settings.
        resources: its resources in Google Cloud.
        objects: what the stand-in for Google's APIs has.
    """

    stack: str
    settings: EnvironmentSettings
    resources: Mapping[Key, Resource]
    objects: Mapping[str, Any]

    def enter(self, provider: Provider) -> None:
        """Let the provider see this environment."""
        provider.apis.objects = copy.deepcopy(dict(self.objects))
        own = self.settings
        provider.configure({"project": own.project, "region": own.in_region, "zone": own.zone})


def bring_up(provider: Provider, stack: str, settings: EnvironmentSettings) -> Environment:
    """Make an environment on its own in Google Cloud.

    Stacks of one provider need names of their own: it keeps the node pools of a cluster in mind.
    """
    provider.apis.objects = {}
    resources = up(provider, stack, settings)
    return Environment(stack, settings, resources, provider.apis.objects)


@cache
def shipped() -> Mapping[str, EnvironmentSettings]:
    """Return the settings of the shipped stacks that make a cluster, by the stack's name."""
    folder = stack_file.stack_path("*").parent
    found = {}
    for path in sorted([*folder.glob("Pulumi.*.yaml"), *folder.glob("gallery/Pulumi.*.yaml")]):
        name = path.name.split(".")[1]
        file = stack_file.read_stack_file(path)
        settings_of_stack = load(name, file.settings, file).settings
        if isinstance(settings_of_stack, EnvironmentSettings):
            found[name] = settings_of_stack
    return {name: own for name, own in found.items() if not own.cluster.existing}


def environments_with_all_fields() -> Iterator[tuple[str, EnvironmentSettings]]:
    """Yield the first environments that have all fields that berth sets, with names for stacks."""
    seen: set[tuple[str, str]] = set()
    settings_of_clusters = table(registered.__file__, "arguments.yaml")["of_a_cluster"].values()
    cases = [own for stack, own in registered.environments() if stack == "some"]
    cases += [environment_of(**values) for values, _ in settings_of_clusters]
    named = {f"case-{number}": own for number, own in enumerate(cases)}
    for stack, own in [*shipped().items(), *named.items()]:
        fields = {
            (found.type, path)
            for found in recorded(stack, own).registrations
            if found.type in TYPES
            for path in paths_of(found.type, found.inputs)
        }
        if fields - seen:
            seen |= fields
            yield stack, own


def paths_of(kind: str, inputs: Properties) -> Iterator[str]:
    """Yield the paths of a resource's inputs, without indices of lists and keys of maps."""
    return paths(kind, inputs, TYPES[kind].facts)


def field_edits(
    resources: Sequence[Resource],
) -> Iterator[tuple[Resource, str, Changes]]:
    """Yield edits of every field, with the resource and words for the edit."""
    first: dict[tuple[str, str], Resource] = {}
    fields = {
        id(resource): frozenset(paths_of(resource.there.type, resource.written))
        for resource in resources
    }
    for resource in resources:
        for path in paths_of(resource.there.type, resource.written):
            first.setdefault((resource.there.type, path), resource)
    for (kind, path), resource in first.items():
        place = place_of(resource.written, path)
        value = value_in(resource.written, place)
        fact = TYPES[kind].facts.fields.get(path, Field())
        for other in other_values(value, fact):
            yield resource, f"change {path}", [(place, other)]
        if path not in _NAMES:  # the provider makes a name
            yield resource, f"remove {path}", [(place, MISSING)]
        for lacking in resources:
            if lacking.there.type != kind or path in fields[id(lacking)]:
                continue
            if free := _free_place(lacking.written, path):
                yield lacking, f"add {path}", [(free, value)]
                break


def _free_place(inputs: Properties, path: str) -> Place:
    """Return the place of a field in a block that inputs have; empty for none."""
    block, _, name = path.rpartition(".")
    above = place_of(inputs, block) if block else ()
    if block and not above:
        return ()
    in_list = isinstance(value_in(inputs, above), list)
    return (*above, 0, name) if in_list else (*above, name)


def setting_edits(
    environment: Mapping[str, Any], done: Container[str]
) -> Iterator[tuple[str, EnvironmentSettings]]:
    """Yield edits of an environment of docs/edits.yaml: the setting, and all settings after it.

    Edits that Google's resources do not know are left out.

    Args:
        environment: the environment's settings as they are written.
        done: settings whose edits are known; they are left out.
    """
    asked = [settings_for_google(environment)[1]]
    for setting in settings():
        if setting.path.split(".")[1] not in _OF_GOOGLE or setting.path in done:
            continue
        for values in edits_of(setting, dict(environment)):
            try:
                edited, of_google = settings_for_google(values)
            except BadInputError:
                continue
            if of_google not in asked and edited.cluster.existing is None:
                asked.append(of_google)
                yield setting.path, edited


def settings_for_google(values: Mapping[str, Any]) -> tuple[EnvironmentSettings, Properties]:
    """Return an environment's settings, and those of them of which Google's resources are made.

    Raises:
        BadInputError: the settings are wrong.
    """
    loaded = load("fleet", {"environment": dict(values)}, None).settings
    assert isinstance(loaded, EnvironmentSettings)
    return loaded, loaded.model_dump(include=_OF_GOOGLE)


def edited_environments() -> Mapping[str, Mapping[str, Any]]:
    """Return the environments of docs/edits.yaml that make a cluster, as they are written."""
    written = yaml.safe_load(ENVIRONMENTS.read_text(encoding="utf-8"))
    return {
        name: values
        for name, values in written.items()
        if "existing" not in (values.get("cluster") or {})
    }


def other_values(value: Any, fact: Field) -> Iterator[Any]:
    """Yield other values of a field, as far as they are of its kind."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
        if value > 1:
            yield value - 1
    elif isinstance(value, str):
        yield from other_texts(value, fact)
    elif isinstance(value, list) and len(value) > 1:
        yield value[:-1]
    elif isinstance(value, dict) and fact.kind == "map":
        yield {key: f"{inner}x" for key, inner in value.items()}


def other_texts(value: str, fact: Field) -> Iterator[str]:
    """Yield other texts in the place of one: another word, a wider and another range."""
    if others := [word for word in fact.allowed if word != value]:
        yield others[0]
    elif "/" in value and value[0].isdigit():
        network = ipaddress.IPv4Network(value)
        yield str(network.supernet())
        yield str(ipaddress.IPv4Network((int(network[0]) + (1 << 26), network.prefixlen)))
    elif value[:4].isdigit() and value.endswith("Z"):
        yield value.replace(value[:4], str(int(value[:4]) + 1))
    elif value[:2].isdigit() and value[2:3] == ":":
        yield "07:00"
    elif "/" in value and fact.suppress.startswith("CompareSelfLink"):
        yield f"{value}x"
        yield value.replace("projects/", "projects/other-", 1)
    else:
        yield f"{value}x"


def changes_between(old: Any, new: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield the changes that lead from one value to another, inside of lists of one length too."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from changes_between(old.get(key, MISSING), new.get(key, MISSING), (*place, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from changes_between(one, other, (*place, index))
    elif old is MISSING or new is MISSING or old != new:
        yield place, new


def with_changes(inputs: Properties, changes: Changes) -> Properties:
    """Return inputs after an edit."""
    edited = copy.deepcopy(inputs)
    for place, value in changes:
        *above, last = place
        inner = value_in(edited, tuple(above))
        if value is not MISSING:
            inner[last] = copy.deepcopy(value)
        elif isinstance(inner, dict):
            inner.pop(last, None)
        else:
            del inner[last]
    return edited


def place_of(inputs: Properties, path: str) -> Place:
    """Return the first place that a path without indices leads to; empty for none."""
    return next(_places(inputs, path.split(".")), ())


def _places(value: Any, names: Sequence[str]) -> Iterator[Place]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            for rest in _places(item, names):
                yield (index, *rest)
    elif not names:
        yield ()
    elif isinstance(value, dict) and value.get(names[0]) is not None:
        if len(names) == 1:
            yield (names[0],)
        else:
            for rest in _places(value[names[0]], names[1:]):
                yield (names[0], *rest)


def value_in(value: Any, place: Place) -> Any:
    """Return the value at a place."""
    for key in place:
        value = value[key]
    return value
