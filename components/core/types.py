"""Constrained types of settings, whose errors say what is allowed and give an example."""

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

from berth.components.programs.lifetimes import DURATION, parse_duration

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?", re.ASCII)
_LEAST_MEMORY = 2**20
_MOST_GIB = 8192
"""Largest number of GiB that somebody likely means by a number without a unit."""

_DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_TIME_OF_GO = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) ([+-]\d{4}) \S+", re.ASCII)
_KMS_KEY = re.compile(
    r"projects/[-a-z0-9.:]+/locations/([-a-z0-9]+)/keyRings/[-\w]{1,63}/cryptoKeys/[-\w]{1,63}",
    re.ASCII,
)
_RESOURCES_OF_RAY = {
    "CPU": "write worker.cpu",
    "GPU": "write worker.rayGpus",
    "memory": "write worker.memory",
    "object_store_memory": "Ray takes its share of worker.memory",
}
# Kubernetes' syntax of labels, which Ray and KubeRay demand too (kuberay v1.6.2,
# ray-operator/controllers/ray/utils/validation.go, validateRayGroupLabels).
_LABEL_PREFIX = r"(?=[^/]{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/"
_LABEL_VALUE = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
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
    match = _TIME_OF_GO.fullmatch(value) if isinstance(value, str) else None
    if not match:
        return value
    day, time, zone = match.groups()
    return f"{day}T{time}{'Z' if zone == '+0000' else zone}"


Instant = Annotated[AwareDatetime, BeforeValidator(iso_time)]
"""Time with its zone, such as 2026-12-31T00:00:00Z."""


def parse_quantity(text: str) -> Decimal:
    """Return the number that a Kubernetes quantity stands for: cores for CPU, bytes for memory.

    Raises:
        ValueError: the text is not a quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a Kubernetes quantity; write {_quantity_like(text)}")
    number = Decimal(match[1])
    unit = match[2] or ""
    if unit == "m":
        return number / 1000
    return number * (_BINARY.get(unit) or _DECIMAL[unit])


def _quantity_like(text: str) -> str:
    """Return the quantity that a text likely means: `32G or 32Gi` for 32GB; else examples."""
    if cores := re.fullmatch(
        r"(\d+(?:\.\d+)?)\s*(c|v?cpus?|v?cores?)", text.strip(), re.ASCII | re.IGNORECASE
    ):
        return cores[1]
    likely = re.fullmatch(
        r"(\d+(?:[.,]\d+)?)\s*([kmgtp])(i?)(b|bytes?)?", text.strip(), re.ASCII | re.IGNORECASE
    )
    if not likely:
        return "for example 8, 500m or 64Gi"
    number = likely[1].replace(",", ".")
    unit = likely[2].upper()
    binary = f"{number}{unit}i"
    if likely[3]:
        return binary
    decimal = f"{number}{'k' if unit == 'K' else unit}"
    return f"{decimal} or {binary}"


def canonical_quantity(text: str) -> str:
    """Return a quantity as the API writes it: 500m for 0.5, 16Gi for 16384Mi, 1536Mi for 1.5Gi."""
    amount = parse_quantity(text)
    units = _BINARY if text.endswith("i") else _DECIMAL
    for unit, size in sorted(units.items(), key=lambda pair: -pair[1]):
        if amount >= size and amount % size == 0:
            return f"{int(amount / size)}{unit}"
    return f"{int(amount * 1000)}m" if amount % 1 else str(int(amount))


def number_to_text(value: Any) -> Any:
    """Return a number as text: YAML reads `cpu: 8` as a number, Kubernetes takes texts."""
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


def must_match(pattern: re.Pattern[str], problem: str, *, secret: bool = False) -> AfterValidator:
    """Return the validator of texts that match a pattern as a whole.

    Args:
        pattern: the pattern.
        problem: what the error says of another text, which stands before it.
        secret: whether the text may be secret, so that the error does not repeat it.
    """

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(problem if secret else f"{text!r} {problem}{foreign_letter(text)}")
        return text

    return AfterValidator(check)


def _check_memory(text: str) -> str:
    if parse_quantity(text) < _LEAST_MEMORY:
        meant = "for example 64Gi"
        if text.isdecimal():
            meant = f"{text}{'Gi' if int(text) <= _MOST_GIB else 'Mi'}"
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
    likely = re.sub(r"[^a-z0-9]+", "-", letters.lower()).lstrip("-0123456789").rstrip("-")
    return likely or "alice or team-a"


def checked_name(text: str) -> str:
    """Return a name as it is.

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
    """Return the region of a zone: us-central1 of us-central1-b."""
    return zone.rsplit("-", 1)[0]


