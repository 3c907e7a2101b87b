"""Patch of a pod template: its form, and how it is merged into the template that berth makes.

It is a JSON merge patch (RFC 7386), but for lists of named entries, such as containers, which merge
entry by entry, and tolerations, which are added. The types of its fields are those of the
Kubernetes client.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from operator import itemgetter
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import InitErrorDetails, ValidationError

from berth.components.core import fast_yaml
from berth.components.core.manifest import Manifest
from berth.components.core.merge import REMOVES, merged
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import SettingPath
from berth.components.core.types import parse_quantity
from berth.components.hardware.names import VISIBLE_DEVICES
from berth.components.isolation import DEFAULT_LIMIT, LONGEST_GRACE, RESTRICTED_VOLUMES

REFUSALS: dict[str, Any] = fast_yaml.load_beside(__file__, "pod_template_refusals.yaml")
"""Words for what no patch may have, by kind."""

_WORDS: dict[str, str] = REFUSALS["words"]

_HARMLESS: tuple[Any, ...] = (False, 0, "", {}, [])
"""Values that ask for nothing."""

_SIZES = ("cpu", "memory", "ephemeral-storage", "hugepages-")

MERGED: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    **dict.fromkeys(
        ("containers", "initContainers", "volumes", "env", "imagePullSecrets"), itemgetter("name")
    ),
    "volumeMounts": itemgetter("mountPath"),
    "ports": lambda port: (port["containerPort"], port.get("protocol", "TCP")),
}
"""Lists of a pod whose entries merge, with what tells the entries apart."""

_OWN: Mapping[str, Mapping[str, str]] = {
    "template": {"metadata": "metadata", "spec": "V1PodSpec"},
    "metadata": {
        **dict.fromkeys(("annotations", "labels"), "Dict[str, str]"),
        **dict.fromkeys(("name", "namespace"), "str"),
        "finalizers": "List[str]",
    },
}
"""Fields of a template of KubeRay, which has less than the client's."""

_VALUES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "is not text; put it in quotes"),
    "int": ((int,), "is not a whole number"),
    "bool": ((bool,), "is neither true nor false"),
    "object": ((int, str), "is neither a whole number nor text"),
}
"""Types of values by the client's names; `object` is a port by number or by name."""

_NEVER_EMPTY = (("metadata",), ("spec",), ("spec", "containers"))
_QUANTITIES = ("limits", "requests", "sizeLimit", "divisor")


def key_of(field: str) -> str:
    """Return the key of entries by which a list merges."""
    return {"volumeMounts": "mountPath", "ports": "containerPort"}.get(field, "name")


@cache
def _fields(kind: str) -> Mapping[str, str]:
    if kind in _OWN:
        return _OWN[kind]
    from kubernetes.client import models  # noqa: PLC0415 - takes half a second, and few stacks have patches

    model = getattr(models, kind)
    return {name: model.openapi_types[attribute] for attribute, name in model.attribute_map.items()}


def problems(
    value: Any, kind: str = "template", path: SettingPath = ()
) -> Iterator[tuple[SettingPath, str]]:
    """Yield what is wrong with a part of a pod template; quantities in it become text."""
    if value is None:
        if path in _NEVER_EMPTY:
            yield path, "is empty; take it out"
    elif message := _refusal(path, value):
        yield path, message
    elif kind in _VALUES:
        yield from _of_value(value, kind, path)
    elif kind.startswith("List["):
        yield from _of_list(value, kind[len("List[") : -1], path)
    elif not isinstance(value, dict):
        yield path, f"{value!r} is not a mapping; write its keys on lines of their own"
    else:
        yield from _of_mapping(value, kind, path)


def _of_mapping(
    value: dict[str, Any], kind: str, path: SettingPath
) -> Iterator[tuple[SettingPath, str]]:
    any_key = re.fullmatch(r"Dict\[str, (.*)\]", kind)
    known = {} if any_key else _fields(kind)
    for key, inner in list(value.items()):
        field = any_key[1] if any_key else known.get(key)
        if field is None:
            # A field that no template has may still be one that berth refuses by name.
            message = (
                _refusal((*path, key), inner)
                or f"unknown field {key!r} of a pod{did_you_mean(key, known)}"
            )
            yield (*path, key), message
            continue
        if isinstance(inner, int) and not isinstance(inner, bool) and _is_quantity((*path, key)):
            value[key] = str(inner)
        yield from problems(value[key], field, (*path, key))


