"""Provider that serves the engine from the simulated cloud; each type has its own part."""

# ruff: noqa: N802 (the names of the calls are the protocol's)

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc
from pulumi.runtime.rpc import UNKNOWN

from berth.components.gke.field_rules import refusals
from berth.lab.plugins.gcp.cluster import SimulatedCluster
from berth.lab.plugins.gcp.differences import with_empty_maps, with_kept
from berth.lab.plugins.gcp.engine import Engine
from berth.lab.plugins.gcp.errors import GoogleApiError, ProviderError
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.node_pool import SimulatedNodePool
from berth.lab.plugins.gcp.plain import plain_types
from berth.lab.plugins.gcp.protocol import (
    Properties,
    UnfinishedError,
    always,
    answered,
    message_properties,
    plain_properties,
)
from berth.lab.plugins.gcp.resource import Cloud, ResourceType, location_problems
from berth.lab.plugins.gcp.retries import Clock, Result, until_accepted
from berth.lab.plugins.gcp.store import Store, StoredRecord

VERSION = "10.2.0"
"""Release of the real plugin that this stands in for."""

TYPES: dict[str, ResourceType] = {
    kind.token: kind for kind in (*plain_types(), SimulatedCluster(), SimulatedNodePool())
}

_DEFAULTS = "__defaults"


