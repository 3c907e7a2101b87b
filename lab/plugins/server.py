"""Plugin process: a `Provider` behind the engine's gRPC protocol.

The SDK's own server (`pulumi.provider.experimental`) answers every error with a Python stack, reads
unknown values as strings and cannot report an object that exists but is not ready. So the calls
that a provider of resources needs are served here on the SDK's generated protocol, with plain
errors.

The process ends when the engine cancels and closes it, on SIGTERM and SIGINT, and when its parent
is gone (a killed engine leaves no plugin behind). An unexpected error goes with its stack to
`logs/plugin-<name>.log` of the lab that `BERTH_LAB` names, and as one line to the user.

Answers to (read): Pulumi v3.250.0, proto/pulumi/provider.proto; the engine that calls it is the
    real one: https://github.com/pulumi/pulumi/blob/v3.250.0/proto/pulumi/provider.proto
"""

# ruff: noqa: N802, ARG002 (the names and arguments of the calls are the protocol's)

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

from berth.components.core.errors import BerthError
from berth.lab.plugins.provider import (
    CheckRequest,
    CheckResult,
    CreateRequest,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    InitFailedError,
    Provider,
    ReadRequest,
    UpdateRequest,
)
from berth.lab.plugins.values import read_properties, write_properties

if TYPE_CHECKING:
    from collections.abc import Callable

# Each wait holds a thread, and the engine asks for as many resources at once as `--parallel` allows
# (4 a core by default); a hundred RayClusters wait at once. Threads start only when they are
# needed.
_THREADS = 512

# The largest message that the engine itself accepts.
_OPTIONS = [("grpc.max_receive_message_length", 400 << 20), ("grpc.max_send_message_length", 400 << 20)]

_PARENT_CHECK_SECONDS = 1.0
_CLOSE_SECONDS = 2.0

_log = logging.getLogger(__name__)


class _EngineLog:
    """`provider.Engine` over the engine's log service."""

    def __init__(self, address: str) -> None:
        self._stub = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address))

    def status(self, urn: str, message: str) -> None:
        """See `Engine`."""
        self._send(engine_pb2.INFO, urn, message, ephemeral=True)

    def warn(self, urn: str, message: str) -> None:
        """See `Engine`."""
        self._send(engine_pb2.WARNING, urn, message, ephemeral=False)

    def _send(self, severity: Any, urn: str, message: str, *, ephemeral: bool) -> None:
        try:
            self._stub.Log(
                engine_pb2.LogRequest(severity=severity, urn=urn, message=message, ephemeral=ephemeral), timeout=5
            )
        except grpc.RpcError:
            # A missed line must not fail the work.
            _log.warning("not shown to the user: %s %s", urn, message)


def _plainly(method: Callable[[Any, Any, grpc.ServicerContext], Any]) -> Callable[..., Any]:
    """Turn errors of a provider into statuses that the engine shows as they are."""

    def answer(servicer: _Servicer, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(servicer, request, context)
        except InitFailedError as error:
            _abort_init_failed(context, error)
        except BerthError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except Exception as error:  # noqa: BLE001 (logged with its stack)
            urn = getattr(request, "urn", "")
            _log.exception("%s %s", method.__name__, urn)
            where = " (the log file has where)" if logging.getLogger().handlers else ""
            context.abort(
                grpc.StatusCode.INTERNAL,
                f"{servicer.name} plugin, {method.__name__}: unexpected {type(error).__name__}: {error}{where}",
            )
        return None

    return answer


def _abort_init_failed(context: grpc.ServicerContext, error: InitFailedError) -> None:
    detail = provider_pb2.ErrorResourceInitFailed(
        id=error.resource_id,
        properties=write_properties(error.properties),
        reasons=error.reasons,
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))


