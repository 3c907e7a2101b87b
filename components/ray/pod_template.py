"""Patch of a pod template: its form, and how it is merged into the template that berth makes.

Fields, their types, and the keys by which entries of lists merge are those of the definition of
RayClusters: the API server accepts nothing else. The keys are those of Kubernetes' strategic merge
patch (k8s.io/api/core/v1, patchMergeKey), with the protocol of a port beside its number.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path as File
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import InitErrorDetails, ValidationError

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Path
from berth.components.core.types import parse_quantity
from berth.components.isolation import DEFAULT_LIMIT
from berth.components.ray.pod_template_refusals import refusal

Object = dict[str, Any]

_VISIBLE = "NVIDIA_VISIBLE_DEVICES"

_CONTAINER = "#container"
_ANY = "*"
_DEFAULTS = {"protocol": "TCP"}
"""Values of keys that an entry of a list may leave out."""

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "int-or-string": (int, str),
}
_WORDS = {
    "string": "is not text; put it in quotes",
    "integer": "is not a whole number",
    "boolean": "is neither true nor false",
    "int-or-string": "is neither a whole number nor text",
}
_NEVER_EMPTY = (("metadata",), ("spec",), ("spec", "containers"))
_QUANTITIES = ("limits", "requests", "sizeLimit", "divisor")


@cache
def _fields() -> Object:
    """Return the fields of a pod template; `#container` stands for `container`."""
    found: Object = json.loads((File(__file__).parent / "pod_fields.json").read_text(encoding="utf-8"))
    return found


def _form() -> Object:
    return {key: _fields()[key] for key in ("metadata", "spec")}


def _resolved(form: Any) -> Any:
    return _fields()["container"] if form == _CONTAINER else form


def _keys(form: Any) -> list[str]:
    """Return the keys by which entries of a list merge; none for a list that is one value."""
    return list(form[:-1]) if isinstance(form, list) else []


def _key_of(entry: Mapping[str, Any], keys: Iterable[str]) -> tuple[Any, ...]:
    return tuple(entry.get(key, _DEFAULTS.get(key)) for key in keys)


def _checked(patch: Object) -> Object:
    """Return a patch with quantities as text.

    Raises:
        ValidationError: the patch has fields that a pod lacks, or that are berth's in every pod.
    """
    patch = copy.deepcopy(patch)
    wrong = list(_problems(patch, _form(), ()))
    if wrong:
        details = [
            InitErrorDetails(type="value_error", loc=path, input=None, ctx={"error": ValueError(message)})
            for path, message in wrong
        ]
        raise ValidationError.from_exception_data("podTemplate", details)
    return patch


def _problems(value: Any, form: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with a value; quantities in it become text."""
    form = _resolved(form)
    if value is None:
        if path in _NEVER_EMPTY:
            yield path, "is empty; take it out"
        return
    if message := refusal(path, value):
        yield path, message
    elif isinstance(form, dict):
        if not isinstance(value, dict):
            yield path, f"{value!r} is not a mapping; write its keys on lines of their own"
            return
        for key, inner in list(value.items()):
            known = form.get(key, form.get(_ANY))
            if known is None:
                # A field that no template has may still be one that berth refuses by name.
                message = refusal((*path, key), inner) or f"unknown field {key!r} of a pod{did_you_mean(key, form)}"
                yield (*path, key), message
                continue
            if isinstance(inner, int) and not isinstance(inner, bool) and _is_quantity((*path, key)):
                value[key] = str(inner)
            yield from _problems(value[key], known, (*path, key))
    elif isinstance(form, list):
        yield from _problems_of_list(value, form, path)
    else:
        yield from _problems_of_value(value, form, path)


def _problems_of_list(value: Any, form: list[Any], path: Path) -> Iterator[tuple[Path, str]]:
    if not isinstance(value, list):
        yield path, f"{value!r} is not a list; begin each entry with `- `"
        return
    keys, seen = _keys(form), set()
    for number, entry in enumerate(value):
        where = (*path, number)
        inner = {key: part for key, part in entry.items() if key != "$patch"} if isinstance(entry, dict) else entry
        if isinstance(entry, dict) and entry.get("$patch", "delete") != "delete":
            yield (*where, "$patch"), "is not a directive that berth has; write `$patch: delete`, or leave it out"
        if entry is None:
            yield where, "is empty; take it out"
            continue
        yield from _problems(inner, form[-1], where)
        if isinstance(entry, dict) and isinstance(inner, dict):
            entry.update(inner)
            if missing := [key for key in keys if entry.get(key, _DEFAULTS.get(key)) is None]:
                yield where, f"needs `{missing[0]}`, by which it is merged with other entries"
            elif keys and (key := _key_of(entry, keys)) in seen:
                yield where, f"has the `{keys[0]}` of an entry before it, {key[0]!r}; write one of them"
            elif keys:
                seen.add(_key_of(entry, keys))


def _problems_of_value(value: Any, form: str, path: Path) -> Iterator[tuple[Path, str]]:
    right = isinstance(value, _KINDS[form]) and (form == "boolean" or not isinstance(value, bool))
    if not right:
        yield path, f"{value!r} {_WORDS[form]}"
    elif _is_quantity(path):
        try:
            parse_quantity(str(value))
        except ValueError as error:
            yield path, str(error)


