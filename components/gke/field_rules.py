"""Values that Google's provider refuses before it sends anything, by the facts about each field.

Sources: the schemas of https://github.com/hashicorp/terraform-provider-google-beta at the commit
that provider_fields.json names, and the texts of helper/schema and helper/validation of
https://github.com/hashicorp/terraform-plugin-sdk.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from berth.components.gke.provider_fields import Field, ResourceFields, snake_case
from berth.components.plan.paths import is_unknown

_LONGEST_PREFIX = 31
_LONGEST_NAME = 40


@dataclass(frozen=True)
class FieldPlace:
    """Place of a value in a resource's inputs.

    Attributes:
        plain: path without indices, by which the facts are found.
        pulumi: path by Pulumi's names.
        terraform: path by Terraform's names, with an index for each block.
        examined: path as Pulumi's bridge shows it: it ends at a set, whose elements have no place.
        is_in_set: a set is around the value.
    """

    plain: str = ""
    pulumi: str = ""
    terraform: str = ""
    examined: str = ""
    is_in_set: bool = False

    def field(self, name: str, fact: Field) -> "FieldPlace":
        """Return the place of a field of this block."""
        return FieldPlace(
            _inside(self.plain, name),
            _inside(self.pulumi, name),
            _inside(self.terraform, fact.terraform or snake_case(name)),
            self.examined if self.is_in_set else _inside(self.examined, name),
            self.is_in_set,
        )

    def element(self, index: int, fact: Field) -> "FieldPlace":
        """Return the place of an element of this list or set, or of the one block."""
        is_in_set = self.is_in_set or fact.kind == "set"
        number = f"[{index}]" if fact.kind else ""
        return replace(
            self,
            pulumi=f"{self.pulumi}{number}",
            terraform=f"{self.terraform}.{index}",
            examined=self.examined if is_in_set else f"{self.examined}{number}",
            is_in_set=is_in_set,
        )


Name = Callable[[FieldPlace], str]
"""How a place is named in a text."""


def by_pulumi(place: FieldPlace) -> str:
    """Return the path of a place by Pulumi's names."""
    return place.pulumi


def by_terraform(place: FieldPlace) -> str:
    """Return the path of a place by Terraform's names."""
    return place.terraform


@dataclass(frozen=True)
class Refusal:
    """Value, or combination of values, that the provider refuses.

    Attributes:
        place: where it is.
        text: what is wrong, by the names of places.
        title: the provider's words for its kind; empty without any.
        is_of_group: the text is the same for each field of a group of fields.
    """

    place: FieldPlace
    text: Callable[[Name], str]
    title: str = ""
    is_of_group: bool = False

    @property
    def provider_text(self) -> str:
        """Return the provider's sentence about the value."""
        text = self.text(by_terraform)
        if self.is_of_group:
            text = f'"{self.place.terraform}": {text}'
        return f"{self.title}. {text}" if self.title else text

    @property
    def reason(self) -> str:
        """Problem in Pulumi's names."""
        text = self.text(by_pulumi)
        return f"{self.title}: {text}" if self.title else text


Refusals = Iterator[Refusal]
Problems = Iterator[tuple[str, str]]


def field_problems(inputs: dict[str, Any], facts: ResourceFields) -> list[tuple[str, str]]:
    """Return pairs of path and reason for values and combinations that the provider refuses.

    Args:
        inputs: inputs with the right names and types; parts may be unknown, which is never refused.
        facts: the fields of the resource's type.
    """
    problems = [(found.place.pulumi, found.reason) for found in refusals(inputs, facts)]
    return list(dict.fromkeys(problems))


def refusals(inputs: dict[str, Any], facts: ResourceFields) -> list[Refusal]:
    """Return what the provider refuses of a resource's inputs, of which parts may be unknown."""
    rules = _ResourceRules(facts, inputs)
    return [*rules.block(FieldPlace(), inputs), *rules.combinations()]


def value_problems(path: str, fact: Field, value: Any) -> Problems:
    """Yield what the provider refuses of a single value."""
    for refusal in _value(FieldPlace(path, path, path, path), fact, value):
        yield path, refusal.reason


def list_problems(path: str, fact: Field, values: list[Any]) -> Problems:
    """Yield what the provider refuses of a list as a whole, and of its plain elements."""
    for refusal in _list(FieldPlace(path, path, path, path), fact, values):
        yield refusal.place.pulumi, refusal.reason