def _of_list(value: Any, kind: str, path: SettingPath) -> Iterator[tuple[SettingPath, str]]:
    if not isinstance(value, list):
        yield path, f"{value!r} is not a list; begin each entry with `- `"
        return
    field, seen = str(path[-1]), set[str]()
    key = key_of(field)
    for number, entry in enumerate(value):
        where = (*path, number)
        if entry is None:
            yield where, "is empty; take it out"
            continue
        directive = entry.pop(REMOVES, None) if isinstance(entry, dict) else None
        if directive not in (None, "delete"):
            yield (
                (*where, REMOVES),
                "is not a directive that berth has; write `$patch: delete`, or leave it out",
            )
        yield from problems(entry, kind, where)
        if not isinstance(entry, dict) or field not in MERGED:
            continue
        if directive:
            entry[REMOVES] = directive
        if entry.get(key) is None:
            yield where, f"needs `{key}`, by which it is merged with other entries"
        elif (identity := repr(MERGED[field](entry))) in seen:
            yield where, f"has the `{key}` of an entry before it, {entry[key]!r}; write one of them"
        else:
            seen.add(identity)


def _of_value(value: Any, kind: str, path: SettingPath) -> Iterator[tuple[SettingPath, str]]:
    types, words = _VALUES[kind]
    if not isinstance(value, types) or (kind != "bool" and isinstance(value, bool)):
        yield path, f"{value!r} {words}"
    elif _is_quantity(path):
        try:
            parse_quantity(str(value))
        except ValueError as error:
            yield path, str(error)


def _is_quantity(path: SettingPath) -> bool:
    return path[-1] in _QUANTITIES or (len(path) > 1 and path[-2] in _QUANTITIES)


def _refusal(path: SettingPath, value: Any) -> str:
    """Return why a patch may not have a value at a path; "" for what it may have."""
    if not path or isinstance(path[-1], int):
        return ""
    name, last = _name(path), str(path[-1])
    if words := REFUSALS["fields"].get(name):
        return "" if value in _HARMLESS else f"is not for a patch: {words}"
    return _of_key(name.removesuffix(f".{last}"), last) or _of_named(name, value)


def _of_key(parent: str, key: str) -> str:
    if parent == "metadata.labels" and key.startswith(tuple(REFUSALS["labels"])):
        return str(_WORDS["label"])
    if parent == "metadata.annotations":
        words = next(
            (words for prefix, words in REFUSALS["annotations"].items() if key.startswith(prefix)),
            "",
        )
        return f"is not for a patch: {words}" if words else ""
    if parent == "spec.volumes" and key not in {"name", *RESTRICTED_VOLUMES}:
        return str(_WORDS["volume"])
    if parent in (
        "container.resources.limits",
        "container.resources.requests",
    ) and not key.startswith(_SIZES):
        return str(_WORDS["device"])
    return ""


def _of_named(name: str, value: Any) -> str:
    if name.endswith(("seccompProfile.type", "appArmorProfile.type")) and value == "Unconfined":
        return str(_WORDS["unconfined"])
    if (
        name == "spec.terminationGracePeriodSeconds"
        and isinstance(value, int)
        and value > LONGEST_GRACE
    ):
        return str(_WORDS["grace"].format(longest=LONGEST_GRACE))
    if name.endswith(("httpGet.host", "tcpSocket.host")) and value:
        return str(_WORDS["probe"])
    if name == "container.env.name" and value in REFUSALS["variables"]:
        return f"{value} is not for a patch: {REFUSALS['variables'][value]}"
    taken = REFUSALS["taken"].get(name, {}).get(str(value))
    return f"{value!r} is taken: {taken}; take another name" if taken else ""


def _name(path: SettingPath) -> str:
    parts = [str(part) for part in path if not isinstance(part, int)]
    if parts[:2] in (["spec", "containers"], ["spec", "initContainers"]) and len(path) > len(parts):
        parts = ["container", *parts[2:]]
    return ".".join(parts)


_CONTAINERS = ("initContainers", "containers")