class SimulatedGoogleCloud(provider_pb2_grpc.ResourceProviderServicer):
    """The `gcp` provider of the lab: a method for each request of the engine.

    The methods run in threads, many at a time; the store's lock guards what they share. The engine
    keeps secrets to itself, since the provider does not accept them.
    """

    def __init__(
        self, store: Store, fleet: SimulatedFleet, engine: Engine, clock: Clock | None = None
    ) -> None:
        self._store = store
        self._fleet = fleet
        self._engine = engine
        self._clock = clock or Clock()
        self._project: str | None = None
        self._places: dict[str, str | None] = {}

    GetPluginInfo = always(plugin_pb2.PluginInfo(version=VERSION))
    GetSchema = always(
        provider_pb2.GetSchemaResponse(schema=f'{{"name": "gcp", "version": "{VERSION}"}}')
    )
    # Retries go on, as those of the real provider do; a second interrupt kills the plugin.
    Cancel = always(empty_pb2.Empty())
    # It takes neither secrets nor outputs.
    Handshake = always(provider_pb2.ProviderHandshakeResponse())
    # The engine compares the provider's own settings.
    DiffConfig = always(provider_pb2.DiffResponse())

    @answered
    def CheckConfig(self, request: Any) -> Any:
        """Take every setting."""
        return provider_pb2.CheckResponse(inputs=request.news)

    @answered
    def Configure(self, request: Any) -> Any:
        """Take the project, region and zone of resources that name none."""
        settings = plain_properties(request.args)
        self._project = settings.get("project")
        region = settings.get("region")
        self._places = {"region": region, "location": settings.get("zone") or region}
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    @answered
    def Check(self, request: Any) -> Any:
        """Fill in defaults, and refuse what the real provider refuses before it sends anything."""
        kind = _type(request.urn)
        inputs = plain_properties(request.news)
        name = request.urn.split("::")[-1]
        places = {"project": self._project, kind.located: self._places.get(kind.located)}
        defaults = {
            key: value for key, value in places.items() if key and value and not inputs.get(key)
        }
        if kind.named and not inputs.get("name"):
            defaults["name"] = self._name(request, inputs)
        inputs |= {**defaults, _DEFAULTS: [*defaults]}
        failures = [
            provider_pb2.CheckFailure(property=key, reason=f"{key}: required field is not set")
            for key in filter(None, places)
            if not inputs.get(key)
        ]
        failures = failures or [
            provider_pb2.CheckFailure(
                reason=f"{found.provider_text}. Examine values at '{name}.{found.place.examined}'."
            )
            for found in refusals(inputs, kind.facts)
        ]
        # A type's own rules rest on the names and kinds of the values.
        failures = failures or [
            provider_pb2.CheckFailure(property=path, reason=reason)
            for path, reason in location_problems(kind, inputs)
        ]
        return provider_pb2.CheckResponse(inputs=message_properties(inputs), failures=failures)

    @staticmethod
    def _name(request: Any, inputs: Properties) -> str:
        olds = plain_properties(request.olds)
        if "name" in (olds.get(_DEFAULTS) or []) and olds.get("name"):
            return str(olds["name"])
        prefix = inputs.get("namePrefix") or f"{request.urn.split('::', 3)[-1]}-"
        return f"{prefix}{request.randomSeed.hex()[:7]}"

    @answered
    def Diff(self, request: Any) -> Any:
        """Compare the recorded resource with the program's."""
        kind = _type(request.urn)
        state = plain_properties(request.olds)
        news = plain_properties(request.news)
        found = kind.differences(state, news, request.ignoreChanges)
        return provider_pb2.DiffResponse(
            changes=(
                provider_pb2.DiffResponse.DIFF_SOME
                if found
                else provider_pb2.DiffResponse.DIFF_NONE
            ),
            replaces=_properties(path for path, change in found.items() if change.replaces),
            diffs=_properties(found),
            detailedDiff={
                path: provider_pb2.PropertyDiff(kind=difference.value, inputDiff=True)  # type: ignore[arg-type]
                for path, difference in found.items()
            },
            hasDetailedDiff=True,
            # A name is taken until its resource is gone. Said of every difference, and of none: the
            # engine asks too when it goes on with a replacement that failed half way, and would
            # else delete the new resource by the old one's id.
            deleteBeforeReplace=plain_properties(request.old_inputs).get("name")
            == news.get("name"),
        )

    @answered
    def Create(self, request: Any) -> Any:
        """Create; in a preview, only return the outputs."""
        kind = _type(request.urn)
        inputs = _given(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(
                properties=message_properties({**inputs, **dict.fromkeys(kind.computed, UNKNOWN)})
            )
        cloud = self._cloud(request.urn)
        record = StoredRecord(
            kind.id(inputs),
            inputs,
            {"created": datetime.now(UTC).isoformat(timespec="milliseconds")},
        )
        with _named(f"Error creating {kind.title}"):
            self._until_accepted(
                lambda: self._create(kind, cloud, record), request.timeout, kind, "create"
            )
        outputs = kind.outputs(kind.observe(cloud, record))
        if reasons := kind.unfinished(cloud, None, record):
            raise UnfinishedError(record.id, outputs, reasons)
        return provider_pb2.CreateResponse(id=record.id, properties=message_properties(outputs))

    def _create(self, kind: ResourceType, cloud: Cloud, record: StoredRecord) -> None:
        """Create a resource, or nothing."""
        with self._store.locked():
            if self._store.get(record.id):
                raise GoogleApiError("exists", path=record.id)
            kind.create(cloud, record)
            self._store.put(record)
            try:
                kind.settle(cloud, record)
            except ProviderError:
                # What was made half is taken back: the engine has no record of it.
                with contextlib.suppress(ProviderError):
                    kind.undo(cloud, record)
                self._store.remove(record.id)
                raise

    def _until_accepted(
        self, request: Callable[[], Result], seconds: float, kind: ResourceType, operation: str
    ) -> Result:
        """Return the result of a request that is repeated while Google refuses it with 429.

        Args:
            request: creates or changes a resource.
            seconds: timeout that the program gives; 0 for the provider's own.
            kind: type of the resource.
            operation: `create` or `update`.
        """
        timeout = seconds or kind.facts.timeouts[operation]
        return until_accepted(request, timeout, self._clock)

    @answered
    def Read(self, request: Any) -> Any:
        """Read a resource, without inputs for an import; the answer is empty if it is gone."""
        kind = _type(request.urn)
        resource = (
            request.id if request.id.startswith("projects/") else self._find(kind, request.id)
        )
        record = self._store.get(resource) if resource else None
        if record is None:
            return provider_pb2.ReadResponse()
        record = kind.observe(self._cloud(request.urn), record)
        inputs = record.inputs
        if asked := plain_properties(request.inputs):
            # Only what the program says can differ from it; the rest is in the outputs.
            inputs = _asked(asked, record.inputs) | {_DEFAULTS: asked.get(_DEFAULTS, [])}
        outputs = with_empty_maps(kind.outputs(record), kind.facts)
        return provider_pb2.ReadResponse(
            id=record.id, properties=message_properties(outputs), inputs=message_properties(inputs)
        )

    def _find(self, kind: ResourceType, text: str) -> str:
        """The path of the one resource whose short id, such as `location/cluster/pool`, this is."""
        parts = text.split("/")
        matching = []
        for record in self._store.list(kind.path.split("/")[-2]):
            path = record.id.split("/")
            if path[-1] == parts[-1] and set(parts) <= set(path):
                matching.append(record.id)
        return matching[0] if len(matching) == 1 else ""

    @answered
    def Update(self, request: Any) -> Any:
        """Change in place; in a preview, only return the outputs."""
        kind = _type(request.urn)
        inputs = _given(request.news)
        if request.preview:
            olds = plain_properties(request.olds)
            return provider_pb2.UpdateResponse(
                properties=message_properties({**olds, **with_kept(olds, inputs, kind.facts)})
            )
        cloud = self._cloud(request.urn)
        try:
            with _named(f"Error updating {kind.title} {request.id!r}"):
                old, record = self._until_accepted(
                    lambda: self._update(kind, cloud, request.id, inputs),
                    request.timeout,
                    kind,
                    "update",
                )
        except ProviderError as error:
            # The bridge reports what is there, so that the next `pulumi up` updates it again.
            reason = f"updating {request.urn}: 1 error occurred:\n\t* {error}\n\n"
            raise UnfinishedError(request.id, plain_properties(request.olds), [reason]) from None
        outputs = kind.outputs(kind.observe(cloud, record))
        if reasons := kind.unfinished(cloud, old, record):
            raise UnfinishedError(record.id, outputs, reasons)
        return provider_pb2.UpdateResponse(properties=message_properties(outputs))

    def _update(
        self, kind: ResourceType, cloud: Cloud, resource: str, inputs: Properties
    ) -> tuple[StoredRecord, StoredRecord]:
        """Change a resource, or nothing; return what it was and what it is."""
        with self._store.locked():
            old = self._store.get(resource)
            if old is None:
                raise ProviderError(
                    f"{resource} is gone from the simulated cloud; `pulumi refresh` takes note of"
                    " that, and the next `pulumi up` makes it again"
                )
            record = StoredRecord(
                old.id, with_kept(old.inputs, inputs, kind.facts), dict(old.state)
            )
            kind.update(cloud, old, record)
            self._store.put(record)
            kind.settle(cloud, record)
        return old, record

    @answered
    def Delete(self, request: Any) -> Any:
        """Delete; a resource that is gone is not an error."""
        kind = _type(request.urn)
        with _named(f"Error deleting {kind.title}"), self._store.locked():
            if record := self._store.get(request.id):
                # Protection is the provider's own: what counts is what was last asked for.
                kind.delete(self._cloud(request.urn), record)
                self._store.remove(record.id)
        return empty_pb2.Empty()

    def _cloud(self, urn: str) -> Cloud:
        return Cloud(self._store, self._fleet, self._engine, urn)


def _type(urn: str) -> ResourceType:
    token = urn.split("::")[2].rsplit("$", maxsplit=1)[-1]
    try:
        return TYPES[token]
    except KeyError:
        raise ProviderError(
            f"the simulated GKE of this lab has no {token}; it has: {', '.join(sorted(TYPES))}"
        ) from None


def _properties(paths: Iterable[str]) -> list[str]:
    """Return the properties of the resource in which paths begin."""
    return sorted({re.split(r"[.\[]", path, maxsplit=1)[0] for path in paths})


def _given(properties: Any) -> Properties:
    """Return a program's inputs, without those that the engine or this provider adds."""
    return {
        key: value
        for key, value in plain_properties(properties).items()
        if not key.startswith("__") and value is not None
    }


def _asked(old: Properties, there: Properties) -> Properties:
    """Current values of the inputs that the program gave; all other values are in the outputs."""
    found = {}
    for key in old.keys() & there.keys():
        before = old[key]
        now = there[key]
        found[key] = (
            _asked(before, now) if isinstance(before, dict) and isinstance(now, dict) else now
        )
    return found


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    """Say before an error what was being done, as the provider does."""
    try:
        yield
    except ProviderError as error:
        raise ProviderError(f"{what}: {error}") from None