class _ResourceRules:
    """Rules of one type of resource on one resource's inputs."""

    def __init__(self, facts: ResourceFields, inputs: dict[str, Any]) -> None:
        self._facts = facts
        self._inputs = inputs

    def block(self, place: FieldPlace, given: Mapping[str, Any]) -> Refusals:
        """Yield what is wrong in a block."""
        names = self._facts.blocks.get(place.plain, ())
        yield from _unknown_names(place, given, names)
        for name in names:
            value = given.get(name)
            fact = self._facts.fields[_inside(place.plain, name)]
            here = place.field(name, fact)
            if value is not None:
                yield from self._field(here, fact, value)
            elif fact.required:
                yield Refusal(here, _required(here), "Missing required argument")

    def _field(self, place: FieldPlace, fact: Field, value: Any) -> Refusals:
        takes_a_list = fact.kind in ("list", "set")
        if is_unknown(value):
            return
        if isinstance(value, list) is not takes_a_list:
            text = f"expected {'a list' if takes_a_list else 'no list'}, got {value!r}"
            yield Refusal(place, lambda _: text)
        elif isinstance(value, list):
            yield from _list(place, fact, value)
            for index, item in enumerate(value):
                if isinstance(item, dict):
                    yield from self.block(place.element(index, fact), item)
        elif not isinstance(value, dict):
            yield from _value(place, fact, value)
        elif place.plain in self._facts.blocks:
            yield from self.block(place.element(0, fact), value)

    def combinations(self) -> Refusals:
        """Yield combinations of fields that exclude or need each other."""
        for path, fact in self._facts.fields.items():
            if fact.conflicts and self._given(path):
                for other in filter(self._given, fact.conflicts):
                    yield _conflict(self._place(path), self._place(other))
            if fact.one_of and self._is_open(path):
                yield from _one_of(self._places(fact.one_of), self._given)
            if fact.some_of and self._is_open(path) and not any(map(self._given, fact.some_of)):
                yield from _missing(self._places(fact.some_of), "Missing required argument")

    def _is_open(self, path: str) -> bool:
        """Whether the block around a field is there."""
        block = path.rpartition(".")[0]
        return not block or self._given(block)

    def _places(self, paths: Sequence[str]) -> list[FieldPlace]:
        return sorted(map(self._place, paths), key=by_terraform)

    def _place(self, path: str) -> FieldPlace:
        """Return the place of a path without indices, in the first element of each list."""
        place = FieldPlace()
        *blocks, last = path.split(".")
        for name in blocks:
            fact = self._facts.fields[_inside(place.plain, name)]
            place = place.field(name, fact).element(0, fact)
        return place.field(last, self._facts.fields[path])

    def _given(self, path: str) -> bool:
        found: Any = self._inputs
        for name in path.split("."):
            while isinstance(found, list):
                found = found[0] if found else None
            if not isinstance(found, dict):
                return False
            found = found.get(name)
        return found is not None and found != []


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _unknown_names(place: FieldPlace, given: Mapping[str, Any], names: Sequence[str]) -> Refusals:
    for name in given:
        if name not in names and not name.startswith("__"):
            yield Refusal(place.field(name, Field()), lambda _: "Invalid or unknown key")


def _required(place: FieldPlace) -> Callable[[Name], str]:
    return lambda name: f'The argument "{name(place)}" is required, but no definition was found.'


def _conflict(place: FieldPlace, other: FieldPlace) -> Refusal:
    return Refusal(
        place,
        lambda name: f'"{name(place)}": conflicts with {name(other)}',
        "Conflicting configuration arguments",
    )


def _one_of(places: Sequence[FieldPlace], is_given: Callable[[str], bool]) -> Refusals:
    title = "Invalid combination of arguments"
    given = [place for place in places if is_given(place.plain)]
    if not given:
        yield from _missing(places, title)
    elif len(given) > 1:
        for place in places:
            yield Refusal(
                place,
                lambda name: (
                    f"only one of `{_listed(name, places)}` can be specified, but"
                    f" `{_listed(name, given)}` were specified."
                ),
                title,
                is_of_group=True,
            )


def _missing(places: Sequence[FieldPlace], title: str) -> Refusals:
    for place in places:
        yield Refusal(
            place,
            lambda name: f"one of `{_listed(name, places)}` must be specified",
            title,
            is_of_group=True,
        )


def _listed(name: Name, places: Sequence[FieldPlace]) -> str:
    return ",".join(map(name, places))


def _list(place: FieldPlace, fact: Field, values: list[Any]) -> Refusals:
    if fact.items and len(values) > fact.items:
        yield Refusal(
            place,
            lambda name: (
                f"Attribute {name(place)} supports {fact.items} item maximum, but config has"
                f" {len(values)} declared."
            ),
            "Too many list items",
        )
    for index, value in enumerate(values):
        if fact.elements and isinstance(value, str) and not is_unknown(value):
            yield from _choice(place.element(index, fact), fact.elements, value)


def _choice(place: FieldPlace, allowed: Sequence[str], value: Any) -> Refusals:
    if value not in allowed:
        choices = " ".join(f'"{choice}"' for choice in allowed)
        yield Refusal(
            place, lambda name: f"expected {name(place)} to be one of [{choices}], got {value}"
        )