def _checked(patch: Manifest) -> Manifest:
    """Return a patch with quantities as text.

    Raises:
        ValidationError: the patch has fields that a pod lacks, or that are berth's in every pod.
    """
    patch = copy.deepcopy(patch)
    if wrong := list(problems(patch)):
        details = [
            InitErrorDetails(
                type="value_error", loc=path, input=None, ctx={"error": ValueError(message)}
            )
            for path, message in wrong
        ]
        raise ValidationError.from_exception_data("podTemplate", details)
    return patch


PodTemplate = Annotated[
    dict[str, Any],
    AfterValidator(_checked),
    WithJsonSchema({"type": "object", "additionalProperties": True}),
]
"""Patch of a pod template: `metadata` and `spec` as in Kubernetes."""


def over(below: Manifest, above: Manifest) -> Manifest:
    """Return one patch for two, of which `above` wins; removals stay, for the template below."""
    return merged(below, above, by_name=MERGED)


def patched(template: Manifest, patch: Manifest) -> Manifest:
    """Return a pod template with a patch merged into it.

    Tolerations are added, though Kubernetes merges them as one value: the pods of a pool with
    taints need berth's. A container that the patch adds sees no GPUs.
    """
    if not patch:
        return template
    result = merged(template, copy.deepcopy(patch), by_name=MERGED, removes=True)
    before = {
        container["name"] for kind in _CONTAINERS for container in template["spec"].get(kind) or []
    }
    for kind in _CONTAINERS:
        for container in result["spec"].get(kind) or []:
            if container["name"] not in before:
                _limit(container)
                # NVIDIA's runtime reads a missing value as "all".
                container["env"] = [
                    *(container.get("env") or []),
                    {"name": VISIBLE_DEVICES, "value": "void"},
                ]
    own = template["spec"].get("tolerations") or []
    if added := (patch.get("spec") or {}).get("tolerations"):
        result["spec"]["tolerations"] = [*own, *(entry for entry in added if entry not in own)]
    return result


def _limit(container: Manifest) -> None:
    """Give a container limits where its requests are more than the limits of the LimitRange."""
    requests = (container.get("resources") or {}).get("requests") or {}
    for resource, most in DEFAULT_LIMIT.items():
        if resource in requests and parse_quantity(requests[resource]) > parse_quantity(most):
            limits = container["resources"]["limits"] = dict(
                container["resources"].get("limits") or {}
            )
            limits.setdefault(resource, requests[resource])


def clashes(
    base: Any, patch: Any, path: SettingPath = (), names: SettingPath = ()
) -> Iterator[tuple[SettingPath, SettingPath, Any]]:
    """Yield what a template has and a patch changes or removes: path, path by names, own value."""
    if isinstance(base, dict) and isinstance(patch, dict) and REMOVES not in patch:
        for key in (key for key in patch if key in base):
            if names != ("spec",) or key != "tolerations":
                yield from clashes(base[key], patch[key], (*path, key), (*names, key))
    elif (
        isinstance(base, list)
        and isinstance(patch, list)
        and (identity := MERGED.get(str(path[-1])))
    ):
        own = {identity(entry): entry for entry in base}
        for number, entry in enumerate(patch):
            if (key := identity(entry)) in own:
                name = entry[key_of(str(path[-1]))]
                yield from clashes(own[key], entry, (*path, number), (*names, name))
    elif base != patch:
        yield path, names, base


def added_containers(patch: Manifest, ray: str) -> list[Manifest]:
    """Return the containers that a patch runs beside Ray's container, named `ray`."""
    spec = patch.get("spec") or {}
    before = [
        container
        for container in spec.get("initContainers") or []
        if container.get("restartPolicy") == "Always"
    ]
    beside = [container for container in spec.get("containers") or [] if container["name"] != ray]
    return [container for container in (*before, *beside) if REMOVES not in container]


def added_requests(patch: Manifest, ray: str, resource: str) -> Decimal:
    """Return what containers beside Ray's request of a resource; a limit is a request too."""
    total = Decimal(0)
    for container in added_containers(patch, ray):
        resources = container.get("resources") or {}
        amounts = (resources.get("limits") or {}) | (resources.get("requests") or {})
        total += parse_quantity(str(amounts.get(resource) or 0))
    return total
