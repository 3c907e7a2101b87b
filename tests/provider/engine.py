"""Part of Pulumi's engine: berth's program runs, and Google's provider answers for its resources.

An update makes every resource; a preview compares, as the engine does, and makes nothing. What
will only be known after a replacement is unknown to what depends on it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pulumi
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.rpc import UNKNOWN

from berth.components.gke.provider_fields import CLUSTER, NODE_POOL
from berth.components.sharing import offered_pools
from berth.lab.plugins.gcp.provider import TYPES
from berth.stacks.program.google import register_in_google
from berth.stacks.settings.environment import EnvironmentSettings
from tests.provider.plugin import (
    Difference,
    Properties,
    Provider,
    ProviderError,
    ProviderPanicError,
    There,
)
from tests.provider.rest import Request
from tests.unit.recording import Recorder, run

Key = tuple[str, str]
"""Type and name of a resource."""

_LASTING = (CLUSTER, NODE_POOL)
"""Types of whose outputs a change in place leaves those that others are made of. To plan their
updates takes most of the time."""


@dataclass(frozen=True)
class Resource:
    """Resource of a stack in Google Cloud.

    Attributes:
        there: what the state of the stack has.
        written: the inputs as the program registered them.
        needs: keys of the resources from which each property comes.
    """

    there: There
    written: Properties
    needs: Mapping[str, frozenset[Key]]


@dataclass(frozen=True)
class Verdict:
    """Provider's verdict on an edit of one resource.

    Attributes:
        before: the resource; None for a new one.
        after: the new inputs with the provider's defaults; None for a resource that goes.
        difference: what the provider says; None for a resource that comes or goes.
        requests: requests of the update that change something.
        problems: why the provider refuses the edit or the update.
        panic: text of the provider's panic; empty without one.
    """

    before: There | None
    after: Properties | None
    difference: Difference | None = None
    requests: Sequence[Request] = ()
    problems: Sequence[str] = ()
    panic: str = ""


Stack = Mapping[Key, Resource]


class _Engine(Recorder):
    """Answers of the engine to a program's registrations of Google's resources."""

    def __init__(self, provider: Provider, before: Stack | None) -> None:
        super().__init__()
        self._provider = provider
        self._before = before
        self._lock = threading.Lock()
        self._requests: dict[Key, Any] = {}
        self._replaced: dict[Key, bool] = {}
        self.after: dict[Key, Resource] = {}
        self.verdicts: dict[Key, Verdict] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note what mocks are not told about a registration: dependencies and options."""
        original = MockMonitor.RegisterResource

        def register(monitor: MockMonitor, request: Any) -> Any:
            self._requests[request.type, request.name] = request
            return original(monitor, request)  # type: ignore[no-untyped-call]

        with patch.object(MockMonitor, "RegisterResource", register):
            yield

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, Properties]:
        with self._lock:
            inputs = plain(args.inputs)
            if args.typ == "pulumi:providers:gcp":
                self._provider.configure(inputs)
            if args.typ not in TYPES:
                return super().new_resource(args)
            return self._register((args.typ, args.name), inputs)

    def _register(self, key: Key, written: Properties) -> tuple[str, Properties]:
        request = self._requests[key]
        needs = {
            name: frozenset(map(_key, found.urns))
            for name, found in request.propertyDependencies.items()
        }
        old = (self._before or {}).get(key)
        inputs, problems = self._provider.check(*key, old.there.inputs if old else None, written)
        ignored = tuple(request.ignoreChanges)
        if problems:
            before = old.there if old else None
            self.verdicts[key] = Verdict(before, inputs, problems=problems)
            there = There(*key, "", inputs, written, ignored)
        elif self._before is None:
            there = self._created(key, inputs, ignored)
        elif old is None:
            self.verdicts[key] = Verdict(None, inputs)
            there = self._created(key, inputs, ignored, preview=True)
        else:
            there = self._compared(key, old.there, inputs, request.replace_with)
        self.after[key] = Resource(there, written, needs)
        return there.id, there.outputs

    def _created(
        self, key: Key, inputs: Properties, ignored: Sequence[str], *, preview: bool = False
    ) -> There:
        resource_id, outputs = self._provider.create(*key, inputs, preview=preview)
        return There(*key, resource_id, inputs, outputs, ignored)

    def _compared(self, key: Key, old: There, inputs: Properties, goes_with: Any) -> There:
        """Compare a resource, and return the planned one."""
        verdict = self._verdict_on(old, inputs)
        difference = verdict.difference
        must_go = self._replaced.get(key) or any(_key(urn) in self._replaced for urn in goes_with)
        if difference is None:
            self.verdicts[key] = verdict
            return old
        if difference.kinds or must_go:
            self.verdicts[key] = verdict
        if difference.replaces or must_go:
            self._replaced[key] = True
            if difference.deleted_first or must_go:
                self._replace_dependents({key})
            return self._created(key, inputs, old.ignored, preview=True)
        if difference.kinds and key[0] not in _LASTING:
            outputs = self._provider.update(old, inputs, preview=True)
            return There(*key, old.id, inputs, outputs, old.ignored)
        return old

    def _verdict_on(self, old: There, inputs: Properties) -> Verdict:
        """Return the verdict on inputs, which those of the state need not ask for.

        That they make no difference is a test of its own.
        """
        if inputs == old.inputs:
            return Verdict(old, inputs, Difference({}, replaces=False))
        return verdict_on(self._provider, old, inputs)

    def _replace_dependents(self, gone: set[Key]) -> None:
        """Ask what is replaced with resources that are deleted first, as the engine does.

        It takes each property that comes from one of them as unknown.
        """
        for key, resource in (self._before or {}).items():
            unknown = [name for name, needs in resource.needs.items() if needs & gone]
            if not unknown or key in gone:
                continue
            inputs = resource.there.inputs | dict.fromkeys(unknown, UNKNOWN)
            verdict = verdict_on(self._provider, resource.there, inputs)
            if verdict.panic:
                self.verdicts[key] = verdict
            if verdict.difference and verdict.difference.replaces:
                self._replaced[key] = True
                gone.add(key)


