"""Constrained types, named once. Each one's error says what is allowed and gives an example."""

import ipaddress
import re
import unicodedata
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from berth.components.core import fast_yaml
from berth.components.programs.lifetimes import DURATION, parse_duration

_FORMS: dict[str, dict[str, Any]] = fast_yaml.load_beside(__file__, "forms.yaml")
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?", re.ASCII)
_LEAST_MEMORY = 2**20
_MOST_GIB = 8192
"""Largest number of GiB that somebody likely means by a number without a unit."""

_DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_OF_GO = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) ([+-]\d{4}) \S+", re.ASCII)
# Prefixes of labels by which KubeRay, Kubernetes and berth find pods.
_LABELS_OF_OTHERS = ("berth", "ray.io", "kubernetes.io", "k8s.io")

# A berth's namespace is "berth-" + the name (63 at most), its RayCluster the name itself, and
# KubeRay refuses a RayCluster name over 53 characters (kuberay v1.6.2,
# ray-operator/controllers/ray/utils/validation.go).
NAME_LIMIT = 50


def iso_time(value: Any) -> Any:
    """Return Pulumi's text of a time in YAML, `2026-12-31 00:00:00 +0000 UTC`, as ISO 8601 has it.

    Pulumi passes times so, and writes them so into a stack's file when it adds a line of its own.
    Anything else is returned as it is.
    """
    found = _OF_GO.fullmatch(value) if isinstance(value, str) else None
    return f"{found[1]}T{found[2]}{'Z' if found[3] == '+0000' else found[3]}" if found else value


Instant = Annotated[AwareDatetime, BeforeValidator(iso_time)]
"""Time with its zone, such as 2026-12-31T00:00:00Z."""


def parse_quantity(text: str) -> Decimal:
    """The number that a Kubernetes quantity stands for: cores for CPU, bytes for memory."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a Kubernetes quantity; write {_quantity_like(text)}")
    number, unit = Decimal(match[1]), match[2] or ""
    if unit == "m":
        return number / 1000
    return number * (_BINARY.get(unit) or _DECIMAL[unit])


def _quantity_like(text: str) -> str:
    """Return the quantity that a text likely means: `32G or 32Gi` for 32GB; else examples."""
    if cores := re.fullmatch(
        r"(\d+(?:\.\d+)?)\s*(c|v?cpus?|v?cores?)", text.strip(), re.ASCII | re.IGNORECASE
    ):
        return cores[1]
    found = re.fullmatch(
        r"(\d+(?:[.,]\d+)?)\s*([kmgtp])(i?)(b|bytes?)?", text.strip(), re.ASCII | re.IGNORECASE
    )
    if not found:
        return "for example 8, 500m or 64Gi"
    number, unit = found[1].replace(",", "."), found[2].upper()
    binary = f"{number}{unit}i"
    return binary if found[3] else f"{number}{'k' if unit == 'K' else unit} or {binary}"


def canonical_quantity(text: str) -> str:
    """Return a quantity as the API writes it: 500m for 0.5, 16Gi for 16384Mi, 1536Mi for 1.5Gi."""
    amount = parse_quantity(text)
    units = _BINARY if text.endswith("i") else _DECIMAL
    for unit, size in sorted(units.items(), key=lambda pair: -pair[1]):
        if amount >= size and amount % size == 0:
            return f"{int(amount / size)}{unit}"
    return f"{int(amount * 1000)}m" if amount % 1 else str(int(amount))


def number_to_text(value: Any) -> Any:
    """YAML reads `cpu: 8` as a number; Kubernetes takes quantities as text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return value


def _check_quantity(text: str) -> str:
    if parse_quantity(text) == 0:
        raise ValueError("must be more than 0")
    return text


def written_as(pattern: re.Pattern[str], problem: str, *, secret: bool = False) -> AfterValidator:
    """Return the check of a whole text by a pattern; `problem` follows the text in the error.

    A text that may be `secret` is not repeated.
    """

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(problem if secret else f"{text!r} {problem}{foreign_letter(text)}")
        return text

    return AfterValidator(check)


def _of_form(name: str) -> AfterValidator:
    return written_as(re.compile(_FORMS[name]["form"], re.ASCII), _FORMS[name]["says"])


def _check_memory(text: str) -> str:
    if parse_quantity(text) < _LEAST_MEMORY:
        meant = (
            f"{text}{'Gi' if int(text) <= _MOST_GIB else 'Mi'}"
            if text.isdecimal()
            else "for example 64Gi"
        )
        raise ValueError(
            f"{text!r} is less than 1Mi, and a number without a unit counts bytes; write {meant}"
        )
    return text


def _check_duration(text: str) -> str:
    parse_duration(text)
    return text


def foreign_letter(text: str) -> str:
    """Return the name of a text's first letter that may look like one of ASCII; "" for none."""
    foreign = next((letter for letter in text if not letter.isascii()), "")
    return f"; {foreign!r} is {unicodedata.name(foreign, 'a character')}" if foreign else ""


