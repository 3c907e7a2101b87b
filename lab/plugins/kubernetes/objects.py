"""Kubernetes objects as the plugin sees them: names, ids, annotations, and the shape of what the state records.

Pure functions on plain data. The shapes (`__inputs`, `__initialApiVersion`, `__fieldManager`, ids, auto-naming) are the
real plugin's, so that a state written with one is usable with the other.

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
PROPAGATION = "pulumi.com/deletionPropagationPolicy"
SKIP_AWAIT = "pulumi.com/skipAwait"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
WAIT_FOR = "pulumi.com/waitFor"

# Objects are created in one POST under this name; the first update hands its fields over to the object's own manager.
CREATE_MANAGER = "pulumi-kubernetes"

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_INPUTS = "__inputs"
_INITIAL_API_VERSION = "__initialApiVersion"
_FIELD_MANAGER_KEY = "__fieldManager"

# Set by the API server; they are no part of what a program wants.
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

# Keys of CustomResourceDefinitions that no SDK language could spell with dashes.
_EXTENSION = "x_kubernetes_"


@dataclass(frozen=True)
class ObjectKind:
    """What a resource type stands for.

    Attributes:
        api_version: such as `v1` or `ray.io/v1`.
        kind: the object's kind, without the `Patch` of a Patch resource.
        is_patch: whether the resource owns only fields of an object that somebody else owns.
    """

    api_version: str
    kind: str
    is_patch: bool

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


def kind_of(type_token: str, inputs: Mapping[str, Any]) -> ObjectKind:
    """The kind of object that a resource with this type token and these inputs is.

    Args:
        type_token: such as `kubernetes:core/v1:NamespacePatch`.
        inputs: what the program gave; its `apiVersion` and `kind` win where they are known.
    """
    _, group_version, kind = type_token.split(":")
    api_version = inputs.get("apiVersion")
    if not isinstance(api_version, str):
        api_version = group_version.removeprefix("core/")
    given = inputs.get("kind")
    given = given if isinstance(given, str) else kind.removesuffix("Patch")
    return ObjectKind(api_version, given, is_patch=kind == given + "Patch")


def to_object(properties: Mapping[str, Any]) -> Properties:
    """The object that plain inputs describe: without secret wrappers, nulls and our own `__` keys."""
    revealed = {key: value for key, value in reveal(properties).items() if not key.startswith("__")}
    cleaned: Properties = _rename(_without_nulls(revealed), _EXTENSION, lambda key: key.replace("_", "-"))
    return cleaned


def normalize(wanted: Mapping[str, Any]) -> Properties:
    """Inputs without what the server sets, and with a Secret's `stringData` as `data`, as the server keeps it."""
    result = dict(wanted)
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
    """`metadata.name`, or nothing where it is not given or not known."""
    return _metadata_text(item, "name")


def namespace_of(item: Mapping[str, Any]) -> str:
    """`metadata.namespace`, or nothing where it is not given or not known."""
    return _metadata_text(item, "namespace")


def annotation(item: Mapping[str, Any], key: str) -> str:
    """An annotation's text, or nothing."""
    metadata = item.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(key) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""


def id_of(item: Mapping[str, Any]) -> str:
    """`namespace/name`, or `name` for what lives in no namespace."""
    namespace = namespace_of(item)
    return f"{namespace}/{name_of(item)}" if namespace else name_of(item)


def parse_id(identity: str) -> tuple[str, str]:
    """Namespace (may be empty) and name."""
    namespace, _, name = identity.rpartition("/")
    return namespace, name


def autoname(name: str, seed: bytes) -> str:
    """`<name>-<8 hex digits>`: the same for the same seed."""
    digits = hashlib.sha256(seed + name.encode()).hexdigest()[:8] if seed else secrets.token_hex(4)
    return f"{name}-{digits}"


def with_name(wanted: Mapping[str, Any], name: str) -> Properties:
    """The inputs under a name of our making, marked as such."""
    metadata = dict(wanted.get("metadata") or {})
    metadata["name"] = name
    metadata["annotations"] = {**(metadata.get("annotations") or {}), AUTONAMED: "true"}
    return {**wanted, "metadata": metadata}


