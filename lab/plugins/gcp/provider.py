"""Provider that serves the engine from the simulated cloud; each type has its own part.

Answers to (read): proto/pulumi/provider.proto of https://github.com/pulumi/pulumi (requests), and
    google-beta/services of https://github.com/hashicorp/terraform-provider-google-beta (texts
    before errors, timeouts, deletionPolicy).
"""

from __future__ import annotations

import contextlib
import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from berth.lab.plugins.gcp.cluster import Cluster
from berth.lab.plugins.gcp.compute import Firewall, Network, Router, RouterNat, Subnetwork
from berth.lab.plugins.gcp.differences import differences, with_kept
from berth.lab.plugins.gcp.errors import already_exists
from berth.lab.plugins.gcp.field_rules import field_problems
from berth.lab.plugins.gcp.identities import IamMember, ServiceAccount
from berth.lab.plugins.gcp.node_pool import NodePool
from berth.lab.plugins.gcp.resource import Cloud, location_problems
from berth.lab.plugins.gcp.store import Record
from berth.lab.plugins.provider import (
    CheckRequest,
    CheckResult,
    CreateRequest,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    InitFailedError,
    Provider,
    ProviderError,
    ReadRequest,
    ReadResult,
    UpdateRequest,
)
from berth.lab.plugins.values import UNKNOWN, Properties, Unknown, reveal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berth.lab.plugins.gcp.fleet import Fleet
    from berth.lab.plugins.gcp.resource import ResourceType
    from berth.lab.plugins.gcp.store import Store

TYPES: dict[str, ResourceType] = {
    kind.token: kind
    for kind in (
        *(Network(), Subnetwork(), Firewall(), Router(), RouterNat()),
        *(ServiceAccount(), IamMember()),
        *(Cluster(), NodePool()),
    )
}

LATENCY_VARIABLE = "BERTH_LAB_GKE_LATENCY"

_DEFAULTS = "__defaults"


