"""Interface of the lab's providers: one method for each request of the engine, on plain data.

`server.serve` puts a `Provider` behind the engine's gRPC protocol. Methods run in threads, many at
a time: a provider guards its shared state, and long waits watch `Provider.canceled`.

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
    """Error: the object exists but is not ready; the engine records it with the failure.

    Attributes:
        resource_id: the object's id.
        properties: the object's outputs.
        reasons: one text for each failure.
    """

    def __init__(self, resource_id: str, properties: Properties, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.resource_id = resource_id
        self.properties = properties
        self.reasons = reasons


class Kind(IntEnum):
    """Kind of difference of one property; the numbers are the protocol's."""

    ADD = 0
    ADD_REPLACE = 1
    DELETE = 2
    DELETE_REPLACE = 3
    UPDATE = 4
    UPDATE_REPLACE = 5

    @property
    def replaces(self) -> bool:
        """Whether the difference replaces the object."""
        return self % 2 == 1

    def as_replace(self) -> Kind:
        """Return the same difference, as one that replaces the object."""
        return Kind(self | 1)


@dataclass(frozen=True)
class _Request:
    """Request about one resource."""

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
    """Request to check inputs and fill in defaults.

    Attributes:
        olds: the recorded inputs, empty for a new resource.
        news: the program's inputs.
        seed: random bytes, the same in the preview and the update of one run where the engine can.
        proposed_name: the name by the project's own naming rule, if it has one.
    """

    olds: Properties
    news: Properties
    seed: bytes = b""
    proposed_name: str = ""


@dataclass(frozen=True)
class CheckResult:
    """Inputs to record, or the reasons for refusing them.

    Attributes:
        failures: pairs of a property path (empty for the whole) and a reason.
    """

    inputs: Properties
    failures: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class DiffRequest(_Request):
    """Request to compare the recorded resource with the program's."""

    id: str
    olds: Properties
    old_inputs: Properties
    news: Properties
    ignore_changes: list[str]


@dataclass(frozen=True)
class DiffResult:
    """Differences of a resource.

    Attributes:
        detailed: kind of difference by property path, such as `spec.ports[0].port`.
        delete_before_replace: a replacement deletes the old object first.
        input_diff: whether the paths are those of inputs rather than of the recorded outputs.
    """

    detailed: Mapping[str, Kind]
    delete_before_replace: bool = False
    input_diff: bool = False


@dataclass(frozen=True)
class CreateRequest(_Request):
    """Request to create the object; in a preview, only to return its outputs."""

    properties: Properties
    timeout: float
    preview: bool


@dataclass(frozen=True)
class ReadRequest(_Request):
    """Request to read the object; with empty properties and inputs, an import."""

    id: str
    properties: Properties
    inputs: Properties


@dataclass(frozen=True)
class ReadResult:
    """Object as it is; an empty id means that the object is gone."""

    id: str
    properties: Properties = field(default_factory=dict)
    inputs: Properties = field(default_factory=dict)


@dataclass(frozen=True)
class UpdateRequest(_Request):
    """Request to change the object in place; in a preview, only to return its outputs."""

    id: str
    olds: Properties
    old_inputs: Properties
    news: Properties
    timeout: float
    ignore_changes: list[str]
    preview: bool


@dataclass(frozen=True)
class DeleteRequest(_Request):
    """Request to delete the object; a missing one is not an error."""

    id: str
    properties: Properties
    old_inputs: Properties
    timeout: float


class Engine(Protocol):
    """Lines to the user while a provider works."""

    def status(self, urn: str, message: str) -> None:
        """Show a passing line beside the resource; the next one replaces it."""

    def warn(self, urn: str, message: str) -> None:
        """Show a warning that stays."""


class Provider:
    """Base of the lab's providers; every method may raise a `BerthError`.

    Attributes:
        engine: set before the first request.
        canceled: set when the user interrupts: waits end at once.
    """

    engine: Engine

    def __init__(self) -> None:
        self.canceled = threading.Event()

    def configure(self, settings: Properties) -> None:
        """Take the settings; called once, before any resource."""

    def check(self, request: CheckRequest) -> CheckResult:
        """Fill in defaults and refuse inputs that cannot work."""
        raise NotImplementedError

    def diff(self, request: DiffRequest) -> DiffResult:
        """Compare."""
        raise NotImplementedError

    def create(self, request: CreateRequest) -> tuple[str, Properties]:
        """Create; return the new object's id and its outputs."""
        raise NotImplementedError

    def read(self, request: ReadRequest) -> ReadResult:
        """Read."""
        raise NotImplementedError

    def update(self, request: UpdateRequest) -> Properties:
        """Update; return the object's outputs."""
        raise NotImplementedError

    def delete(self, request: DeleteRequest) -> None:
        """Delete."""
        raise NotImplementedError