class _Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Calls of the engine, served by a `Provider`."""

    def __init__(self, provider: Provider, name: str, version: str) -> None:
        self._provider = provider
        self.name = name
        self._version = version

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True,
            accept_resources=False,
            accept_outputs=False,
            supports_autonaming_configuration=True,
        )

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version=self._version)

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.GetSchemaResponse(schema=f'{{"name": "{self.name}", "version": "{self._version}"}}')

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._provider.canceled.set()
        return empty_pb2.Empty()

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        olds, news = (
            {key: value for key, value in read_properties(part).items() if not key.startswith("__")}
            for part in (request.old_inputs, request.news)
        )
        some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=none if olds == news else some)

    @_plainly
    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._provider.configure(read_properties(request.args))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True,
            supportsPreview=True,
            acceptResources=False,
            acceptOutputs=False,
            supports_autonaming_configuration=True,
        )

    @_plainly
    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        check = _check_request(request)
        return _check_response(self._provider.check(check))

    @_plainly
    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        diff = _diff_request(request)
        return _diff_response(self._provider.diff(diff))

    @_plainly
    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        create = CreateRequest(request.urn, read_properties(request.properties), request.timeout, request.preview)
        resource_id, properties = self._provider.create(create)
        return provider_pb2.CreateResponse(id=resource_id, properties=write_properties(properties))

    @_plainly
    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        properties, inputs = read_properties(request.properties), read_properties(request.inputs)
        read = ReadRequest(request.urn, request.id, properties, inputs)
        result = self._provider.read(read)
        if not result.id:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=result.id, properties=write_properties(result.properties), inputs=write_properties(result.inputs)
        )

    @_plainly
    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        olds, old_inputs, news = map(read_properties, (request.olds, request.old_inputs, request.news))
        ignored, preview = list(request.ignoreChanges), request.preview
        update = UpdateRequest(request.urn, request.id, olds, old_inputs, news, request.timeout, ignored, preview)
        properties = self._provider.update(update)
        return provider_pb2.UpdateResponse(properties=write_properties(properties))

    @_plainly
    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        properties, old_inputs = read_properties(request.properties), read_properties(request.old_inputs)
        delete = DeleteRequest(request.urn, request.id, properties, old_inputs, request.timeout)
        self._provider.delete(delete)
        return empty_pb2.Empty()


def _check_request(request: Any) -> CheckRequest:
    olds, news = read_properties(request.olds), read_properties(request.news)
    return CheckRequest(request.urn, olds, news, request.randomSeed, request.autonaming.proposed_name)


def _check_response(result: CheckResult) -> Any:
    failures = [provider_pb2.CheckFailure(property=path, reason=reason) for path, reason in result.failures]
    return provider_pb2.CheckResponse(inputs=write_properties(result.inputs), failures=failures)


def _diff_request(request: Any) -> DiffRequest:
    olds, old_inputs, news = map(read_properties, (request.olds, request.old_inputs, request.news))
    return DiffRequest(request.urn, request.id, olds, old_inputs, news, list(request.ignoreChanges))


def _diff_response(result: DiffResult) -> Any:
    replaces = [path for path, kind in result.detailed.items() if kind.replaces]
    tops = {path.split(".")[0].split("[")[0]: None for path in result.detailed}
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if result.detailed else provider_pb2.DiffResponse.DIFF_NONE,
        replaces=replaces,
        diffs=list(tops),
        detailedDiff={
            path: provider_pb2.PropertyDiff(
                kind=int(kind),  # type: ignore[arg-type]
                inputDiff=result.input_diff,
            )
            for path, kind in result.detailed.items()
        },
        hasDetailedDiff=True,
        deleteBeforeReplace=result.delete_before_replace,
    )


def serve(provider: Provider, name: str, version: str, arguments: list[str]) -> NoReturn:
    """Serve until the engine closes the process."""
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    if len(addresses) != 1:
        sys.stderr.write(f"pulumi-resource-{name}: started by the Pulumi engine, with the engine's address\n")
        raise SystemExit(2)
    _log_to_file(name)
    provider.engine = _EngineLog(addresses[0])
    server = grpc.server(ThreadPoolExecutor(_THREADS, thread_name_prefix=name), options=_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(_Servicer(provider, name, version), server)
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
    provider.canceled.set()
    server.stop(_CLOSE_SECONDS).wait(_CLOSE_SECONDS)
    logging.shutdown()
    # Threads that hang in a system call must not keep the process.
    os._exit(0)


def _log_to_file(name: str) -> None:
    home = os.environ.get("BERTH_LAB")
    if not home:
        return
    folder = Path(home) / "logs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(folder / f"plugin-{name}.log", delay=True)
    except OSError:
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.WARNING)
