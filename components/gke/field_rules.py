"""Values that Google's provider refuses before it sends anything, by the facts about each field.

Sources: the schemas of https://github.com/hashicorp/terraform-provider-google-beta at the commit
that provider_fields.json names, and the texts of helper/schema and helper/validation of
https://github.com/hashicorp/terraform-plugin-sdk.
"""

import difflib
import ipaddress
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from berth.components.gke.provider_fields import Field, ResourceFields
from berth.components.plan.paths import is_unknown

_LONGEST_PREFIX = 31

Problems = Iterator[tuple[str, str]]


def field_problems(inputs: dict[str, Any], facts: ResourceFields) -> list[tuple[str, str]]:
    """Return pairs of path and reason for values and combinations that the provider refuses.

    Args:
        inputs: inputs with the right names and types; parts may be unknown, which is never refused.
        facts: the fields of the resource's type.
    """
    return [*_block("", "", inputs, facts), *_combinations(inputs, facts)]


def _block(path: str, plain: str, given: dict[str, Any], facts: ResourceFields) -> Problems:
    names = facts.blocks.get(plain, ())
    yield from _unknown_names(path, given, names)
    for name in names:
        value = given.get(name)
        here = _inside(path, name)
        if value is not None:
            yield from _field(here, _inside(plain, name), value, facts)
        elif facts.fields[_inside(plain, name)].required:
            reason = f'The argument "{here}" is required, but no definition was found.'
            yield path, f"Missing required argument: {reason}"


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _unknown_names(path: str, given: dict[str, Any], names: Sequence[str]) -> Problems:
    for name in given:
        if name in names or name.startswith("__"):
            continue
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        # The engine looks a path's value up in what the provider knows, so that an unknown name
        # stands in the reason.
        yield "", f"{_inside(path, name)}: the provider has no such input{hint}"


def _field(path: str, plain: str, value: Any, facts: ResourceFields) -> Problems:
    """Yield what the provider refuses of a field's value."""
    fact = facts.fields[plain]
    takes_a_list = fact.kind in ("list", "set")
    if is_unknown(value):
        return
    if isinstance(value, list) is not takes_a_list:
        yield path, f"expected {'a list' if takes_a_list else 'no list'}, got {value!r}"
    elif isinstance(value, list):
        yield from _list(path, plain, fact, value, facts)
    elif not isinstance(value, dict):
        yield from value_problems(path, fact, value)
    elif plain in facts.blocks:
        yield from _block(path, plain, value, facts)


def _list(path: str, plain: str, fact: Field, values: list[Any], facts: ResourceFields) -> Problems:
    yield from list_problems(path, fact, values)
    for index, value in enumerate(values):
        if isinstance(value, dict):
            yield from _block(f"{path}[{index}]", plain, value, facts)


def list_problems(path: str, fact: Field, values: list[Any]) -> Problems:
    """Yield what the provider refuses of a list as a whole, and of its plain elements."""
    if fact.items and len(values) > fact.items:
        bound = f"Attribute {path} supports {fact.items} item maximum"
        yield path, f"Too many list items: {bound}, but config has {len(values)} declared."
    for index, value in enumerate(values):
        if fact.elements and isinstance(value, str) and not _is_one_of(value, fact.elements):
            yield (
                f"{path}[{index}]",
                f"expected {path}[{index}] to be one of {list(fact.elements)}, got {value}",
            )


def _is_one_of(value: str, allowed: Collection[str]) -> bool:
    return value in allowed or is_unknown(value)


def value_problems(path: str, fact: Field, value: Any) -> Problems:
    """Yield what the provider refuses of a single value."""
    if fact.allowed and value not in fact.allowed:
        yield path, f"expected {path} to be one of {list(fact.allowed)}, got {value}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if fact.least is not None and value < fact.least:
            yield path, f"expected {path} to be at least ({fact.least:g}), got {value:g}"
        if fact.most is not None and value > fact.most:
            yield path, f"expected {path} to be at most ({fact.most:g}), got {value:g}"
    if fact.format in FORMATS and isinstance(value, str) and not FORMATS[fact.format](path, value):
        yield path, f"{value!r} is not a valid {path}: {fact.format}"


def _combinations(inputs: dict[str, Any], facts: ResourceFields) -> Problems:
    for path, fact in facts.fields.items():
        if fact.conflicts and _given(inputs, path):
            for other in fact.conflicts:
                if _given(inputs, other):
                    yield (
                        path,
                        f'Conflicting configuration arguments: "{path}": conflicts with {other}',
                    )
        if fact.one_of and path == fact.one_of[0]:
            yield from _one_of(inputs, path, fact.one_of)
        if fact.some_of and path == fact.some_of[0]:
            yield from _some_of(inputs, path, fact.some_of)


def _some_of(inputs: dict[str, Any], path: str, paths: tuple[str, ...]) -> Problems:
    block = path.rpartition(".")[0]
    if _given(inputs, block) and not any(_given(inputs, other) for other in paths):
        yield block, f"Missing required argument: one of `{','.join(paths)}` must be specified"


def _one_of(inputs: dict[str, Any], path: str, paths: tuple[str, ...]) -> Problems:
    given = [other for other in paths if _given(inputs, other)]
    block = path.rpartition(".")[0]
    if block and not _given(inputs, block):
        return
    if not given:
        reason = f"one of `{','.join(paths)}` must be specified"
        yield block, f"Invalid combination of arguments: {reason}"
    elif len(given) > 1:
        reason = f"only one of `{','.join(paths)}` can be specified, but `{','.join(given)}` were"
        for other in given:
            yield other, f"Invalid combination of arguments: {reason}"


def _given(inputs: Any, path: str) -> bool:
    for name in path.split("."):
        while isinstance(inputs, list):
            inputs = inputs[0] if inputs else None
        if not isinstance(inputs, dict):
            return False
        inputs = inputs.get(name)
    return inputs is not None and inputs != []


def _matches(pattern: str) -> Callable[[str, str], bool]:
    return lambda _, value: re.fullmatch(pattern, value) is not None


def _custom(path: str, value: str) -> bool:
    """The provider's own code for a cluster's name, and for the length of a node pool's prefix."""
    if path == "namePrefix":
        return len(value) <= _LONGEST_PREFIX
    return re.fullmatch(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", value) is not None


def _network(_: str, value: str) -> bool:
    try:
        return bool(ipaddress.ip_network(value))
    except ValueError:
        return False


FORMATS: dict[str, Callable[[str, str], bool]] = {
    "custom": _custom,
    "IsCIDRNetwork(0,32)": _network,
    "ValidateGCEName": _matches(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"),
    "ValidateIpCidrRange": _network,
    "ValidateRFC3339Date": _matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)"),
    "ValidateRFC3339Time": _matches(r"([01]\d|2[0-3]):[0-5]\d"),
    "ValidateRFC1035Name(2,63)": _matches(r"[a-z][-a-z0-9]{0,61}[a-z0-9]"),
}
"""Checks of values by the provider's name of them; others are left to the API."""
