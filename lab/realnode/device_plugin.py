"""`python -m berth.lab.realnode.device_plugin FOLDER COUNT`: advertises stand-in GPUs.

The kubelet hands them out by CDI. The few messages of the kubelet's device plugin API are declared
here.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from berth.lab.realnode.configuration import GPU_KIND

RESOURCE = "nvidia.com/gpu"
SOCKET = "berth-lab-gpu.sock"
PACKAGE = "v1beta1"

_LOOK_SECONDS = 1.0
_CALL_SECONDS = 5.0

_MESSAGES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


def _declare() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="lab/deviceplugin.proto", package=PACKAGE, syntax="proto3"
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            declared = message.field.add(name=field, number=number)
            declared.label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            plain = kind.removeprefix("*")
            if plain == "string":
                declared.type = kinds.TYPE_STRING
            else:
                declared.type = kinds.TYPE_MESSAGE
                declared.type_name = f".{PACKAGE}.{plain}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in _MESSAGES
    }


MESSAGES = _declare()


class Plugin:
    """Plugin's side of the API, for a number of devices."""

    def __init__(self, count: int) -> None:
        self._devices = [
            MESSAGES["Device"](ID=str(number), health="Healthy") for number in range(count)
        ]
        self._ended = threading.Event()

    def end(self) -> None:
        """End every kubelet's watch."""
        self._ended.set()

    def options(self, _request: Any, _context: Any) -> Any:
        """Answer which optional calls the kubelet should make: none."""
        return MESSAGES["DevicePluginOptions"]()

    def watch(self, _request: Any, _context: Any) -> Iterator[Any]:
        """Answer the devices, which never change."""
        yield MESSAGES["ListAndWatchResponse"](devices=self._devices)
        self._ended.wait()

    def allocate(self, request: Any, _context: Any) -> Any:
        """Answer the names of a container's devices, which the runtime adds."""
        response = MESSAGES["AllocateResponse"]()
        for container in request.container_requests:
            answer = response.container_responses.add()
            for device in container.devices_ids:
                answer.cdi_devices.add(name=f"{GPU_KIND}={device}")
        return response

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the service, for a server."""
        unary = grpc.unary_unary_rpc_method_handler
        stream = grpc.unary_stream_rpc_method_handler
        methods = {
            "GetDevicePluginOptions": (unary, self.options, "Empty"),
            "ListAndWatch": (stream, self.watch, "Empty"),
            "Allocate": (unary, self.allocate, "AllocateRequest"),
        }
        handlers = {
            name: kind(
                function, MESSAGES[request].FromString, lambda message: message.SerializeToString()
            )
            for name, (kind, function, request) in methods.items()
        }
        return grpc.method_handlers_generic_handler(f"{PACKAGE}.DevicePlugin", handlers)


def _register(folder: Path) -> None:
    with grpc.insecure_channel(f"unix://{folder / 'kubelet.sock'}") as channel:
        call = channel.unary_unary(
            f"/{PACKAGE}.Registration/Register",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=MESSAGES["Empty"].FromString,
        )
        request = MESSAGES["RegisterRequest"](
            version=PACKAGE, endpoint=SOCKET, resource_name=RESOURCE
        )
        call(request, timeout=_CALL_SECONDS)


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_ctime_ns
    return None


def serve_once(folder: Path, count: int, ended: threading.Event) -> None:
    """Serve the present kubelet until the next one, which removes all plugins' sockets."""
    kubelet = _identity(folder / "kubelet.sock")
    if kubelet is None:
        return
    plugin = Plugin(count)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    server.add_generic_rpc_handlers((plugin.handler(),))
    (folder / SOCKET).unlink(missing_ok=True)
    server.add_insecure_port(f"unix://{folder / SOCKET}")
    server.start()
    try:
        _register(folder)
        print(f"{count} {RESOURCE} registered", flush=True)  # noqa: T201 (the log)
        while _identity(folder / "kubelet.sock") == kubelet and (folder / SOCKET).exists():
            if ended.wait(_LOOK_SECONDS):
                return
    finally:
        plugin.end()
        server.stop(grace=None)


def main() -> None:
    """Serve for ever."""
    folder = Path(sys.argv[1])
    count = int(sys.argv[2])
    ended = threading.Event()
    while not ended.wait(_LOOK_SECONDS / 5):
        try:
            serve_once(folder, count, ended)
        except (grpc.RpcError, OSError, RuntimeError) as error:
            print(f"the kubelet cannot be reached: {error}", flush=True)  # noqa: T201 (the log)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
