"""State that Google's provider plans for a resource: what is there, with the inputs laid over it.

A field that the inputs leave out keeps its value where it is optional and computed; else it goes
back to its default, or away. Terraform has no difference between an absent scalar and an empty
one, nor between an absent block or list and an empty one.
"""

from collections.abc import Mapping
from typing import Any

from pulumi.runtime.rpc import UNKNOWN

from berth.components.gke.provider_fields import Field, ResourceFields
from berth.lab.plugins.gcp.suppressed import Change, is_suppressed

UNKNOWN_FIELD = Field()
"""Facts about a field of which nothing is known."""


class Planner:
    """Planner of one resource's state.

    Args:
        state: the recorded outputs.
        inputs: the inputs that are asked for; parts may be unknown.
        facts: the fields of the resource's type.
    """

    def __init__(
        self, state: Mapping[str, Any], inputs: Mapping[str, Any], facts: ResourceFields
    ) -> None:
        self._state = state
        self._inputs = inputs
        self._facts = facts

    def planned(self) -> dict[str, Any]:
        """Return the fields that can be given, as they are to be."""
        return self._block("", self._state, self._inputs)

    def _block(self, path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        names = [name for name in new if not name.startswith("__")]
        values = {}
        for name in dict.fromkeys([*self._facts.blocks.get(path, ()), *names]):
            inner = f"{path}.{name}" if path else name
            value = self._field(name, inner, old.get(name), new.get(name))
            if value is not None:
                values[name] = value
        return values

    def _field(self, name: str, path: str, old: Any, new: Any) -> Any:
        fact = self._facts.fields.get(path, UNKNOWN_FIELD)
        if new == UNKNOWN:
            # The provider shows no difference of such a set until it is known.
            return old if fact.kind == "set" and fact.keeps else new
        if fact.kind == "map":
            return self._map(fact, old, new)
        if fact.kind or path in self._facts.blocks:
            return self._container(fact, path, old, new)
        return self._scalar(fact, name, old, new)

    def _container(self, fact: Field, path: str, old: Any, new: Any) -> Any:
        """Plan blocks or a list; an empty list is none, and an empty block is one."""
        name = path.rpartition(".")[2]
        if not new and new != {}:
            return old if fact.keeps or self._suppressed(fact, name, old, None) else None
        if (fact.kind or not old) and self._suppressed(fact, name, old, new):
            return old
        return self._blocks(fact, path, old, new) if path in self._facts.blocks else new

    def _scalar(self, fact: Field, name: str, old: Any, new: Any) -> Any:
        if new is None and (fact.keeps or old is None):
            return old
        wanted = fact.default if new is None else new
        old = fact.default if old is None else old
        if (not old and not wanted) or self._suppressed(fact, name, old, wanted):
            return old
        return wanted

    def _map(self, fact: Field, old: Any, new: Any) -> Any:
        before = old if isinstance(old, Mapping) else {}
        if new is None:
            if fact.keeps:
                return old
            new = {}
        stay = {
            key: value
            for key, value in before.items()
            if self._suppressed(fact, key, value, new.get(key))
        }
        return {**new, **stay}

    def _blocks(self, fact: Field, path: str, old: Any, new: Any) -> Any:
        if isinstance(new, Mapping):
            return self._block(path, old if isinstance(old, Mapping) else {}, new)
        if not isinstance(new, list):
            return new
        olds = old if isinstance(old, list) and fact.kind == "list" else []
        befores = [*olds, *[{}] * (len(new) - len(olds))]
        return [
            self._block(path, before if isinstance(before, Mapping) else {}, after)
            if isinstance(after, Mapping)
            else after
            for before, after in zip(befores, new, strict=False)
        ]

    def _suppressed(self, fact: Field, name: str, old: Any, new: Any) -> bool:
        if not fact.suppress or old == new:
            return False
        return is_suppressed(fact.suppress, Change(old, new, name, self._state, self._inputs))