def _name_like(text: str) -> str:
    """Return the name that a text likely means, `anna-maria` for anna.maria; else examples."""
    plain = unicodedata.normalize("NFKD", text.partition("@")[0])
    letters = "".join(letter for letter in plain if not unicodedata.combining(letter))
    if foreign := foreign_letter(letters):
        return f"alice or team-a{foreign}"
    found = re.sub(r"[^a-z0-9]+", "-", letters.lower()).lstrip("-0123456789").rstrip("-")
    return found or "alice or team-a"


def checked_name(text: str) -> str:
    """The name itself.

    Raises:
        ValueError: Kubernetes or KubeRay would refuse it.
    """
    if len(text) > NAME_LIMIT:
        raise ValueError(
            f"{text!r} has {len(text)} characters; Kubernetes and KubeRay leave room for"
            f" {NAME_LIMIT}"
        )
    if not _DNS_LABEL.fullmatch(text):
        raise ValueError(
            f"{text!r} is a name that Kubernetes would refuse: use lowercase letters, digits and"
            " '-', begin with a letter and end with a letter or digit, for example"
            f" {_name_like(text)}"
        )
    return text


def region_of(zone: str) -> str:
    """The region of a zone: us-central1 of us-central1-b."""
    return zone.rsplit("-", 1)[0]


def location_of_key(key: str) -> str:
    """Return the location of a key of Cloud KMS: us-central1, us, global."""
    match = re.fullmatch(_FORMS["kms_key"]["form"], key, re.ASCII)
    return match[1] if match else ""


def _check_cidr(text: str, example: str = "203.0.113.0/24") -> str:
    try:
        ipaddress.IPv4Network(text)
    except ValueError as error:
        raise ValueError(
            f"{text!r} is not an IPv4 range ({error}); write for example {example}"
        ) from None
    return text


def _check_range(text: str) -> str:
    if not ipaddress.IPv4Network(_check_cidr(text, "10.0.0.0/20")).is_private:
        raise ValueError(
            f"{text!r} is not a private range; take one from 10.0.0.0/8, 172.16.0.0/12 or"
            " 192.168.0.0/16"
        )
    return text


def _check_ray_resource(text: str) -> str:
    if text in (words := _FORMS["ray_resource"]["taken"]):
        raise ValueError(f"{text!r} is not a resource of one's own: {words[text]}")
    return text


def _check_ray_label(text: str) -> str:
    prefix, _, _ = text.rpartition("/")
    if any(prefix == other or prefix.endswith(f".{other}") for other in _LABELS_OF_OTHERS):
        raise ValueError(
            f"{text!r} would change how pods are found, since labels of {prefix}/ are not yours;"
            " rename it"
        )
    return text


def _plain(value: Any) -> Any:
    """Return a YAML value as JSON has it: numbers without their spelling, and no dates."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    for number in (int, float):
        if isinstance(value, number):
            return number(value)
    raise ValueError(f"{str(value)!r} is neither text nor number; put it in quotes")


# Their forms stand in forms.yaml, each with an example.
Zone = Annotated[str, _of_form("zone")]
Region = Annotated[str, _of_form("region")]
ProjectId = Annotated[str, _of_form("project")]
KmsKey = Annotated[str, _of_form("kms_key")]
RayResource = Annotated[str, _of_form("ray_resource"), AfterValidator(_check_ray_resource)]
RayLabelValue = Annotated[str, _of_form("ray_label_value")]

Name = Annotated[str, BeforeValidator(number_to_text), AfterValidator(checked_name)]
"""A name that Kubernetes and KubeRay accept, with room for what they add to it."""

OWN_ACCOUNT = "own"
"""Word for a service account that berth creates."""

NodeAccount = Annotated[str, _of_form("node_account")]
"""The e-mail address of a Google Cloud service account, or `own`."""

SecurityGroup = Annotated[str, _of_form("security_group")]
"""The Google group whose member groups GKE knows: gke-security-groups@DOMAIN."""

IpRange = Annotated[str, AfterValidator(_check_range)]
"""A private IPv4 range in CIDR notation."""

Cidr = Annotated[str, AfterValidator(_check_cidr)]
"""Any IPv4 range in CIDR notation."""

Quantity = Annotated[
    str,
    BeforeValidator(number_to_text),
    AfterValidator(_check_quantity),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": f"^{_QUANTITY.pattern}$"}, {"type": "number"}]}
    ),
]
"""A Kubernetes quantity as text: cores (8, 500m) or bytes (64Gi)."""

Memory = Annotated[Quantity, AfterValidator(_check_memory)]
"""An amount of memory in bytes, 1Mi or more: 64Gi."""

RayLabel = Annotated[str, _of_form("ray_label"), AfterValidator(_check_ray_label)]
"""A key of a label of Ray's nodes, which pods have too."""

Duration = Annotated[
    str,
    BeforeValidator(number_to_text),
    AfterValidator(_check_duration),
    Field(json_schema_extra={"pattern": f"^{DURATION.pattern}$"}),
]
"""A time span such as 90s, 10m, 2h or 7d."""

NonEmpty = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""Text that is not blank."""

VariableName = Annotated[NonEmpty, _of_form("variable")]
"""The name of an environment variable, as every version of Kubernetes takes it."""

Document = Annotated[dict[NonEmpty, Any], AfterValidator(_plain)]
"""Settings of another program under that program's own keys."""