class SimulatedGoogleCloud(Provider):
    """The `gcp` provider of the lab.

    Args:
        store: the cloud's records.
        fleet: the API server that node pools' nodes go to.
    """

    def __init__(self, store: Store, fleet: Fleet) -> None:
        super().__init__()
        self._store = store
        self._fleet = fleet
        self._settings: Properties = {}

    def configure(self, settings: Properties) -> None:
        """See `Provider`; `project`, `region` and `zone` are defaults of resources without them."""
        self._settings = reveal(settings)
        for key in ("project", "region", "zone"):
            # The variables that the real provider falls back to.
            value = self._settings.get(key) or os.environ.get(f"GOOGLE_{key.upper()}")
            if value:
                self._settings[key] = value

    def check(self, request: CheckRequest) -> CheckResult:
        """See `Provider`."""
        kind = _type(request.type)
        inputs: Properties = dict(reveal(request.news))
        defaults = []
        if kind.named and not inputs.get("name"):
            inputs["name"] = self._name(request, inputs)
            defaults.append("name")
        for key in filter(None, ("project", kind.located)):
            if not inputs.get(key):
                value = self._default(key, inputs)
                if value is None:
                    return CheckResult(inputs, [(key, f"{key}: required field is not set")])
                inputs[key] = value
                defaults.append(key)
        inputs[_DEFAULTS] = defaults
        # A type's own rules rest on the names and kinds of the values.
        return CheckResult(inputs, field_problems(inputs, kind.facts) or location_problems(kind, inputs))

    def _default(self, key: str, inputs: Properties) -> object | None:
        if key == "location":
            # A pool is where its cluster is, when the cluster is named by its path.
            match = re.search(r"/locations/([^/]+)/", str(inputs.get("cluster", "")))
            if isinstance(inputs.get("cluster"), Unknown):
                return UNKNOWN
            return match[1] if match else self._settings.get("zone") or self._settings.get("region")
        if key == "region" and not self._settings.get("region") and self._settings.get("zone"):
            return str(self._settings["zone"]).rsplit("-", 1)[0]
        value = self._settings.get(key)
        return None if value is None else str(value)

    @staticmethod
    def _name(request: CheckRequest, inputs: Properties) -> str:
        if "name" in (request.olds.get(_DEFAULTS) or []) and request.olds.get("name"):
            return str(request.olds["name"])
        if request.proposed_name:
            return request.proposed_name
        prefix = inputs.get("namePrefix") or f"{request.name}-"
        return f"{prefix}{request.seed.hex()[:7]}"

    def diff(self, request: DiffRequest) -> DiffResult:
        """See `Provider`."""
        kind = _type(request.type)
        state, news = reveal(request.olds), reveal(request.news)
        detailed = differences(state, news, kind.facts, request.ignore_changes) | kind.also_replaces(state, news)
        # A name is taken until its resource is gone. Said of every difference, and of none: the
        # engine asks too when it goes on with a replacement that failed half way, and would else
        # delete the new resource by the old one's id.
        taken = request.old_inputs.get("name") == request.news.get("name")
        return DiffResult(detailed, delete_before_replace=taken, input_diff=True)

    def create(self, request: CreateRequest) -> tuple[str, Properties]:
        """See `Provider`."""
        kind = _type(request.type)
        inputs = _plain(request.properties)
        if request.preview:
            return "", {**inputs, **dict.fromkeys(kind.computed, UNKNOWN)}
        cloud = self._cloud(request.urn)
        record = Record(kind.id(inputs), inputs, {"created": datetime.now(UTC).isoformat(timespec="milliseconds")})
        with _named(f"Error creating {kind.title}"), self._store.locked():
            if self._store.get(record.id):
                raise already_exists(record.id)
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
        # The resource is in the cloud while its operation runs: whoever is killed now leaves it
        # there, and the next creation is told that it exists.
        self._wait(request.timeout or kind.facts.timeouts["create"])
        outputs = kind.outputs(kind.observe(cloud, record))
        _finished(record, outputs, kind.unfinished(cloud, None, record))
        return record.id, outputs

    def read(self, request: ReadRequest) -> ReadResult:
        """See `Provider`."""
        kind = _type(request.type)
        resource = request.id if request.id.startswith("projects/") else self._find(kind, request.id)
        record = self._store.get(resource) if resource else None
        if record is None:
            return ReadResult("")
        cloud = self._cloud(request.urn)
        record = kind.observe(cloud, record)
        inputs = dict(record.inputs)
        if request.inputs:
            # Only what the program says can differ from it; the rest is in the outputs.
            inputs = _asked(reveal(request.inputs), record.inputs)
            inputs[_DEFAULTS] = request.inputs.get(_DEFAULTS, [])
        return ReadResult(record.id, kind.outputs(record), inputs)

    def _find(self, kind: ResourceType, text: str) -> str:
        """The path of the one resource whose short id, such as `location/cluster/pool`, this is."""
        parts = text.split("/")
        found = [
            record.id for record in self._store.list(kind.path.split("/")[-2]) if record.id.split("/")[-1] == parts[-1]
        ]
        found = [path for path in found if all(part in path.split("/") for part in parts)]
        return found[0] if len(found) == 1 else ""

    def update(self, request: UpdateRequest) -> Properties:
        """See `Provider`."""
        kind = _type(request.type)
        inputs = _plain(request.news)
        if request.preview:
            return {**request.olds, **with_kept(reveal(request.olds), inputs, kind.facts)}
        cloud = self._cloud(request.urn)
        self._wait(request.timeout or kind.facts.timeouts["update"])
        with _named(f"Error updating {kind.title} {request.id!r}"), self._store.locked():
            old = self._store.get(request.id)
            if old is None:
                raise ProviderError(
                    f"{request.id} is gone from the simulated cloud; `pulumi refresh` takes note of that, and the "
                    "next `pulumi up` makes it again"
                )
            record = Record(old.id, with_kept(old.inputs, inputs, kind.facts), dict(old.state))
            kind.update(cloud, old, record)
            self._store.put(record)
            kind.settle(cloud, record)
        outputs = kind.outputs(kind.observe(cloud, record))
        _finished(record, outputs, kind.unfinished(cloud, old, record))
        return outputs

    def delete(self, request: DeleteRequest) -> None:
        """See `Provider`."""
        kind = _type(request.type)
        policy = reveal(request.properties).get("deletionPolicy")
        if policy == "ABANDON":
            return
        if policy == "PREVENT":
            raise ProviderError(
                f'cannot destroy {kind.title} {request.id!r}: its deletionPolicy is "PREVENT"; set it to "DELETE", run '
                "`pulumi up`, then try again"
            )
        self._wait(request.timeout or kind.facts.timeouts["delete"])
        cloud = self._cloud(request.urn)
        with _named(f"Error deleting {kind.title}"), self._store.locked():
            record = self._store.get(request.id)
            if record is None:
                return
            # Protection is the provider's own: what counts is what was last asked for.
            kind.delete(cloud, record)
            self._store.remove(record.id)

    def _cloud(self, urn: str) -> Cloud:
        def say(message: str) -> None:
            self.engine.status(urn, f"simulated GKE: {message}")

        def warn(message: str) -> None:
            self.engine.warn(urn, f"simulated GKE: {message}")

        return Cloud(self._store, self._fleet, say, warn, _latency())

    def _wait(self, timeout: float) -> None:
        """Take as long as an operation of the real cloud would, where that is asked for.

        Raises:
            ProviderError: when the user interrupts, or the timeout, the resource's own or the
                provider's, is shorter.
        """
        seconds = _latency()
        if self.canceled.wait(min(seconds, timeout)):
            raise ProviderError("interrupted while waiting for the operation")
        if seconds > timeout:
            raise ProviderError(f"timeout while waiting for the operation: {timeout:g} s passed")


def _latency() -> float:
    """Seconds that an operation takes.

    Raises:
        ProviderError: when the variable is no number.
    """
    text = os.environ.get(LATENCY_VARIABLE) or "0"
    try:
        return float(text)
    except ValueError:
        raise ProviderError(f"{LATENCY_VARIABLE}={text!r} is no number of seconds") from None


def _finished(record: Record, outputs: Properties, reasons: list[str]) -> None:
    """Report a resource that exists and is not complete; the engine records it all the same.

    Raises:
        InitFailedError: when there is a reason.
    """
    if reasons:
        raise InitFailedError(record.id, outputs, reasons)


def _type(token: str) -> ResourceType:
    try:
        return TYPES[token]
    except KeyError:
        raise ProviderError(
            f"the simulated GKE of this lab has no {token}; it has: {', '.join(sorted(TYPES))}"
        ) from None


def _plain(properties: Properties) -> Properties:
    return {key: value for key, value in reveal(properties).items() if not key.startswith("__") and value is not None}


def _asked(old: Properties, there: Properties) -> Properties:
    """Current values of the inputs that the program gave; all other values are in the outputs."""
    found = {}
    for key in old.keys() & there.keys():
        before, now = old[key], there[key]
        found[key] = _asked(before, now) if isinstance(before, dict) and isinstance(now, dict) else now
    return found


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    """Say before an error what was being done, as the provider does."""
    try:
        yield
    except ProviderError as error:
        raise ProviderError(f"{what}: {error}") from None
