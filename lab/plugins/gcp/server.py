"""Process of the plugin: it serves the engine's gRPC protocol until the engine ends it.

The SDK's own server (`pulumi.provider.experimental`) answers every error with a Python stack and
cannot report an object that exists but is not ready. So the SDK's generated protocol is served
here.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.protobuf import json_format, struct_pb2
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

from berth.components.core.errors import BerthError
from berth.components.core.numbers import whole_numbers
from berth.lab.plugins.gcp.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from berth.lab.plugins.gcp.provider import SimulatedGoogleCloud

# Each wait holds a thread, and the engine asks for as many resources at once as `--parallel`
# allows. Threads start only when they are needed.
_THREADS = 512

# The largest message that the engine itself accepts.
_OPTIONS = [
    ("grpc.max_receive_message_length", 400 << 20),
    ("grpc.max_send_message_length", 400 << 20),
]

_PARENT_CHECK_SECONDS = 1.0
_CLOSE_SECONDS = 2.0

_log = logging.getLogger(__name__)

Properties = dict[str, Any]
"""Properties as plain data; `pulumi.runtime.rpc.UNKNOWN` stands for a value that only an update
knows."""


class UnfinishedError(ProviderError):
    """Error: the object exists but is not as it should be; the engine records it with the failure.

    Attributes:
        reasons: one text for each failure.
    """

    def __init__(self, resource_id: str, properties: Properties, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.resource_id = resource_id
        self.properties = properties
        self.reasons = reasons


def read(properties: struct_pb2.Struct) -> Properties:
    """Return a message's properties as plain data, in which whole numbers are integers."""
    found: Properties = whole_numbers(json_format.MessageToDict(properties))
    return found


def written(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return plain data as a message's properties."""
    struct = struct_pb2.Struct()
    struct.update(properties)
    return struct


def answered(call: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a call of the protocol whose errors the engine shows as they are.

    An unexpected error goes with its stack to the log.
    """

    @functools.wraps(call)
    def answer(servicer: Any, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return call(servicer, request)
        except UnfinishedError as error:
            detail = provider_pb2.ErrorResourceInitFailed(
                id=error.resource_id, properties=written(error.properties), reasons=error.reasons
            )
            status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
            status.details.add().Pack(detail)
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status.SerializeToString()),)
            )
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except BerthError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))

    return answer


def always(answer: Any) -> Callable[..., Any]:
    """Return a call of the protocol that has one answer."""
    return lambda _servicer, _request, _context: answer


class Engine:
    """Lines to the user while the plugin works."""

    def __init__(self, address: str) -> None:
        self._stub = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address))

    def status(self, urn: str, message: str) -> None:
        """Show a passing line beside the resource; the next one replaces it."""
        self._send(
            engine_pb2.LogRequest(
                severity=engine_pb2.INFO, urn=urn, message=message, ephemeral=True
            )
        )

    def warn(self, urn: str, message: str) -> None:
        """Show a warning that stays."""
        self._send(engine_pb2.LogRequest(severity=engine_pb2.WARNING, urn=urn, message=message))

    def _send(self, line: Any) -> None:
        try:
            self._stub.Log(line, timeout=5)
        except grpc.RpcError:  # a missed line must not fail the work
            _log.warning("not shown to the user: %s %s", line.urn, line.message)


def serve(
    provider: Callable[[Engine], SimulatedGoogleCloud], arguments: list[str], log: Path
) -> NoReturn:
    """Serve until the engine closes the process, or is gone.

    Args:
        provider: makes the provider.
        arguments: of the process; the engine's address is the only one that is not an option.
        log: file of unexpected errors.
    """
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    if len(addresses) != 1:
        sys.stderr.write(
            "pulumi-resource-gcp: started by the Pulumi engine, with the engine's address\n"
        )
        raise SystemExit(2)
    log.parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=log, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    )
    served = provider(Engine(addresses[0]))
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(served, server)
    port = server.add_insecure_port("127.0.0.1:0")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()

    parent = os.getppid()
    while not stop.wait(_PARENT_CHECK_SECONDS) and os.getppid() == parent:
        pass
    server.stop(_CLOSE_SECONDS).wait(_CLOSE_SECONDS)
    logging.shutdown()
    # Threads that hang in a system call must not keep the process.
    os._exit(0)
