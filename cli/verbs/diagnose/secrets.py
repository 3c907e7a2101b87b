"""Removal of secrets from a diagnosis. Pure.

Structures lose literal values of environment variables, except those of SHOWN_VARIABLES, and the
values of secret names. The whole text then loses these values wherever else they stand, known
secrets, assignments of variables, and whatever has the shape of a well-known credential. Secrets
and the kubeconfig itself are never gathered.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from berth.components.core.plain_secrets import (
    ASSIGNMENT,
    CREDENTIAL_SHAPES,
    DOCUMENT_KEYS,
    ENVIRONMENT_KEYS,
    NO_VALUES,
    OPTION,
    SHOWN_VARIABLES,
    VARIABLE,
    is_secret_name,
)

REMOVED = "[removed]"

_STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
_SHORTEST_KNOWN = 6


def cleaned(value: Any) -> tuple[Any, set[str]]:
    """Return a structure without secrets, and the values of environment variables that it lost."""
    lost: set[str] = set()
    return _cleaned(value, lost), lost


def _cleaned(value: Any, lost: set[str]) -> Any:
    if isinstance(value, list):
        return [_cleaned(inner, lost) for inner in value]
    if not isinstance(value, Mapping):
        return value
    if "name" in value and "value" in value:
        return {**value, "value": _variable(str(value["name"]), value["value"], lost)}
    if "path" in value and ("old" in value or "new" in value):
        return _changed_property(value, lost)
    return {
        key: _entry(str(key), inner, lost) for key, inner in value.items() if key != "managedFields"
    }


def _entry(key: str, inner: Any, lost: set[str]) -> Any:
    """Return a value of a mapping, by its key."""
    if key in ENVIRONMENT_KEYS and isinstance(inner, Mapping):
        return {name: _variable(str(name), value, lost) for name, value in inner.items()}
    if _is_removed(key, inner):
        return REMOVED
    if key in DOCUMENT_KEYS and isinstance(inner, str):
        try:
            return _cleaned(yaml.safe_load(inner), lost)
        except yaml.YAMLError:
            return REMOVED
    return _cleaned(inner, lost)


def _variable(name: str, value: Any, lost: set[str]) -> Any:
    """Return the value of an environment variable, if it may be shown."""
    if value is None or isinstance(value, Mapping | list):
        return _cleaned(value, lost)
    if name in SHOWN_VARIABLES or not str(value):
        return value
    lost.add(str(value))
    return REMOVED


def _changed_property(change: Mapping[str, Any], lost: set[str]) -> dict[str, Any]:
    """Return a property that a plan changes, such as `spec.….env[0].value`, with old and new."""
    shown = dict(change)
    for key in ("old", "new"):
        if key in change:
            shown[key] = _value_at(str(change["path"]), change[key], lost)
    return shown


def _value_at(path: str, value: Any, lost: set[str]) -> Any:
    """Return the value of a property, by its path."""
    steps = [step.strip("[]\"'") for step in _STEP.findall(path)]
    if not steps:
        return _cleaned(value, lost)
    below = _below_environment(steps)
    if below and not (below[-1] in {"name", *SHOWN_VARIABLES} or "valueFrom" in below):
        return _variable(below[-1], value, lost)
    return _entry(steps[-1], value, lost)


def _below_environment(steps: list[str]) -> list[str]:
    """Return the steps of a path below the first key of environment variables; none without."""
    for index, step in enumerate(steps):
        if step in ENVIRONMENT_KEYS:
            return steps[index + 1 :]
    return []


def _is_removed(key: str, inner: Any) -> bool:
    """Return whether to remove a value: a secret's, or kubectl's copy of the object."""
    if key in ("secure", "kubectl.kubernetes.io/last-applied-configuration"):
        return True
    return (
        isinstance(inner, str | int | float) and not isinstance(inner, bool) and is_secret_name(key)
    )


def scrubbed(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text without known secrets, plain or as base64, and without what looks like one."""
    values: set[str] = set()
    for secret in secrets:
        values.add(secret.strip())
        values.update(line.strip() for line in secret.splitlines())
    values |= {base64.b64encode(value.encode()).decode() for value in values}
    # The longest first: a secret may be part of another.
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST_KNOWN:
            text = text.replace(value, REMOVED)
    for shape in CREDENTIAL_SHAPES:
        text = shape.sub(REMOVED, text)
    text = OPTION.sub(rf"\g<name>{REMOVED}", text)
    text = VARIABLE.sub(_without_variable, text)
    return ASSIGNMENT.sub(_without_assigned, text)


def _without_variable(match: re.Match[str]) -> str:
    if match["name"] in SHOWN_VARIABLES or match["value"] == REMOVED:
        return match[0]
    return f"{match['name']}={REMOVED}"


def _without_assigned(match: re.Match[str]) -> str:
    name = match["name"].rsplit(".", 1)[-1]
    if not is_secret_name(name) or match["value"].lower() in NO_VALUES:
        return match[0]
    return f"{match['name']}{match['between']}{REMOVED}"
