"""Differences between a resource's state and new inputs, as Google's provider finds them.

The provider compares the state, which holds what is there, with the inputs. A field that is left
out keeps its value where it is optional and computed; else it goes back to its default. What a
difference does is a fact about the field (`berth.components.gke.provider_fields`).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from pulumi.runtime.rpc import UNKNOWN

from berth.components.gke.provider_fields import Field, ResourceFields
from berth.lab.plugins.gcp.resource import Kind, last_part

_UNKNOWN_FIELD = Field()


def differences(
    state: dict[str, Any],
    inputs: dict[str, Any],
    facts: ResourceFields,
    ignored: Iterable[str] = (),
) -> dict[str, Kind]:
    """Kind of each difference by path, such as `nodeConfig.taints[0].value`.

    Args:
        state: the recorded outputs.
        inputs: the inputs that are asked for; parts may be unknown, which counts as different.
        facts: the fields of the resource's type.
        ignored: paths whose difference, or one below them, does not count.
    """
    found: dict[str, Kind] = {}
    _Comparison(facts, found).blocks("", "", state, inputs)
    skipped = tuple(ignored)
    return {path: kind for path, kind in found.items() if not _below(path, skipped)}


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


def _below(path: str, tops: Iterable[str]) -> bool:
    plain = re.sub(r"\[\d+\]", "", path)
    return any(top in (path, plain) or path.startswith((f"{top}.", f"{top}[")) for top in tops)


class _Comparison:
    """Comparison of a state with inputs."""

    def __init__(self, facts: ResourceFields, found: dict[str, Kind]) -> None:
        self._facts = facts
        self._found = found

    def blocks(self, path: str, plain: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        """Compare two blocks field by field, without outputs, which nobody can give."""
        given = {name for name in new if not name.startswith("__")}
        known = self._facts.blocks.get(plain, ())
        for name in sorted(given | (old.keys() & set(known))):
            inner = f"{plain}.{name}" if plain else name
            fact = self._facts.fields.get(inner, _UNKNOWN_FIELD)
            self._field(
                f"{path}.{name}" if path else name, inner, fact, old.get(name), new.get(name)
            )

    def _field(self, path: str, plain: str, fact: Field, old: Any, new: Any) -> None:
        if new is None:
            if fact.keeps:
                return
            new = fact.default
        if old is None:
            old = fact.default
        if isinstance(old, dict) and isinstance(new, dict) and plain in self._facts.blocks:
            self.blocks(path, plain, old, new)
        elif isinstance(old, list) and isinstance(new, list):
            self._elements(path, plain, fact, old, new)
        elif isinstance(old, dict) and isinstance(new, dict):
            for key in sorted(old.keys() | new.keys()):
                self._difference(
                    f"{path}.{key}", fact, old.get(key), new.get(key), forced=fact.replaces
                )
        elif plain in self._facts.blocks:
            forced = fact.replaces or self._forces(
                plain, old if new is None else new, new is not None
            )
            self._difference(path, fact, old, new, forced=forced)
        else:
            self._difference(path, fact, old, new, forced=fact.replaces)

    def _elements(self, path: str, plain: str, fact: Field, old: list[Any], new: list[Any]) -> None:
        if bool(old) != bool(new):
            forced = fact.replaces or self._forces(plain, new or old, bool(new))
            self._difference(path, fact, old or None, new or None, forced=forced)
            return
        for index, before, after in _pairs(fact, old, new):
            if isinstance(before, dict) and isinstance(after, dict):
                self.blocks(f"{path}[{index}]", plain, before, after)
            else:
                self._difference(f"{path}[{index}]", fact, before, after, forced=fact.replaces)

    def _forces(self, plain: str, value: Any, given: bool) -> bool:  # noqa: FBT001 (a fact about the value)
        """Whether a block that comes or goes has a field that replaces the resource."""
        if isinstance(value, list):
            return any(self._forces(plain, item, given) for item in value)
        if not isinstance(value, dict):
            return False
        for name, inner in value.items():
            path = f"{plain}.{name}"
            fact = self._facts.fields.get(path, _UNKNOWN_FIELD)
            if not given and fact.keeps:
                continue
            if self._forces(path, inner, given) or (
                fact.replaces and not _same(fact, fact.default, inner)
            ):
                return True
        return False

    def _difference(self, path: str, fact: Field, old: Any, new: Any, *, forced: bool) -> None:
        if _same(fact, old, new):
            return
        kind = Kind.ADD if old is None else Kind.DELETE if new is None else Kind.UPDATE
        self._found[path] = kind.as_replace() if forced else kind


def _pairs(fact: Field, old: list[Any], new: list[Any]) -> Iterator[tuple[int, Any, Any]]:
    """Yield elements that stand for each other, with their index; None where one list is shorter.

    What both of two sets have is the same, wherever it stands.
    """
    befores = list(enumerate(old))
    afters = list(enumerate(new))
    if fact.kind == "set":
        befores = [(index, value) for index, value in befores if value not in new]
        afters = [(index, value) for index, value in afters if value not in old]
    for before, after in zip_longest(befores, afters):
        index, _ = after or before
        yield index, before and before[1], after and after[1]


def _same(fact: Field, old: Any, new: Any) -> bool:
    if new == UNKNOWN:
        return False
    if isinstance(old, str) and isinstance(new, str):
        if fact.reference:
            return last_part(old) == last_part(new)
        if fact.caseless:
            return old.lower() == new.lower()
        return (old or fact.empty) == (new or fact.empty)
    # Nothing, empty and false are the same to the API; zero is not (a pool of no nodes), and
    # neither is an empty block.
    return bool(old == new) or (_nothing(old) and _nothing(new))


def _nothing(value: Any) -> bool:
    return value is None or value is False or value in ("", [])
