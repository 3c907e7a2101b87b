"""Folding of changes that are alike, so that many new berths are a few lines of a report. Pure.

A change with an effect on what runs, or a replacement, is never folded.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from berth.cli.pulumi.preview.lines import SIGNS, VERBS, property_text
from berth.components.core.words import counted, first_names, plural
from berth.components.plan.plan import Operation
from berth.stacks.preview.report import ComponentChanges, ResourceChange

_Item = TypeVar("_Item")

_FEWEST = 3
"""Number of alike components or changes from which on they are folded: fewer fit on a screen."""


@dataclass(frozen=True)
class Fold:
    """Components that change alike; mostly a single one."""

    parts: Sequence[ComponentChanges]

    @property
    def is_single(self) -> bool:
        """Whether there is only one component."""
        return len(self.parts) == 1

    @property
    def title(self) -> str:
        """Title of the component, or `8 berths: alice, bob, carol, dana, erin and 3 more`."""
        kind, _, name = self.parts[0].title.rpartition(" ")
        if self.is_single:
            return self.parts[0].title
        names = [name, *(_name_of(part) for part in self.parts[1:])]
        return f"{counted(len(names), kind)}: {first_names(names)}"

    @property
    def lines(self) -> list[tuple[Operation, str]]:
        """Changes of each of several components: `+ create 5 objects each: Namespace, …`."""
        by_operation: dict[Operation, Counter[str]] = {}
        for change in self.parts[0].changes:
            by_operation.setdefault(change.operation, Counter())[change.resource] += 1
        lines = []
        for operation, resources in by_operation.items():
            kinds = [
                kind if count == 1 else f"{count} {plural(kind)}"
                for kind, count in resources.items()
            ]
            number = counted(resources.total(), "object")
            text = f"{SIGNS[operation]} {VERBS[operation]} {number} each: {', '.join(kinds)}"
            lines.append((operation, text))
        return lines


def folds_of(
    parts: Sequence[ComponentChanges], *, whole: bool, with_properties: bool
) -> list[Fold]:
    """Return the components of a report, those that change alike together.

    Args:
        parts: components with their changes.
        whole: whether nothing is folded.
        with_properties: whether components are alike only if the changed properties are the same.
    """

    def likeness(part: ComponentChanges) -> Hashable:
        if whole or not all(map(_can_be_folded, part.changes)):
            return part.title
        return _likeness(part, with_properties=with_properties)

    return [Fold(alike) for alike in _together(parts, likeness)]


def folded_changes(
    changes: Sequence[ResourceChange], *, whole: bool, with_properties: bool
) -> list[Sequence[ResourceChange]]:
    """Return the changes of a component, many of one kind, or many deletions, together."""

    def likeness(change: ResourceChange) -> Hashable:
        shows_more = change.detail or (with_properties and change.properties)
        if whole or shows_more or not _can_be_folded(change):
            return change.urn
        # What goes without an effect is of no interest one by one.
        return change.operation, "" if change.operation == "delete" else change.resource

    return _together(changes, likeness)


def _together(
    items: Sequence[_Item], likeness: Callable[[_Item], Hashable]
) -> list[Sequence[_Item]]:
    """Return items in their order; those of which enough are alike in one group, at the first."""
    by_likeness: dict[Hashable, list[_Item]] = {}
    for item in items:
        by_likeness.setdefault(likeness(item), []).append(item)
    groups: list[Sequence[_Item]] = []
    for item in items:
        alike = by_likeness[likeness(item)]
        if len(alike) < _FEWEST:
            groups.append([item])
        elif item is alike[0]:
            groups.append(alike)
    return groups


def folded_text(changes: Sequence[ResourceChange], shown: Callable[[str], str]) -> str:
    """Return changes that are shown together, with names as a function shows them."""
    names: dict[str, list[str]] = {}
    for change in changes:
        names.setdefault(change.resource, []).append(shown(change.name))
    operation = changes[0].operation
    kinds = [f"{kind} {', '.join(of_kind)}" for kind, of_kind in names.items()]
    return f"{SIGNS[operation]} {VERBS[operation]} {'; '.join(kinds)}"


def _can_be_folded(change: ResourceChange) -> bool:
    return change.operation != "replace" and not change.effects


def _name_of(part: ComponentChanges) -> str:
    return part.title.rpartition(" ")[2]


def _likeness(part: ComponentChanges, *, with_properties: bool) -> Hashable:
    """Return what alike components have in common: kind and changes, apart from their names."""
    own = _name_of(part)
    kind = part.title.removesuffix(own)
    changes = []
    for change in part.changes:
        texts = tuple(map(property_text, change.properties)) if with_properties else ()
        name = change.name.replace(own, "*")
        changes.append((change.operation, change.resource, name, change.detail, texts))
    return kind, tuple(changes)
