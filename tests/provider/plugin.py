"""Google's own provider, as Pulumi's plugin `gcp`: where it is, and how it is asked.

It is asked as the engine asks it, with plain data in place of the protocol's messages.
"""

from __future__ import annotations

import importlib.metadata
import lzma
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import (
    engine_pb2_grpc,
    provider_pb2,
    provider_pb2_grpc,
)

from berth.lab.plugins.gcp.kinds import Kind
from berth.lab.plugins.gcp.protocol import message_properties, plain_properties
from tests.provider.rest import GoogleApis, serving, variables

VERSION = importlib.metadata.version("pulumi-gcp")
NAME = "pulumi-resource-gcp"
CLONE = Path(__file__).resolve().parents[2]
_PACKED = CLONE.parent / "shared" / "oracle" / f"{NAME}.xz"
_UNPACKED = CLONE / "build" / "provider" / NAME

Properties = dict[str, Any]


def find_program() -> Path | None:
    """Return the plugin's program; None where there is none.

    It is the one of BERTH_PROVIDER, an installed one, or one that lies packed beside the checkout.
    """
    if named := os.environ.get("BERTH_PROVIDER"):
        return Path(named)
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    installed = sorted(home.glob(f"plugins/resource-gcp-v*/{NAME}"))
    if installed:
        return installed[-1]
    if _PACKED.exists() and not _UNPACKED.exists():
        _UNPACKED.parent.mkdir(parents=True, exist_ok=True)
        partial = _UNPACKED.with_suffix(".partial")
        with lzma.open(_PACKED) as packed, partial.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
        partial.chmod(0o755)
        partial.rename(_UNPACKED)
    return _UNPACKED if _UNPACKED.exists() else None


def program() -> Path:
    """Return the plugin's program; a test is skipped where there is none."""
    found = find_program()
    if found is None:
        pytest.skip(
            f"Google's provider is not installed: `pulumi plugin install resource gcp {VERSION}`"
            " installs it, and BERTH_PROVIDER names a program of it"
        )
    return found


class ProviderError(AssertionError):
    """Error: the provider, or Google's API below it, refuses something."""


class ProviderPanicError(AssertionError):
    """Error: the provider panics, and takes the engine's run down with it."""


class _Engine(engine_pb2_grpc.EngineServicer):
    """The engine, as far as the plugin speaks to it."""

    def Log(self, *_: Any) -> Any:  # noqa: N802 (the protocol's name)
        return empty_pb2.Empty()


@dataclass(frozen=True)
class Difference:
    """Verdict of the provider on new inputs.

    Attributes:
        kinds: kind of each difference, by the path as the provider writes it.
        replaces: whether the resource is replaced.
        reasons: properties that replace the resource, by the provider's word.
        deleted_first: whether the old resource is deleted before the new one is created.
    """

    kinds: Mapping[str, Kind]
    replaces: bool
    reasons: Sequence[str] = ()
    deleted_first: bool = False


