"""What a provider of the lab implements: one method for each thing the engine asks, on plain data.

`server.serve` puts a `Provider` behind the engine's gRPC protocol. Methods run in threads, many at a time: a provider
guards what it shares, and long waits watch `Provider.cancelled`.

Simulates nothing: the interface between the engine's protocol and the lab's providers.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from berth.components.core.errors import BerthError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berth.lab.plugins.values import Properties


class ProviderError(BerthError):
    """Error of a plugin in words for the user, shown without a stack."""


class InitFailedError(ProviderError):
    """The object is there but not as it should be: the engine records it, and the failure beside it.

    Attributes:
        resource_id: the object's id.
        properties: the object's outputs, as a successful answer would have had them.
        inputs: inputs to record with a read; none for creates and updates, where the engine has them.
        reasons: one text for each thing that failed.
    """

    def __init__(
        self, resource_id: str, properties: Properties, reasons: list[str], inputs: Properties | None = None
    ) -> None:
        super().__init__("; ".join(reasons))
        self.resource_id = resource_id
        self.properties = properties
        self.inputs = inputs
        self.reasons = reasons


class Kind(IntEnum):
    """How one property differs; the numbers are the protocol's."""

    ADD = 0
    ADD_REPLACE = 1
    DELETE = 2
    DELETE_REPLACE = 3
    UPDATE = 4
    UPDATE_REPLACE = 5

    @property
    def replaces(self) -> bool:
        """Whether the difference needs a new object."""
        return self % 2 == 1

    def as_replace(self) -> Kind:
        """The same difference, needing a new object."""
        return Kind(self | 1)


@dataclass(frozen=True)
class _Request:
    """A request about one resource."""

    urn: str

    @property
    def type(self) -> str:
        """The resource's type token, such as `kubernetes:core/v1:Namespace`."""
        return self.urn.split("::")[2].split("$")[-1] if self.urn.count("::") >= 3 else ""  # noqa: PLR2004

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return self.urn.split("::", 3)[-1]


@dataclass(frozen=True)
class CheckRequest(_Request):
    """Are these inputs good, and what are they with defaults filled in?

    Attributes:
        olds: the inputs recorded last time, empty for a new resource.
        news: the program's inputs.
        seed: random bytes, the same in the preview and the update of one run where the engine can.
        proposed_name: the name that the project's own naming rule asks for, if it has one.
        naming_disabled: the project wants every name given in the program.
    """

    olds: Properties
    news: Properties
    seed: bytes = b""
    proposed_name: str = ""
    naming_disabled: bool = False


@dataclass(frozen=True)
class CheckResult:
    """Inputs to record, or why they are refused.

    Attributes:
        failures: pairs of a property path (empty for the whole) and a reason.
    """

    inputs: Properties
    failures: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class DiffRequest(_Request):
    """What differs between what is recorded and what the program wants?"""

    id: str
    olds: Properties
    old_inputs: Properties
    news: Properties
    ignore_changes: list[str]


@dataclass(frozen=True)
class DiffResult:
    """The differences.

    Attributes:
        detailed: kind of difference by property path, such as `spec.ports[0].port`; empty when nothing differs.
        delete_before_replace: a replacement has to delete the old object first (its name is taken).
        input_diff: whether the paths speak of inputs rather than of the recorded outputs.
        input_diff_paths: the paths that do when the others do not.
    """

    detailed: Mapping[str, Kind]
    delete_before_replace: bool = False
    input_diff: bool = False
    input_diff_paths: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CreateRequest(_Request):
    """Make the object. In a preview, only say what it would be."""

    properties: Properties
    timeout: float
    preview: bool


@dataclass(frozen=True)
class ReadRequest(_Request):
    """What is there? With empty properties and inputs, it is an import."""

    id: str
    properties: Properties
    inputs: Properties


@dataclass(frozen=True)
class ReadResult:
    """What is there; an empty id says that the object is gone."""

    id: str
    properties: Properties = field(default_factory=dict)
    inputs: Properties = field(default_factory=dict)


@dataclass(frozen=True)
class UpdateRequest(_Request):
    """Change the object in place. In a preview, only say what it would become."""

    id: str
    olds: Properties
    old_inputs: Properties
    news: Properties
    timeout: float
    ignore_changes: list[str]
    preview: bool


@dataclass(frozen=True)
class DeleteRequest(_Request):
    """Remove the object; that it is gone already is no error."""

    id: str
    properties: Properties
    old_inputs: Properties
    timeout: float


def changed(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, Kind]:
    """Return the keys that differ between two mappings, but for the engine's own, and how each differs."""
    keys = sorted(key for key in old.keys() | new.keys() if not key.startswith("__") and old.get(key) != new.get(key))
    return {key: Kind.ADD if key not in old else Kind.DELETE if key not in new else Kind.UPDATE for key in keys}


class Engine(Protocol):
    """How a provider speaks to the user while it works."""

    def status(self, urn: str, message: str) -> None:
        """A passing line beside the resource; the next one takes its place."""

    def info(self, urn: str, message: str) -> None:
        """A line that stays."""

    def warn(self, urn: str, message: str) -> None:
        """A warning that stays."""


class Provider:
    """Base of the lab's providers; every method may raise `ProviderError`.

    Attributes:
        engine: set before the first request.
        cancelled: set when the user interrupts: waits end at once, with what they have.
    """

    engine: Engine

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def check_config(self, request: CheckRequest) -> CheckResult:
        """Check the provider's own settings."""
        return CheckResult(request.news)

    def diff_config(self, request: DiffRequest) -> DiffResult:
        """Compare the provider's own settings; a replacement replaces everything made with it."""
        return DiffResult(changed(request.old_inputs, request.news), input_diff=True)

    def configure(self, settings: Properties) -> None:
        """Take the settings over; called once, before any resource."""

    def check(self, request: CheckRequest) -> CheckResult:
        """Fill in defaults and refuse what cannot work."""
        raise NotImplementedError

    def diff(self, request: DiffRequest) -> DiffResult:
        """Compare."""
        raise NotImplementedError

    def create(self, request: CreateRequest) -> tuple[str, Properties]:
        """Create; the answer is the new object's id and its outputs."""
        raise NotImplementedError

    def read(self, request: ReadRequest) -> ReadResult:
        """Read."""
        raise NotImplementedError

    def update(self, request: UpdateRequest) -> Properties:
        """Update; the answer is the object's outputs."""
        raise NotImplementedError

    def delete(self, request: DeleteRequest) -> None:
        """Delete."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what the process holds; called once, at its end."""

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Run a function of the provider."""
        del arguments
        raise ProviderError(f"the function {token} is not part of the lab's stand-in for this provider")
