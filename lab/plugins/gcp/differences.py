"""Differences between a resource's state and new inputs, as Pulumi's Google plugin reports them.

Google's provider plans a state (`planned`), and Pulumi's bridge compares it with the recorded one,
property by property. What a difference does is a fact about the field
(`berth.components.gke.provider_fields`).
"""

import json
import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from pulumi.runtime.rpc import UNKNOWN

from berth.components.gke.provider_fields import Field, ResourceFields
from berth.lab.plugins.gcp.kinds import Kind
from berth.lab.plugins.gcp.planned import UNKNOWN_FIELD

META = "__meta"
"""Property that the bridge names as the reason of a replacement that the provider's own code asks
for, and no field of the schema."""

MAPS_OF_BRIDGE = ("effectiveLabels", "pulumiLabels")
"""Outputs that follow from the labels of a resource, and differ with them."""

_NAME = re.compile(r"[A-Za-z_]\w*")


def differences(
    state: Mapping[str, Any],
    plan: Mapping[str, Any],
    facts: ResourceFields,
    ignored: Iterable[str] = (),
    *,
    replaces: bool = False,
) -> dict[str, Kind]:
    """Kind of each difference by path, such as `nodeConfig.taints[0].value`.

    Args:
        state: the recorded outputs.
        plan: the planned state; parts may be unknown, which counts as different.
        facts: the fields of the resource's type.
        ignored: paths whose difference, or one below them, does not count.
        replaces: the provider's own code replaces the resource, whatever differs.
    """
    comparison = _Comparison(facts)
    comparison.blocks("", "", state, plan)
    skipped = tuple(ignored)
    found = {path: kind for path, kind in comparison.found.items() if not _below(path, skipped)}
    if not replaces and comparison.forcing.isdisjoint(found):
        return {path: kind.in_place() for path, kind in found.items()}
    if not any(kind.replaces for kind in found.values()):
        found[META] = Kind.UPDATE_REPLACE
    return found


def with_kept(
    old: dict[str, Any], new: dict[str, Any], facts: ResourceFields, block: str = ""
) -> dict[str, Any]:
    """New inputs of a resource with the values that stay, since the new inputs leave them out.

    Args:
        old: the inputs that are in force.
        new: the inputs that are asked for.
        facts: the fields of the resource's type.
        block: path of the block that both are of.
    """
    result = dict(new)
    for name in facts.blocks.get(block, ()):
        path = f"{block}.{name}" if block else name
        before = old.get(name)
        after = new.get(name)
        fact = facts.fields[path]
        if fact.stays(after):
            result |= {name: before} if before is not None else {}
        elif path in facts.blocks and isinstance(before, dict) and isinstance(after, dict):
            result[name] = with_kept(before, after, facts, path)
        elif path in facts.blocks and isinstance(before, list) and isinstance(after, list):
            pairs = zip(before, after, strict=False)
            result[name] = [with_kept(one, other, facts, path) for one, other in pairs] + after[
                len(before) :
            ]
    return result


def with_empty_maps(
    outputs: dict[str, Any], facts: ResourceFields, block: str = ""
) -> dict[str, Any]:
    """Outputs with the maps that nobody gave, which the provider reads as empty ones.

    Args:
        outputs: the outputs of a resource, or of a block.
        facts: the fields of the resource's type.
        block: path of the block; empty for the resource itself.
    """
    result = dict(outputs)
    for name in facts.blocks.get(block, ()):
        path = f"{block}.{name}" if block else name
        if facts.fields[path].kind == "map":
            result.setdefault(name, {})
        elif path in facts.blocks and isinstance(result.get(name), dict):
            result[name] = with_empty_maps(result[name], facts, path)
    return result


