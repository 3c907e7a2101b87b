"""Kubernetes objects as the plugin sees them: names, ids, annotations, and state.

Pure functions on plain data. The shapes (`__inputs`, `__initialApiVersion`, `__fieldManager`, ids,
automatic names) are the real plugin's, so that a state of one is usable with the other.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py (2-state.json, 6-state-updated.json)
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.values import UNKNOWN, Properties, Secret, Unknown, has, mark_secrets, reveal

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTONAMED = "pulumi.com/autonamed"
FIELD_MANAGER = "pulumi.com/patchFieldManager"
FORCE = "pulumi.com/patchForce"
SKIP_AWAIT = "pulumi.com/skipAwait"

_ANNOTATIONS = frozenset({AUTONAMED, FIELD_MANAGER, FORCE, SKIP_AWAIT})

# Manager of a creation, which is one POST; the first update hands its fields over to the object's
# own manager.
CREATE_MANAGER = "pulumi-kubernetes"

_INPUTS = "__inputs"
_INITIAL_API_VERSION = "__initialApiVersion"
_FIELD_MANAGER_KEY = "__fieldManager"

# Metadata that the API server sets.
_SERVER_METADATA = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)


@dataclass(frozen=True)
class ObjectKind:
    """Kind of object that a resource type stands for.

    Attributes:
        api_version: version of the API, such as `v1` or `ray.io/v1`.
        kind: the object's kind.
    """

    api_version: str
    kind: str


def kind_of(type_token: str, inputs: Mapping[str, Any]) -> ObjectKind:
    """Return the kind of object that a resource is."""
    _, group_version, kind = type_token.split(":")
    api_version, given = inputs.get("apiVersion"), inputs.get("kind")
    return ObjectKind(
        api_version if isinstance(api_version, str) else group_version.removeprefix("core/"),
        given if isinstance(given, str) else kind,
    )


def unsupported(type_token: str, desired: Mapping[str, Any]) -> str:
    """Return the part of a resource that the stand-in does not have; "" where it has all."""
    kind = type_token.rpartition(":")[2]
    if kind == f"{desired.get('kind')}Patch":
        return f"the Patch resource {kind}"
    metadata = desired.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    for key in annotations if isinstance(annotations, dict) else ():
        if key.startswith("pulumi.com/") and key not in _ANNOTATIONS:
            return f"the annotation {key}"
    return ""


def to_object(properties: Mapping[str, Any]) -> Properties:
    """Return the object of inputs: without secret wrappers, nulls and the plugin's `__` keys."""
    found: Properties = _without_nulls(
        {key: item for key, item in reveal(properties).items() if not key.startswith("__")}
    )
    return found


def normalize(desired: Mapping[str, Any]) -> Properties:
    """Return inputs without server-set metadata, and with a Secret's `stringData` as `data`."""
    result = dict(desired)
    metadata = result.get("metadata")
    if isinstance(metadata, dict):
        result["metadata"] = {key: value for key, value in metadata.items() if key not in _SERVER_METADATA}
    text = result.get("stringData")
    if result.get("kind") == "Secret" and isinstance(text, dict) and not has(result, Unknown):
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in text.items()}
        result["data"] = {**(result.get("data") or {}), **encoded}
        del result["stringData"]
    return result


def name_of(item: Mapping[str, Any]) -> str:
    """Return `metadata.name`; "" where it is missing or not known."""
    return _metadata_text(item, "name")


def namespace_of(item: Mapping[str, Any]) -> str:
    """Return `metadata.namespace`; "" where it is missing or not known."""
    return _metadata_text(item, "namespace")


def annotation(item: Mapping[str, Any], key: str) -> str:
    """Return an annotation's text; "" where it is missing or not known."""
    metadata = item.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(key) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""


def id_of(item: Mapping[str, Any]) -> str:
    """Return `namespace/name`, or `name` for an object without a namespace."""
    namespace = namespace_of(item)
    return f"{namespace}/{name_of(item)}" if namespace else name_of(item)


def parse_id(identity: str) -> tuple[str, str]:
    """Return namespace (may be empty) and name of an id."""
    namespace, _, name = identity.rpartition("/")
    return namespace, name


def autoname(name: str, seed: bytes) -> str:
    """Return `<name>-<8 hex digits>`: the same for the same seed."""
    digits = hashlib.sha256(seed + name.encode()).hexdigest()[:8] if seed else secrets.token_hex(4)
    return f"{name}-{digits}"


def with_name(desired: Mapping[str, Any], name: str) -> Properties:
    """Return the inputs with a generated name, and the annotation that marks it."""
    metadata = dict(desired.get("metadata") or {})
    metadata["name"] = name
    metadata["annotations"] = {**(metadata.get("annotations") or {}), AUTONAMED: "true"}
    return {**desired, "metadata": metadata}


def is_named(desired: Mapping[str, Any]) -> bool:
    """Return whether the program gives a name, known or not."""
    metadata = desired.get("metadata")
    return metadata is UNKNOWN or (isinstance(metadata, dict) and bool(metadata.get("name")))


def field_manager(inputs: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """Return the manager of a resource's fields: from the program, from the state, or a new one."""
    recorded = state.get(_FIELD_MANAGER_KEY)
    known = annotation(inputs, FIELD_MANAGER) or (recorded if isinstance(recorded, str) else "")
    return known or f"pulumi-kubernetes-{secrets.token_hex(4)}"


def initial_api_version(state: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """Return the API version under which the resource was created."""
    recorded = state.get(_INITIAL_API_VERSION)
    return recorded if isinstance(recorded, str) else str(inputs.get("apiVersion", ""))


def checkpoint(
    inputs: Mapping[str, Any], live: Mapping[str, Any], given: Mapping[str, Any], api_version: str, manager: str
) -> Properties:
    """Return what the state records of an object."""
    recorded = hide_secrets(live, given)
    recorded[_INPUTS] = hide_secrets(inputs, given)
    recorded[_INITIAL_API_VERSION] = api_version
    recorded[_FIELD_MANAGER_KEY] = manager
    return recorded


def read_checkpoint(state: Mapping[str, Any]) -> tuple[Properties, Properties]:
    """Return the inputs and the live object that a state records, without secret wrappers."""
    revealed = reveal(state)
    return to_object(revealed.get(_INPUTS) or {}), to_object(revealed)


def hide_secrets(properties: Mapping[str, Any], given: Mapping[str, Any]) -> Properties:
    """Return the properties with the secrets of `given`; a Secret's data is always secret."""
    if properties.get("kind") == "Secret":
        return {
            key: Secret(value) if key in {"data", "stringData"} and not isinstance(value, Secret) else value
            for key, value in properties.items()
        }
    hidden: Properties = mark_secrets(dict(properties), given)
    return hidden


def prune(live: Any, desired: Any) -> Any:
    """Return the parts of a live value that `desired` has: its keys, and as many items."""
    if isinstance(live, dict) and isinstance(desired, dict):
        return {key: prune(value, desired[key]) for key, value in live.items() if key in desired}
    if isinstance(live, list) and isinstance(desired, list):
        if not live or not desired:
            return []
        if type(live[0]) is not type(desired[0]):
            return live
        return [prune(item, other) for item, other in zip(live, desired, strict=False)]
    return live


def _metadata_text(item: Mapping[str, Any], key: str) -> str:
    metadata = item.get("metadata")
    value = metadata.get(key) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
