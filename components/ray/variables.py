"""Environment variables of Ray's containers: literal values, and references to values."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from berth.components.cluster.pods import SYNCED
from berth.components.core.settings import DefaultedSettings, Settings
from berth.components.core.types import VariableName, must_match
from berth.components.fabric import EnvironmentName

_OBJECT = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")
# https://docs.cloud.google.com/secret-manager/docs/creating-and-accessing-secrets
_IN_SECRET_MANAGER = re.compile(
    r"(projects/[a-z][-a-z0-9.:]{4,}[a-z0-9]/secrets/)?[-_A-Za-z0-9]{1,255}(/versions/(latest|[1-9][0-9]*))?"
)
# Fields that Kubernetes gives to variables
# (https://kubernetes.io/docs/concepts/workloads/pods/downward-api/).
_FIELD = re.compile(
    r"metadata\.(name|namespace|uid)|metadata\.(labels|annotations)\['[-./_A-Za-z0-9]+'\]"
    r"|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)"
)

# What is written here may be a secret value by mistake.
_NO_OBJECT = "is not the name of a Secret or ConfigMap: lowercase letters, digits, '-' and '.'"
_NO_KEY = "is not a key of a Secret or ConfigMap: letters, digits, '-', '_' and '.'"

ObjectName = Annotated[str, must_match(_OBJECT, _NO_OBJECT, secret=True)]
"""Name of a Secret or ConfigMap in the berth's namespace."""

DataKey = Annotated[str, must_match(_KEY, _NO_KEY, secret=True)]
"""Key of a Secret or ConfigMap."""


class FromSecret(Settings):
    """Value of a key of a Secret in the berth's namespace."""

    secret: Annotated[ObjectName, Field(examples=["hf"])]
    """Name of the Secret."""
    key: Annotated[DataKey, Field(examples=["token"])]
    """Key of the Secret."""


class FromConfigMap(Settings):
    """Value of a key of a ConfigMap in the berth's namespace."""

    config_map: Annotated[ObjectName, Field(examples=["team-settings"])]
    """Name of the ConfigMap."""
    key: Annotated[DataKey, Field(examples=["level"])]
    """Key of the ConfigMap."""


class FromField(Settings):
    """Value of a field of the pod."""

    field: Annotated[
        str,
        must_match(
            _FIELD,
            "is not a field that Kubernetes gives to variables; write for example metadata.name",
        ),
        Field(examples=["status.podIP"]),
    ]
    """Field: `metadata.name`, `spec.nodeName`, `status.podIP`."""


# The forms stand in the descriptions of the settings: as settings of their own, they would be
# listed for each place that has variables.
_REFERENCE = {"type": "object", "additionalProperties": {"type": "string"}}

_FORMS = {
    "secret": "from-secret",
    "config_map": "from-config-map",
    "configMap": "from-config-map",
    "field": "from-field",
}


def _form_of(value: Any) -> str:
    """Return the form in which a value is written, so that errors name that form."""
    if isinstance(value, Settings):
        value = value.model_dump()
    if isinstance(value, Mapping):
        return next((form for key, form in _FORMS.items() if key in value), "from-secret")
    return "text"


Value = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[FromSecret, Tag("from-secret")]
    | Annotated[FromConfigMap, Tag("from-config-map")]
    | Annotated[FromField, Tag("from-field")],
    Discriminator(_form_of),
    WithJsonSchema({"anyOf": [{"type": "string"}, _REFERENCE]}),
]
"""Value of a variable: text, or `{secret, key}`, `{configMap, key}` or `{field}`."""

Variables = dict[EnvironmentName, Value]

VALUE = "value"
"""Key of a Secret with one value."""


class SecretKey(DefaultedSettings):
    """Place of a secret value: a key of a Secret in the berth's namespace, or in Secret Manager."""

    secret: Annotated[ObjectName | None, Field(examples=["hf"])] = None
    """Name of the Secret. Default: the variable's name in lowercase, with `-` for `_`."""
    key: Annotated[DataKey, Field(examples=["token"])] = VALUE
    """Key of the Secret."""
    secret_manager: Annotated[
        Annotated[
            str,
            must_match(
                _IN_SECRET_MANAGER,
                "is not a secret of Secret Manager; write its name, hf-token, or with its project:"
                " projects/your-project/secrets/hf-token",
            ),
        ]
        | None,
        Field(examples=["hf-token", "projects/your-project/secrets/hf-token/versions/2"]),
    ] = None
    """Secret of Secret Manager, from which GKE writes the value into the Secret."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.secret_manager and (self.secret or self.key != VALUE):
            raise ValueError(
                "has `secretManager`, so that GKE writes the Secret; take `secret` and `key` out"
            )
        return self


def _without_values(entries: Any) -> Any:
    """Return the entries, with {} for nothing; a value in place of a reference is not repeated."""
    if not isinstance(entries, dict):
        return entries
    for name, entry in entries.items():
        if entry is not None and not isinstance(entry, Mapping | SecretKey):
            raise ValueError(
                f"{name} has a value here, where everybody who reads the settings sees it; write"
                f" {name}: {{}}, and set the value with: berth secret set NAME {name}"
            )
    return {name: {} if entry is None else entry for name, entry in entries.items()}


Secrets = Annotated[
    dict[VariableName, Annotated[SecretKey, WithJsonSchema(_REFERENCE)]],
    BeforeValidator(_without_values),
]
"""Variables with secret values, by name; each value is in a Secret."""


def references_of(secrets: Mapping[str, SecretKey]) -> dict[str, FromSecret]:
    """Return secret variables as references with a Secret's name."""
    return {
        name: FromSecret(
            secret=place.secret or _secret_of(name),
            key=SYNCED if place.secret_manager else place.key,
        )
        for name, place in secrets.items()
    }


def from_secret_manager(secrets: Mapping[str, SecretKey]) -> dict[str, str]:
    """Return the secrets of Secret Manager, as written, by the names of Secrets with the values."""
    return {
        _secret_of(name): place.secret_manager
        for name, place in secrets.items()
        if place.secret_manager
    }


def _secret_of(variable: str) -> str:
    name = variable.lower().replace("_", "-").strip("-.")
    return name if _OBJECT.fullmatch(name) else f"variable-{name}".strip("-.")


def entries_of(
    variables: Mapping[str, str | FromSecret | FromConfigMap | FromField],
) -> list[dict[str, Any]]:
    """Return variables as a container has them."""
    return [{"name": name, **entry_of(value)} for name, value in variables.items()]


def entry_of(value: str | FromSecret | FromConfigMap | FromField) -> dict[str, Any]:
    """Return Kubernetes' form of a value: itself, or where it comes from."""
    if isinstance(value, str):
        return {"value": value}
    if isinstance(value, FromField):
        return {"valueFrom": {"fieldRef": {"fieldPath": value.field}}}
    if isinstance(value, FromConfigMap):
        return {"valueFrom": {"configMapKeyRef": {"name": value.config_map, "key": value.key}}}
    return {"valueFrom": {"secretKeyRef": {"name": value.secret, "key": value.key}}}