def location_of_key(key: str) -> str:
    """Return the location of a key of Cloud KMS: us-central1, us, global."""
    match = _KMS_KEY.fullmatch(key)
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
    if text in _RESOURCES_OF_RAY:
        raise ValueError(f"{text!r} is not a resource of one's own: {_RESOURCES_OF_RAY[text]}")
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


Zone = Annotated[
    str,
    must_match(
        re.compile(r"[a-z]+(-[a-z]+)+\d+-[a-z]", re.ASCII),
        "is not a zone; write for example us-central1-b",
    ),
]
"""Zone of Google Cloud."""

Region = Annotated[
    str,
    must_match(
        re.compile(r"[a-z]+(-[a-z]+)+\d+", re.ASCII),
        "is not a region; write for example us-central1",
    ),
]
"""Region of Google Cloud."""

ProjectId = Annotated[
    str,
    must_match(
        re.compile(r"[a-z][-a-z0-9]{4,28}[a-z0-9]"),
        "is not a Google Cloud project id: 6 to 30 lowercase letters, digits and '-', beginning"
        " with a letter",
    ),
]
"""Id of a Google Cloud project."""

KmsKey = Annotated[
    str,
    must_match(
        _KMS_KEY,
        "is not a key of Cloud KMS; write for example"
        " projects/your-project/locations/us-central1/keyRings/berth/cryptoKeys/secrets",
    ),
]
"""Full name of a key of Cloud KMS."""

RayResource = Annotated[
    str,
    must_match(
        # The name stands in a shell's command line (kuberay v1.6.2,
        # ray-operator/controllers/ray/common/pod.go).
        re.compile(r"[A-Za-z][A-Za-z0-9._:-]*"),
        "is not a name for a Ray resource: begin with a letter and use letters, digits, '.', '_',"
        " ':' and '-', for example local-disk",
    ),
    AfterValidator(_check_ray_resource),
]
"""Name of a custom resource of Ray."""

RayLabelValue = Annotated[
    str,
    must_match(
        re.compile(_LABEL_VALUE), "is not a value of a label; write for example large or gen-2"
    ),
]
"""Value of a label of Ray's nodes, which pods have too."""

Name = Annotated[str, BeforeValidator(number_to_text), AfterValidator(checked_name)]
"""A name that Kubernetes and KubeRay accept, with room for what they add to it."""

OWN_ACCOUNT = "own"
"""Word for a service account that berth creates."""

NodeAccount = Annotated[
    str,
    must_match(
        re.compile(r"own|[-a-z0-9]+@[-a-z0-9.:]+"),
        "is not a service account; write its e-mail address: name@project.iam.gserviceaccount.com",
    ),
]
"""The e-mail address of a Google Cloud service account, or `own`."""

SecurityGroup = Annotated[
    str,
    must_match(
        # The only name that GKE takes
        # (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/google-groups-rbac).
        re.compile(r"gke-security-groups@([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z]{2,}"),
        "is not the group that GKE takes: its name is gke-security-groups, in your domain; write"
        " for example gke-security-groups@example.com",
    ),
]
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

RayLabel = Annotated[
    str,
    must_match(
        re.compile(rf"({_LABEL_PREFIX})?{_LABEL_VALUE}"),
        "is not a key of a label; write for example tier or example.com/tier",
    ),
    AfterValidator(_check_ray_label),
]
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

VariableName = Annotated[
    NonEmpty,
    must_match(
        re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*"),
        "is not the name of an environment variable: letters, digits, '_', '-' and '.', and no"
        " digit first",
    ),
]
"""The name of an environment variable, as every version of Kubernetes takes it."""

Document = Annotated[dict[NonEmpty, Any], AfterValidator(_plain)]
"""Settings of another program under that program's own keys."""