def is_named(wanted: Mapping[str, Any]) -> bool:
    """Whether the program gives a name, known or not."""
    metadata = wanted.get("metadata")
    return metadata is UNKNOWN or (isinstance(metadata, dict) and bool(metadata.get("name")))


def new_field_manager() -> str:
    """A field manager's name for one new resource."""
    return f"pulumi-kubernetes-{secrets.token_hex(4)}"


def field_manager(inputs: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """The manager that owns a resource's fields: named in the program, recorded, or new."""
    recorded = state.get(_FIELD_MANAGER_KEY)
    return annotation(inputs, FIELD_MANAGER) or (recorded if isinstance(recorded, str) else "") or new_field_manager()


def initial_api_version(state: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """The API version under which the resource was first made."""
    recorded = state.get(_INITIAL_API_VERSION)
    return recorded if isinstance(recorded, str) else str(inputs.get("apiVersion", ""))


def checkpoint(
    inputs: Mapping[str, Any], live: Mapping[str, Any], given: Mapping[str, Any], api_version: str, manager: str
) -> Properties:
    """What the state records of an object.

    Args:
        inputs: the object as the program wants it.
        live: the object as the server has it.
        given: the inputs with their secrets marked.
        api_version: the API version under which it was first made.
        manager: its field manager.
    """
    recorded = hide_secrets(from_object(live), given)
    recorded[_INPUTS] = hide_secrets(from_object(inputs), given)
    recorded[_INITIAL_API_VERSION] = api_version
    recorded[_FIELD_MANAGER_KEY] = manager
    return recorded


def read_checkpoint(state: Mapping[str, Any]) -> tuple[Properties, Properties]:
    """Inputs and live object that a state records, without secret wrappers."""
    revealed = reveal(state)
    inputs = revealed.get(_INPUTS) or {}
    return to_object(inputs), to_object(revealed)


def from_object(item: Mapping[str, Any]) -> Properties:
    """An object of the server as properties."""
    renamed: Properties = _rename(dict(item), "x-kubernetes-", lambda key: key.replace("-", "_"))
    return renamed


def hide_secrets(properties: Mapping[str, Any], given: Mapping[str, Any]) -> Properties:
    """The properties with the secrets of `given` marked; a Secret's data is secret whoever gave it."""
    if properties.get("kind") == "Secret":
        return {
            key: Secret(value) if key in {"data", "stringData"} and not isinstance(value, Secret) else value
            for key, value in properties.items()
        }
    hidden: Properties = mark_secrets(dict(properties), given)
    return hidden


def prune(live: Any, wanted: Any) -> Any:
    """The parts of a live value that `wanted` speaks of: same keys, and as many items of a list."""
    if isinstance(live, dict) and isinstance(wanted, dict):
        return {key: prune(value, wanted[key]) for key, value in live.items() if key in wanted}
    if isinstance(live, list) and isinstance(wanted, list):
        if not live or not wanted:
            return []
        if type(live[0]) is not type(wanted[0]):
            return live
        return [prune(item, other) for item, other in zip(live, wanted, strict=False)]
    return live


def imported_inputs(live: Mapping[str, Any]) -> Properties:
    """Inputs that describe a live object which no program knows yet."""
    inputs = {key: value for key, value in live.items() if key != "status"}
    inputs["metadata"] = {
        key: value for key, value in (live.get("metadata") or {}).items() if key not in _SERVER_METADATA
    }
    annotations = {
        key: value
        for key, value in (inputs["metadata"].get("annotations") or {}).items()
        if key not in {_LAST_APPLIED, "deployment.kubernetes.io/revision"}
    }
    inputs["metadata"].pop("annotations", None)
    if annotations:
        inputs["metadata"]["annotations"] = annotations
    return inputs


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


def _rename(value: Any, prefix: str, rename: Any) -> Any:
    if isinstance(value, dict):
        return {
            rename(key) if key.startswith(prefix) else key: _rename(item, prefix, rename) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_rename(item, prefix, rename) for item in value]
    return value
