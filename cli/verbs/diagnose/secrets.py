"""Removal of secrets from a diagnosis. Pure.

Structures lose literal values of environment variables, except those that secrets.yaml names, and
the values of secret names. The whole text then loses these values wherever else they stand, known
secrets, assignments of variables, and whatever has the shape of a well-known credential. Secrets
and the kubeconfig itself are never gathered.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from berth.components.core import fast_yaml

REMOVED = "[removed]"

_TABLES = fast_yaml.load_beside(__file__)

_SECRET_NAME = re.compile(f"(?i){'|'.join(_TABLES['secret_names'])}")
_HARMLESS_NAME = re.compile(f"(?i){'|'.join(_TABLES['harmless_names'])}")
_SHAPES = [re.compile(shape) for shape in _TABLES["shapes"]]
_ASSIGNED, _VARIABLE, _OPTION = (
    re.compile(_TABLES[key]) for key in ("assigned", "variable", "option")
)
_NO_VALUES = frozenset(_TABLES["no_values"])
_DOCUMENTS, _ENVIRONMENTS = frozenset(_TABLES["documents"]), frozenset(_TABLES["environments"])
SHOWN = frozenset(_TABLES["shown_variables"].split())
"""Environment variables whose values a diagnosis shows."""
_STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
_SHORTEST_KNOWN = 6


def is_secret_name(name: str) -> bool:
    """Return whether a value of this name is likely a secret."""
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS_NAME.fullmatch(name)


def cleaned(value: Any) -> tuple[Any, set[str]]:
    """Return a structure without secrets, and the values of environment variables that it lost."""
    lost: set[str] = set()
    return _cleaned(value, lost), lost


def _cleaned(value: Any, lost: set[str]) -> Any:
    if isinstance(value, Mapping):
        if "name" in value and "value" in value:
            return {**value, "value": _variable(str(value["name"]), value["value"], lost)}
        if "path" in value and ("old" in value or "new" in value):
            ends = {
                key: _at(str(value["path"]), value[key], lost)
                for key in ("old", "new")
                if key in value
            }
            return {**value, **ends}
        return {
            key: _entry(str(key), inner, lost)
            for key, inner in value.items()
            if key != "managedFields"
        }
    if isinstance(value, list):
        return [_cleaned(inner, lost) for inner in value]
    return value


def _entry(key: str, inner: Any, lost: set[str]) -> Any:
    if key in _ENVIRONMENTS and isinstance(inner, Mapping):
        return {name: _variable(str(name), value, lost) for name, value in inner.items()}
    return REMOVED if _taken_out(key, inner) else _cleaned(_opened(key, inner), lost)


def _variable(name: str, value: Any, lost: set[str]) -> Any:
    """Return the value of an environment variable, if it may be shown."""
    if value is None or isinstance(value, Mapping | list):
        return _cleaned(value, lost)
    if name in SHOWN or not str(value):
        return value
    lost.add(str(value))
    return REMOVED


def _at(path: str, value: Any, lost: set[str]) -> Any:
    """Return the old or new value of a property that a plan changes: `spec.….env[0].value`."""
    steps = [step.strip("[]\"'") for step in _STEP.findall(path)]
    after = next(
        (steps[index + 1 :] for index, step in enumerate(steps) if step in _ENVIRONMENTS), None
    )
    if after and not (after[-1] == "name" or after[-1] in SHOWN or "valueFrom" in after):
        return _variable(after[-1], value, lost)
    return _entry(steps[-1], value, lost) if steps else _cleaned(value, lost)


def _opened(key: str, inner: Any) -> Any:
    if key not in _DOCUMENTS or not isinstance(inner, str):
        return inner
    try:
        return yaml.safe_load(inner)
    except yaml.YAMLError:
        return REMOVED


def _taken_out(key: str, inner: Any) -> bool:
    """Return whether to remove a value: a secret's, or kubectl's copy of the object."""
    if key in ("secure", "kubectl.kubernetes.io/last-applied-configuration"):
        return True
    return (
        isinstance(inner, str | int | float) and not isinstance(inner, bool) and is_secret_name(key)
    )


def scrubbed(text: str, known: Iterable[str] = ()) -> str:
    """Return a text without known secrets, plain or as base64, and without what looks like one."""
    values = {line.strip() for value in known for line in (value, *value.splitlines())}
    values |= {base64.b64encode(value.encode()).decode() for value in values}
    # The longest first: a secret may be part of another.
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST_KNOWN:
            text = text.replace(value, REMOVED)
    for shape in _SHAPES:
        text = shape.sub(REMOVED, text)
    text = _OPTION.sub(rf"\g<name>{REMOVED}", text)
    return _ASSIGNED.sub(_assigned, _VARIABLE.sub(_set, text))


def _set(found: re.Match[str]) -> str:
    return (
        found[0]
        if found["name"] in SHOWN or found["value"] == REMOVED
        else f"{found['name']}={REMOVED}"
    )


def _assigned(found: re.Match[str]) -> str:
    name = found["name"].rsplit(".", 1)[-1]
    if not is_secret_name(name) or found["value"].lower() in _NO_VALUES:
        return found[0]
    return f"{found['name']}{found['between']}{REMOVED}"


def secrets_of_kubeconfig(document: Any) -> list[str]:
    """Return the credentials of a kubeconfig's users."""
    users = (document or {}).get("users") or []
    found: list[str] = []
    for user in users:
        credentials = user.get("user") or {}
        found += [
            str(credentials[key])
            for key in ("token", "password", "client-key-data", "client-certificate-data")
            if credentials.get(key)
        ]
        config = (credentials.get("auth-provider") or {}).get("config") or {}
        found += [str(value) for key, value in config.items() if is_secret_name(key)]
        variables = (credentials.get("exec") or {}).get("env") or []
        found += [
            str(variable.get("value"))
            for variable in variables
            if is_secret_name(str(variable.get("name")))
        ]
    return found


def secrets_of_environment(variables: Mapping[str, str]) -> list[str]:
    """Return values of environment variables that are likely secrets."""
    return [value for name, value in variables.items() if is_secret_name(name) and value]