def _value(place: FieldPlace, fact: Field, value: Any) -> Refusals:
    if fact.allowed:
        yield from _choice(place, fact.allowed, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _bounds(place, fact, value)
    check = FORMATS.get(fact.format.partition("(")[0])
    if check is not None and isinstance(value, str):
        yield from (Refusal(place, text) for text in check(place, value, fact.format))


def _bounds(place: FieldPlace, fact: Field, value: float) -> Refusals:
    """Yield a text for a number out of bounds, of which there may be one or two."""
    is_low = fact.least is not None and value < fact.least
    is_high = fact.most is not None and value > fact.most
    if not is_low and not is_high:
        return
    if fact.most is None:
        bound = f"at least ({fact.least:g})"
    elif fact.least is None:
        bound = f"at most ({fact.most:g})"
    else:
        bound = f"in the range ({fact.least:g} - {fact.most:g})"
    yield Refusal(place, lambda name: f"expected {name(place)} to be {bound}, got {value:g}")


Texts = Iterator[Callable[[Name], str]]


def _name_of_compute(place: FieldPlace, value: str, _: str) -> Texts:
    pattern = "^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"
    if not re.search(pattern, value):
        yield lambda name: f'"{name(place)}" ("{value}") doesn\'t match regexp "{pattern}"'


def _custom(place: FieldPlace, value: str, _: str) -> Texts:
    """Check of the provider's own code for a cluster's name, and for a node pool's prefix."""
    if place.plain == "namePrefix":
        if len(value) > _LONGEST_PREFIX:
            limits = f"{_LONGEST_PREFIX} characters, name is limited to {_LONGEST_NAME}"
            yield lambda name: f'"{name(place)}" cannot be longer than {limits}'
        return
    if len(value) > _LONGEST_NAME:
        yield lambda name: f'"{name(place)}" cannot be longer than {_LONGEST_NAME} characters'
    if not re.fullmatch(r"[a-z0-9-]*", value):
        letters = "lowercase letters, numbers and hyphens"
        yield lambda name: f'"{name(place)}" can only contain {letters}'
    if not re.match(r"[a-z]", value):
        yield lambda name: f'"{name(place)}" must start with a letter'
    if not re.search(r"[a-z0-9]$", value):
        yield lambda name: f'"{name(place)}" must end with a number or a letter'


def _range(value: str) -> str:
    """Return the range of addresses that a text with a prefix length is in; empty for others."""
    try:
        return str(ipaddress.ip_interface(value).network) if "/" in value else ""
    except ValueError:
        return ""


def _any_range(place: FieldPlace, value: str, _: str) -> Texts:
    if not _range(value):
        error = f"invalid CIDR address: {value}"
        yield lambda name: f'"{name(place)}" is not a valid IP CIDR range: {error}'


def _network(place: FieldPlace, value: str, _: str) -> Texts:
    network = _range(value)
    if not network:
        error = f"got: {value} with err: invalid CIDR address: {value}"
        yield lambda name: f"expected {name(place)} to contain a valid Value, {error}"
    elif network != value:
        error = f"expected {network}, got {value}"
        yield lambda name: f"expected {name(place)} to contain a valid network Value, {error}"


def _date(_: FieldPlace, value: str, __: str) -> Texts:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)", value):
        error = f'cannot parse "{value}" as "2006"'
        yield lambda _: f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": {error}'


def _time(place: FieldPlace, value: str, _: str) -> Texts:
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value):
        yield lambda name: f'"{name(place)}" ("{value}") must be in the format HH:mm (RFC3339)'


def _name_of_length(place: FieldPlace, value: str, check: str) -> Texts:
    """Check such as `ValidateRFC1035Name(6,30)`: shortest and longest length are in brackets."""
    least, most = map(int, re.findall(r"\d+", check.partition("(")[2]))
    pattern = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
    if not least <= len(value) <= most:
        length = f"must be between {least} and {most} characters long"
        yield lambda name: f'"{name(place)}" ("{value}") {length}'
    if not re.search(pattern, value):
        yield lambda name: f'"{name(place)}" ("{value}") must match regex "{pattern}"'


_PRINCIPAL = ".+:.+|projectOwners|projectReaders|projectWriters|allUsers|allAuthenticatedUsers"
_BINDING = "https://cloud.google.com/billing/docs/reference/rest/v1/Policy#Binding"


def _principal(place: FieldPlace, value: str, _: str) -> Texts:
    if value.startswith("deleted"):
        why = "Terraform does not support IAM members for deleted principals"
        yield lambda name: f"invalid value for {name(place)} ({why})"
    elif not re.search(_PRINCIPAL, value):
        why = f"IAM members must have one of the values outlined here: {_BINDING}"
        yield lambda name: f'invalid value "{value}" for {name(place)} ({why})'


FORMATS: Mapping[str, Callable[[FieldPlace, str, str], Texts]] = {
    "custom": _custom,
    "IsCIDRNetwork": _network,
    "ValidateGCEName": _name_of_compute,
    "ValidateIpCidrRange": _any_range,
    "ValidateRFC1035Name": _name_of_length,
    "ValidateRFC3339Date": _date,
    "ValidateRFC3339Time": _time,
    "validateIAMMember": _principal,
}
"""Checks of a value by the provider's name of them, which the check gets with its arguments; other
checks are left to the API."""