class Provider:
    """The provider, on the stand-in for Google's APIs. It starts again after a panic."""

    def __init__(self, program: Path, apis: GoogleApis, stack: ExitStack) -> None:
        self.apis = apis
        self._program = program
        self._stack = stack
        address = stack.enter_context(serving(apis))
        self._environment = {**os.environ, **variables(address)}
        engine = grpc.server(ThreadPoolExecutor(2))
        engine_pb2_grpc.add_EngineServicer_to_server(_Engine(), engine)
        self._engine = f"127.0.0.1:{engine.add_insecure_port('127.0.0.1:0')}"
        engine.start()
        stack.callback(engine.stop, 0)
        self._configuration: Properties = {}
        self._start()

    def _start(self) -> None:
        process = subprocess.Popen(
            [self._program, self._engine],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        assert process.stdout  # a pipe
        address = f"127.0.0.1:{process.stdout.readline().strip()}"
        options = [("grpc.max_receive_message_length", 1 << 28)]
        channel = grpc.insecure_channel(address, options=options)
        self._stack.callback(channel.close)
        self._stub = provider_pb2_grpc.ResourceProviderStub(channel)

    def configure(self, inputs: Mapping[str, Any]) -> None:
        """Take the settings of a stack's provider: project, region and zone."""
        self._configuration = dict(inputs)
        given = {key: str(value) for key, value in inputs.items() if value}
        given |= {"accessToken": "stand-in", "pollInterval": "1ms", "version": VERSION}
        self._call(
            "Configure",
            provider_pb2.ConfigureRequest(
                args=message_properties(given),
                variables={f"gcp:config:{key}": value for key, value in given.items()},
            ),
        )

    def check(
        self, kind: str, name: str, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[str]]:
        """Return new inputs with defaults, and why the provider refuses them."""
        answer = self._call(
            "Check",
            provider_pb2.CheckRequest(
                urn=urn(kind, name),
                olds=message_properties(old or {}),
                news=message_properties(new),
                randomSeed=b"0123456789abcdef",
            ),
        )
        return plain_properties(answer.inputs), [failure.reason for failure in answer.failures]

    def create(
        self, kind: str, name: str, inputs: Properties, *, preview: bool = False
    ) -> tuple[str, Properties]:
        """Return the id and the outputs of a new resource; of a planned one, what is known."""
        answer = self._call(
            "Create",
            provider_pb2.CreateRequest(
                urn=urn(kind, name), properties=message_properties(inputs), preview=preview
            ),
        )
        return answer.id, plain_properties(answer.properties)

    def diff(self, there: There, new: Properties) -> Difference:
        """Return what new inputs change about a resource."""
        answer = self._call(
            "Diff",
            provider_pb2.DiffRequest(**there.message, news=message_properties(new)),
        )
        kinds = {path: Kind(found.kind) for path, found in answer.detailedDiff.items()}
        reasons = sorted(set(answer.replaces))
        return Difference(
            kinds=dict(sorted(kinds.items())) if answer.changes != answer.DIFF_NONE else {},
            replaces=bool(reasons),
            reasons=reasons,
            deleted_first=answer.deleteBeforeReplace,
        )

    def update(self, there: There, new: Properties, *, preview: bool = False) -> Properties:
        """Return the outputs of a resource after an update."""
        answer = self._call(
            "Update",
            provider_pb2.UpdateRequest(
                **there.message, news=message_properties(new), preview=preview
            ),
        )
        return plain_properties(answer.properties)

    def read(self, there: There) -> There | None:
        """Return a resource as it is; None if it is gone. An import knows only the id."""
        answer = self._call(
            "Read",
            provider_pb2.ReadRequest(
                id=there.id,
                urn=urn(there.type, there.name),
                properties=message_properties(there.outputs),
                inputs=message_properties(there.inputs),
            ),
        )
        if not answer.id:
            return None
        return There(
            there.type,
            there.name,
            answer.id,
            plain_properties(answer.inputs),
            plain_properties(answer.properties),
            there.ignored,
        )

    def delete(self, there: There) -> None:
        """Delete a resource."""
        message = dict(there.message)
        properties = message.pop("olds")
        del message["ignoreChanges"]
        self._call("Delete", provider_pb2.DeleteRequest(**message, properties=properties))

    def _call(self, name: str, request: Any) -> Any:
        """Return an answer of the plugin.

        Raises:
            ProviderPanicError: the plugin panics.
        """
        try:
            return getattr(self._stub, name)(request)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE or "panic" in error.details():
                self._start()
                self.configure(self._configuration)
                raise ProviderPanicError(f"{name}: {error.details()}") from error
            raise ProviderError(error.details()) from error


@dataclass(frozen=True)
class There:
    """Resource in the state of a stack."""

    type: str
    name: str
    id: str
    inputs: Properties
    outputs: Properties
    ignored: Sequence[str] = ()
    """Paths whose changes the program ignores."""

    @property
    def message(self) -> dict[str, Any]:
        """Fields of the requests about a resource that is there."""
        return {
            "id": self.id,
            "urn": urn(self.type, self.name),
            "olds": message_properties(self.outputs),
            "old_inputs": message_properties(self.inputs),
            "ignoreChanges": list(self.ignored),
        }


def urn(kind: str, name: str) -> str:
    """Return the engine's name of a resource."""
    return f"urn:pulumi:stack::berth::{kind}::{name}"


@contextmanager
def running() -> Iterator[Provider]:
    """Run the plugin for a block; a test is skipped where there is none."""
    with ExitStack() as stack:
        yield Provider(program(), GoogleApis(), stack)