def verdict_on(provider: Provider, old: There, inputs: Properties) -> Verdict:
    """Return the provider's verdict on new inputs of a resource."""
    news = dict(inputs)
    for path in old.ignored:  # the engine puts the old values back
        news.pop(path, None)
        if path in old.inputs:
            news[path] = old.inputs[path]
    try:
        difference = provider.diff(old, news)
    except ProviderPanicError as panic:
        return Verdict(old, news, panic=str(panic))
    return Verdict(old, news, difference)


def with_requests(provider: Provider, verdict: Verdict) -> Verdict:
    """Return a verdict on a change in place with the requests that the update sends."""
    old = verdict.before
    new = verdict.after
    difference = verdict.difference
    if old is None or new is None or not difference or not difference.kinds or difference.replaces:
        return verdict
    problems = []
    with provider.apis.undone() as requests:
        try:
            provider.update(old, new)
        except ProviderError as error:
            problems.append(str(error))
    return Verdict(old, new, difference, requests, problems)


def up(provider: Provider, name: str, settings: EnvironmentSettings) -> dict[Key, Resource]:
    """Make every resource of an environment in Google Cloud.

    Raises:
        AssertionError: the provider refuses one.
    """
    engine = _Engine(provider, None)
    _run(engine, name, settings)
    refused = {key: verdict.problems for key, verdict in engine.verdicts.items()}
    assert not refused, refused
    return engine.after


def preview(
    provider: Provider, before: Stack, name: str, settings: EnvironmentSettings
) -> dict[Key, Verdict]:
    """Return the provider's verdict on each resource that an edit changes."""
    engine = _Engine(provider, before)
    _run(engine, name, settings)
    gone = {
        key: Verdict(resource.there, None)
        for key, resource in before.items()
        if key not in engine.after
    }
    return engine.verdicts | gone


def _run(engine: _Engine, name: str, settings: EnvironmentSettings) -> None:
    async def program() -> None:
        pools = offered_pools(settings.pools, settings.sharing)
        await register_in_google(name, settings, pools, {})

    with engine.listening():
        run(program, name, recorder=engine)


def plain(value: Any) -> Any:
    """Return a value of a program as the provider gets it."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return UNKNOWN if isinstance(value, pulumi.output.Unknown) else value


def _key(urn: str) -> Key:
    kind, name = urn.split("::")[2:4]
    return kind.rpartition("$")[2], name