def _is_quantity(path: Path) -> bool:
    return path[-1] in _QUANTITIES or (len(path) > 1 and path[-2] in _QUANTITIES)


PodTemplate = Annotated[
    dict[str, Any], AfterValidator(_checked), WithJsonSchema({"type": "object", "additionalProperties": True})
]
"""Patch of a pod template: `metadata` and `spec` as in Kubernetes."""


def over(below: Object, above: Object) -> Object:
    """Return one patch for two, of which `above` wins; removals stay, for the template below."""
    return _merge(below, above, _form(), final=False)


def patched(template: Object, patch: Object) -> Object:
    """Return a pod template with a patch merged into it.

    Tolerations are added, though Kubernetes merges them as one value: the pods of a pool with
    taints need berth's. A container that the patch adds sees no GPUs.
    """
    if not patch:
        return template
    result = _merge(template, patch, _form(), final=True)
    before = {container["name"] for kind in _CONTAINERS for container in template["spec"].get(kind) or []}
    for kind in _CONTAINERS:
        for container in result["spec"].get(kind) or []:
            if container["name"] not in before:
                _limit(container)
                # NVIDIA's runtime reads a missing value as "all".
                container["env"] = [*(container.get("env") or []), {"name": _VISIBLE, "value": "void"}]
    own = template["spec"].get("tolerations") or []
    if added := (patch.get("spec") or {}).get("tolerations"):
        result["spec"]["tolerations"] = [*own, *(entry for entry in added if entry not in own)]
    return result


_CONTAINERS = ("initContainers", "containers")


def _limit(container: Object) -> None:
    """Give a container limits where its requests are more than the limits of the LimitRange."""
    requests = (container.get("resources") or {}).get("requests") or {}
    for resource, most in DEFAULT_LIMIT.items():
        if resource in requests and parse_quantity(requests[resource]) > parse_quantity(most):
            limits = container["resources"]["limits"] = dict(container["resources"].get("limits") or {})
            limits.setdefault(resource, requests[resource])


def _merge(base: Mapping[str, Any], patch: Mapping[str, Any], form: Any, *, final: bool) -> Object:
    """Return a patch over a mapping; `final` leaves out what the patch removes."""
    form = _resolved(form)
    result = dict(copy.deepcopy(dict(base)))
    for key, value in patch.items():
        inner = _resolved(form.get(key, form.get(_ANY)))
        under = result.get(key)
        if value is None and final:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merge(under if isinstance(under, dict) else {}, value, inner, final=final)
        elif isinstance(value, list) and _keys(inner):
            result[key] = _merge_lists(under or [], value, inner, final=final)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _merge_lists(base: list[Object], patch: list[Object], form: list[Any], *, final: bool) -> list[Object]:
    keys, inner = _keys(form), form[-1]
    entries = {_key_of(entry, keys): entry for entry in base}
    for entry in patch:
        key = _key_of(entry, keys)
        if "$patch" in entry:
            entries.pop(key, None)
            if not final:
                entries[key] = entry
            continue
        under = entries.get(key, {})
        entries[key] = _merge({} if "$patch" in under else under, entry, inner, final=final)
    return list(entries.values())


def clashes(base: Any, patch: Any, form: Any = None, path: Path = ()) -> Iterator[tuple[Path, Path, Any]]:
    """Yield what a template has and a patch changes or removes: path, path by names, own value."""
    form = _resolved(_form() if form is None else form)
    yield from _clashes(base, patch, form, path, path)


def _clashes(base: Any, patch: Any, form: Any, path: Path, names: Path) -> Iterator[tuple[Path, Path, Any]]:
    if isinstance(base, dict) and isinstance(patch, dict) and "$patch" not in patch:
        for key in (key for key in patch if key in base):
            if names == ("spec",) and key == "tolerations":
                continue
            inner = _resolved(form.get(key, form.get(_ANY)))
            yield from _clashes(base[key], patch[key], inner, (*path, key), (*names, key))
    elif isinstance(base, list) and isinstance(patch, list) and (keys := _keys(form)):
        own = {_key_of(entry, keys): entry for entry in base}
        for number, entry in enumerate(patch):
            key = _key_of(entry, keys)
            if key in own:
                yield from _clashes(own[key], entry, _resolved(form[-1]), (*path, number), (*names, key[0]))
    elif base != patch:
        yield path, names, base


def added_containers(patch: Object, ray: str) -> list[Object]:
    """Return the containers that a patch runs beside Ray's container, named `ray`."""
    spec = patch.get("spec") or {}
    before = [container for container in spec.get("initContainers") or [] if container.get("restartPolicy") == "Always"]
    beside = [container for container in spec.get("containers") or [] if container["name"] != ray]
    return [container for container in (*before, *beside) if "$patch" not in container]


def added_requests(patch: Object, ray: str, resource: str) -> Decimal:
    """Return what containers beside Ray's request of a resource; a limit is a request too."""
    total = Decimal(0)
    for container in added_containers(patch, ray):
        resources = container.get("resources") or {}
        amounts = (resources.get("limits") or {}) | (resources.get("requests") or {})
        total += parse_quantity(str(amounts.get(resource) or 0))
    return total