def property_path(path: str, key: str) -> str:
    """Return the path of a property or a map's key in another one, as the engine writes it."""
    if not _NAME.fullmatch(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def _below(path: str, tops: Iterable[str]) -> bool:
    plain = re.sub(r"\[\d+\]", "", path)
    return any(top in (path, plain) or path.startswith((f"{top}.", f"{top}[")) for top in tops)


class _Comparison:
    """Comparison of a state with the planned one.

    Attributes:
        found: differences by path; each is marked as a replacement if the resource is replaced.
        forcing: paths of the differences for which the provider replaces the resource.
    """

    def __init__(self, facts: ResourceFields) -> None:
        self._facts = facts
        self.found: dict[str, Kind] = {}
        self.forcing: set[str] = set()

    def blocks(self, path: str, plain: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Compare two blocks field by field, without outputs, which nobody can give."""
        known = self._facts.blocks.get(plain, ())
        for name in sorted({*new, *(old.keys() & set(known))}):
            inner = f"{plain}.{name}" if plain else name
            self._field(property_path(path, name), inner, old.get(name), new.get(name))

    def _field(self, path: str, plain: str, old: Any, new: Any) -> None:
        fact = self._fact(plain)
        if fact.kind == "map" or plain in MAPS_OF_BRIDGE:
            is_computed = fact.keeps or plain in MAPS_OF_BRIDGE
            self._map(path, plain, {} if old is None and is_computed else old, new or {})
        elif fact.kind or plain in self._facts.blocks:
            self._container(path, plain, fact, old, new)
        else:
            self._scalar(path, plain, fact, fact.default if old is None else old, new)

    def _scalar(self, path: str, plain: str, fact: Field, old: Any, new: Any) -> None:
        if old == new or (not old and not new):
            return
        # The provider reads most scalars back: one that is absent is there, and empty.
        kind = Kind.UPDATE
        if new is None:
            kind = Kind.DELETE
        elif old is None and fact.unread:
            kind = Kind.ADD
        self._difference(path, plain, kind, forced=fact.replaces)

    def _map(self, path: str, plain: str, old: Mapping[str, Any] | None, new: Any) -> None:
        """Compare maps key by key.

        A map that was never given is absent until a refresh, and then comes as a whole.
        """
        forced = self._fact(plain).replaces
        if new == UNKNOWN or UNKNOWN in new.values() or old is None:
            if new:
                self._difference(path, plain, _kind(old, new), forced=forced)
            return
        for key in sorted(old.keys() | new.keys()):
            before = old.get(key)
            after = new.get(key)
            if before != after:
                self._add(property_path(path, key), _kind(before, after), forced, forced)

    def _container(self, path: str, plain: str, fact: Field, old: Any, new: Any) -> None:
        """Compare blocks or lists; an empty one is none, but a block without fields."""
        before = None if old in ([], None) else old
        after = None if new in ([], None) else new
        if before == after:
            return
        if before is None or after is None or after == UNKNOWN:
            value = before if after is None else after
            forced = fact.replaces or self._forces(plain, value, comes=after is not None)
            self._difference(path, plain, _kind(before, after), forced=forced)
        elif isinstance(before, list) and isinstance(after, list):
            if fact.kind == "set":
                self._set(path, plain, fact, before, after)
            else:
                self._list(path, plain, before, after)
        elif isinstance(before, Mapping) and isinstance(after, Mapping):
            self.blocks(path, plain, before, after)

    def _list(self, path: str, plain: str, old: list[Any], new: list[Any]) -> None:
        if plain in self._facts.blocks:
            for index, (before, after) in enumerate(zip_longest(old, new)):
                self._element(f"{path}[{index}]", plain, before, after)
            return
        removed, added = _edits(old, new)
        self._elements(path, plain, dict.fromkeys(removed), dict.fromkeys(added))

    def _set(self, path: str, plain: str, fact: Field, old: list[Any], new: list[Any]) -> None:
        before = sorted(old, key=lambda value: self._identity(plain, value))
        olds = {self._identity(plain, value): index for index, value in enumerate(before)}
        news = {self._identity(plain, value): index for index, value in enumerate(new)}
        removed = {index: before[index] for text, index in olds.items() if text not in news}
        added = {index: new[index] for text, index in news.items() if text not in olds}
        if not removed and not added:
            return
        if not all(self._is_whole(plain, value) for value in added.values()):
            # The bridge does not recognize the element in the inputs.
            self._difference(path, plain, Kind.UPDATE, forced=fact.replaces)
            return
        self._elements(path, plain, removed, added)

    def _elements(
        self, path: str, plain: str, removed: Mapping[int, Any], added: Mapping[int, Any]
    ) -> None:
        """Report elements: by the old list's index where they go, by the new one's otherwise."""
        for index in sorted({*removed, *added}):
            before = removed.get(index)
            after = added.get(index)
            if isinstance(before, Mapping) and isinstance(after, Mapping):
                self.blocks(f"{path}[{index}]", plain, before, after)
                continue
            kind = Kind.UPDATE if index in removed and index in added else Kind.ADD
            if index not in added:
                kind = Kind.DELETE
            comes = index in added
            forced = self._fact(plain).replaces or self._forces(
                plain, after if comes else before, comes=comes
            )
            self._add(f"{path}[{index}]", kind, forced, forced)

    def _element(self, path: str, plain: str, old: Any, new: Any) -> None:
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            self.blocks(path, plain, old, new)
        elif old != new:
            value = old if new is None else new
            forced = self._fact(plain).replaces or self._forces(plain, value, comes=new is not None)
            self._add(path, _kind(old, new), forced, forced)

    def _identity(self, plain: str, value: Any) -> str:
        """Return what tells an element of a set from others: its fields, absent ones as empty.

        Sorted by it, elements stand as in the provider's state.
        """
        return json.dumps(self._fields(plain, value))

    def _fields(self, plain: str, value: Any) -> Any:
        if isinstance(value, list):
            items = [self._fields(plain, item) for item in value]
            return sorted(items, key=json.dumps) if self._fact(plain).kind == "set" else items
        if not isinstance(value, Mapping):
            return value
        names = sorted({*self._facts.blocks.get(plain, ()), *value})
        return [
            self._fields(f"{plain}.{name}", value.get(name) or self._empty(f"{plain}.{name}"))
            for name in names
        ]

    def _empty(self, plain: str) -> Any:
        return [] if self._fact(plain).kind or plain in self._facts.blocks else ""

    def _is_whole(self, plain: str, value: Any) -> bool:
        """Whether an element of a set gives each field, so that the planned one is equal to it.

        The bridge never finds an element with a block inside in the inputs.
        """
        if not isinstance(value, Mapping):
            return True
        for name in self._facts.blocks.get(plain, ()):
            inner = f"{plain}.{name}"
            fact = self._fact(inner)
            given = value.get(name)
            if isinstance(given, Mapping) and inner in self._facts.blocks:
                return False
            contains = bool(fact.kind) or inner in self._facts.blocks
            if (given == UNKNOWN) if contains else (given is None and not fact.keeps):
                return False
        return True

    def _forces(self, plain: str, value: Any, *, comes: bool) -> bool:
        """Whether a block that comes or goes has a field that replaces the resource."""
        if isinstance(value, list):
            return any(self._forces(plain, item, comes=comes) for item in value)
        if not isinstance(value, Mapping):
            return False
        for name, inner in value.items():
            path = f"{plain}.{name}"
            fact = self._fact(path)
            if not comes and fact.keeps:
                continue
            if self._forces(path, inner, comes=comes) or (
                fact.replaces and (inner or fact.default)
            ):
                return True
        return False

    def _difference(self, path: str, plain: str, kind: Kind, *, forced: bool) -> None:
        # In a resource that is replaced, the bridge marks all fields of a block that forces it.
        around = plain.rpartition(".")[0]
        marked = forced or (bool(around) and self._fact(around).replaces)
        self._add(path, kind, forced, marked)

    def _add(self, path: str, kind: Kind, forced: bool, marked: bool) -> None:  # noqa: FBT001 (facts about one difference)
        self.found[path] = kind.as_replace() if marked else kind
        if forced:
            self.forcing.add(path)

    def _fact(self, plain: str) -> Field:
        return self._facts.fields.get(plain, UNKNOWN_FIELD)


def _kind(old: Any, new: Any) -> Kind:
    if new is None:
        return Kind.DELETE
    return Kind.ADD if old is None else Kind.UPDATE


def _edits(old: list[Any], new: list[Any]) -> tuple[set[int], set[int]]:
    """Return indices of the elements that a list of scalars loses, and of those that it gains."""
    removed: set[int] = set()
    added: set[int] = set()
    for kind, first, last, start, end in SequenceMatcher(a=old, b=new).get_opcodes():
        if kind != "equal":
            removed |= {*range(first, last)}
            added |= {*range(start, end)}
    return removed, added
