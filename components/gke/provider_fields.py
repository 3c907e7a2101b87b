"""Facts about the fields of Google's provider: the effect of a change of each field.

`provider_fields.json` is written by `python -m docs.provider_fields` from the compiled schemas of
hashicorp/terraform-provider-google-beta; the file names the commit. Paths are those of Pulumi's
inputs, without list indices. The preview of a change and the simulated Google Cloud of the lab both
read these facts, so that neither has a table of its own.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

FILE = Path(__file__).parent / "provider_fields.json"

NODE_POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"

_INDEX = re.compile(r"\[\d+\]")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_QUOTED = re.compile(r'\.?\["((?:[^"\\]|\\.)*)"\]')


@dataclass(frozen=True)
class Field:
    """Facts about one field."""

    replaces: bool = False
    """A change replaces the resource. A block changes so when the number of its elements does; its
    fields have facts of their own."""
    keeps: bool = False
    """Optional and computed. Leaving the field out is no change: the present value stays."""
    nodes: Literal["no", "yes", "unknown"] = "no"
    """Whether GKE recreates nodes for a change in place; unknown where nothing that could be read
    says so."""
    kind: Literal["", "list", "set", "map"] = ""
    """Container of several values: a list, a set (order means nothing) or a map; "" for a single
    value or block."""
    type: Literal["", "bool", "int", "number"] = ""
    """Type of a single value that is not text."""
    sticks: bool = False
    """A change, but an update that empties the field sends nothing, so that the value stays."""
    # The checks of inputs and the lab read these; docs/provider_fields.py writes and explains them.
    required: bool = False
    default: Any = None
    allowed: tuple[str, ...] = ()
    elements: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    items: int = 0
    conflicts: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    some_of: tuple[str, ...] = ()
    suppress: str = ""
    format: str = ""
    terraform: str = ""
    unread: bool = False

    def stays(self, new: Any) -> bool:
        """Whether the value that is there stays, for what the new inputs have in its place."""
        return (new is None and (self.keeps or self.sticks)) or (
            new == {} and self.sticks and self.kind == "map"
        )


@dataclass(frozen=True)
class ResourceFields:
    """Facts about one type of resource."""

    fields: Mapping[str, Field]
    timeouts: Mapping[str, int]
    """Seconds that the provider waits for `create`, `update` and `delete`."""

    @cached_property
    def blocks(self) -> Mapping[str, list[str]]:
        """Names of the fields of each block, by the block's path; "" for the resource itself."""
        blocks: dict[str, list[str]] = {}
        for path in self.fields:
            block, _, name = path.rpartition(".")
            blocks.setdefault(block, []).append(name)
        return blocks

    def field_at(self, path: str) -> Field | None:
        """The field that a path of the engine leads to; None where nothing is known of it.

        It may have list indices, and the key of a map at its end: `nodeConfig.labels["a/b"]`.
        """
        plain = _INDEX.sub("", _QUOTED.sub(".", path)).rstrip(".")
        whole = plain == _INDEX.sub("", path)
        while plain:
            field = self.fields.get(plain)
            if field is not None:
                return field if whole or field.kind == "map" else None
            plain, _, _ = plain.rpartition(".")
            whole = False
        return None


@cache
def resource_fields() -> Mapping[str, ResourceFields]:
    """Return facts about all resource types, by Pulumi's type token."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    rows: dict[str, dict[str, Any]] = content["resources"]
    # The cluster's own nodeConfig, which is of its first pool, has the fields of a pool's.
    nested = {path: row for path, row in rows[NODE_POOL].items() if path.startswith("nodeConfig.")}
    rows[CLUSTER] = {**nested, **rows[CLUSTER]}
    resources = {}
    for token, fields_of in rows.items():
        fields = {path: _field(row) for path, row in fields_of.items()}
        resources[token] = ResourceFields(fields, content["timeouts"][token])
    return resources


def snake_case(name: str) -> str:
    """Return a name such as `machineType` in the form of Terraform and Python, `machine_type`.

    `terraform` of a field is empty where this is its name.
    """
    return _CAPITAL.sub("_", name).lower()


def values_left_out(
    old: Mapping[str, Any], new: Mapping[str, Any], resource: ResourceFields, block: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield paths and values that stay in a block, though the inputs of an update omit them.

    Args:
        old: inputs of the block before the update.
        new: inputs of the block in the update.
        resource: facts about the resource's fields.
        block: path of the block; empty for the resource itself.
    """
    for name in resource.blocks.get(block, ()):
        path = f"{block}.{name}" if block else name
        before = old.get(name)
        after = new.get(name)
        if not before and before != 0:
            continue
        if resource.fields[path].stays(after):
            yield path, before
        elif path in resource.blocks:
            for old_block, new_block in _pairs(before, after):
                yield from values_left_out(old_block, new_block, resource, path)


def _pairs(before: Any, after: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield blocks before and after an update; a field has one block, or a list of blocks."""
    pairs = [(before, after)]
    if not isinstance(before, Mapping):
        pairs = list(zip(before, after or (), strict=False))
    for old, new in pairs:
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield old, new


def _field(row: Mapping[str, Any]) -> Field:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return Field(**values)
