"""Recorder of the provider's verdicts: it brings environments up, and asks about every edit."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from berth.components.gke.provider_fields import CLUSTER, NODE_POOL
from tests.provider.edits import (
    Changes,
    Environment,
    Place,
    bring_up,
    changes_between,
    edited_environments,
    field_edits,
    setting_edits,
    settings_for_google,
    with_changes,
)
from tests.provider.engine import (
    Key,
    Resource,
    Verdict,
    preview,
    verdict_on,
    with_requests,
)
from tests.provider.plugin import Provider
from tests.provider.verdicts import Base, Recorded, recorded_of

_READ_OF_OUTPUTS = ("masterVersion",)


@dataclass
class Recording:
    """Verdicts of the provider on all edits.

    Attributes:
        provider: the provider.
        environments: environments that have all fields that berth sets.
        bases: resources that are edited, by their names in the file.
        edits: the verdicts.
        panics: edits of settings that crash the provider.
    """

    provider: Provider
    environments: Sequence[Environment]
    bases: dict[str, Base] = field(default_factory=dict)
    edits: list[Recorded] = field(default_factory=list)
    panics: list[str] = field(default_factory=list)
    _done: set[str] = field(default_factory=set)
    """Settings that are edited in an environment already; the next ones edit the others."""
    _times: Counter[str] = field(default_factory=Counter)

    def record(self) -> None:
        """Ask about every edit of a field, and every edit of a setting."""
        logging.disable(logging.CRITICAL)  # Pulumi logs the warnings of every run
        try:
            self._record_fields()
            for name, values in edited_environments().items():
                self._record_settings(name, dict(values))
        finally:
            logging.disable(logging.NOTSET)

    def _record_fields(self) -> None:
        owners: dict[int, Environment] = {}
        everything: list[Resource] = []
        for environment in self.environments:
            # Programs register in any order.
            everything += [environment.resources[key] for key in sorted(environment.resources)]
            owners |= dict.fromkeys(map(id, environment.resources.values()), environment)
        entered = None
        for resource, what, new in field_edits(everything):
            environment = owners[id(resource)]
            if environment is not entered:
                environment.enter(self.provider)
                entered = environment
            verdict = self._verdict_on(resource, new)
            self._add(environment, resource, what, new, verdict)

    def _verdict_on(self, resource: Resource, new: Changes) -> Verdict:
        there = resource.there
        written = with_changes(resource.written, new)
        inputs, problems = self.provider.check(there.type, there.name, there.inputs, written)
        if problems:
            return Verdict(there, inputs, problems=problems)
        return with_requests(self.provider, verdict_on(self.provider, there, inputs))

    def _record_settings(self, name: str, values: dict[str, Any]) -> None:
        own, _ = settings_for_google(values)
        environment = bring_up(self.provider, f"edits-{name}", own)
        environment.enter(self.provider)
        asked: set[str] = set()
        done = frozenset(self._done)
        for setting, edited in setting_edits(values, done):
            before = environment.resources
            verdicts = preview(self.provider, before, environment.stack, edited)
            for key, verdict in sorted(verdicts.items(), key=itemgetter(0)):
                if verdict.panic:
                    self.panics.append(f"{setting} of {name}: {key}: {verdict.panic[:300]}")
                resource = before.get(key)
                if resource is None or verdict.after is None:
                    continue
                # The protocol's maps have no order.
                new = sorted(changes_between(resource.there.inputs, verdict.after), key=_place)
                question = repr((key, new))
                if new and question not in asked:
                    asked.add(question)
                    self._done.add(setting)
                    answer = with_requests(self.provider, verdict)
                    self._add(environment, resource, f"edit {setting}", new, answer)

    def _add(
        self,
        environment: Environment,
        resource: Resource,
        what: str,
        new: Changes,
        verdict: Verdict,
    ) -> None:
        name = self._base(environment, (resource.there.type, resource.there.name))
        edit = recorded_of(name, what, new, verdict)
        self._times[edit.name] += 1
        if (times := self._times[edit.name]) > 1:
            edit = replace(edit, what=f"{what} ({times})")
        self.edits.append(edit)

    def _base(self, environment: Environment, key: Key) -> str:
        """Record a resource that is edited, with its cluster if it is a pool; its name."""
        kind, own_name = key
        name = f"{environment.stack}/{kind.rpartition(':')[2]}/{own_name}"
        if name not in self.bases:
            cluster = ""
            if kind == NODE_POOL:
                of = next(other for other in environment.resources if other[0] == CLUSTER)
                cluster = self._base(environment, of)
            there = environment.resources[key].there
            inputs = {name: value for name, value in there.inputs.items() if name != "__defaults"}
            outputs = {
                name: there.outputs[name] for name in _READ_OF_OUTPUTS if name in there.outputs
            }
            self.bases[name] = Base(kind, own_name, _without_defaults(inputs), outputs, cluster)
        return name


def _place(change: tuple[Place, Any]) -> str:
    """Return the place of a change, to sort by."""
    return repr(change[0])


def _without_defaults(value: Any) -> Any:
    """Return inputs without the bridge's lists of the defaults that it filled in."""
    if isinstance(value, dict):
        return {
            key: _without_defaults(inner) for key, inner in value.items() if key != "__defaults"
        }
    return [_without_defaults(inner) for inner in value] if isinstance(value, list) else value
