"""Kubelet's side of the device plugin API: takes a registration, and asks what the plugin has."""

import queue
from concurrent import futures
from pathlib import Path
from typing import Any, Self

import grpc

from berth.lab.realnode.device_plugin import MESSAGES, PACKAGE

SECONDS = 20.0
"""Time for one answer of the plugin, or for its registration."""


class Kubelet:
    """Server on a socket, to which device plugins register."""

    def __init__(self, socket: Path) -> None:
        self._registered: queue.Queue[Any] = queue.Queue()
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
        handler = grpc.unary_unary_rpc_method_handler(
            self._register,
            MESSAGES["RegisterRequest"].FromString,
            lambda message: message.SerializeToString(),
        )
        service = grpc.method_handlers_generic_handler(
            f"{PACKAGE}.Registration", {"Register": handler}
        )
        self._server.add_generic_rpc_handlers((service,))
        self._server.add_insecure_port(f"unix://{socket}")
        self._server.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.stop(grace=None)

    def ask(self, plugins: Path) -> dict[str, Any]:
        """Return the next registered resource, its devices, and what one and two of them give.

        Args:
            plugins: folder of the plugins' sockets.
        """
        request = self._registered.get(timeout=SECONDS)
        with grpc.insecure_channel(f"unix://{plugins / request.endpoint}") as channel:
            watch = channel.unary_stream(
                f"/{PACKAGE}.DevicePlugin/ListAndWatch", **_types("ListAndWatchResponse")
            )
            devices = next(watch(MESSAGES["Empty"](), timeout=SECONDS)).devices
            ids = sorted(device.ID for device in devices)
            return {
                "resource": request.resource_name,
                "devices": {device.ID: device.health for device in devices},
                "allocated": [
                    _allocate(channel, ids[:count]) for count in (1, 2) if count <= len(ids)
                ],
            }

    def _register(self, request: Any, _context: Any) -> Any:
        self._registered.put(request)
        return MESSAGES["Empty"]()


def _types(response: str) -> dict[str, Any]:
    return {
        "request_serializer": lambda message: message.SerializeToString(),
        "response_deserializer": MESSAGES[response].FromString,
    }


def _allocate(channel: grpc.Channel, ids: list[str]) -> dict[str, Any]:
    """Return what a container with these devices gets, or the plugin's refusal."""
    call = channel.unary_unary(f"/{PACKAGE}.DevicePlugin/Allocate", **_types("AllocateResponse"))
    container = MESSAGES["ContainerAllocateRequest"](devices_ids=ids)
    try:
        (answer,) = call(
            MESSAGES["AllocateRequest"](container_requests=[container]), timeout=SECONDS
        ).container_responses
    except grpc.RpcError as error:
        return {"devices": ids, "refused": error.details()}
    return {
        "devices": ids,
        "env": dict(sorted((entry.key, entry.value) for entry in answer.envs)),
        "annotations": sorted(entry.value for entry in answer.annotations),
        "cdi": [device.name for device in answer.cdi_devices],
        "files": [device.host_path for device in answer.devices],
    }
