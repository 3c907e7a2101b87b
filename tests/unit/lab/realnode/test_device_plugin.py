"""The stand-in GPUs' plugin, asked as a kubelet asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from berth.lab.realnode.device_plugin import MESSAGES, PACKAGE, RESOURCE, SOCKET, serve_once

CALL_SECONDS = 10


class Kubelet:
    """The kubelet's side: takes registrations."""

    def __init__(self, folder: Path) -> None:
        self.registered: list[Any] = []
        self.called = threading.Event()
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
        handler = grpc.unary_unary_rpc_method_handler(
            self._register,
            request_deserializer=MESSAGES["RegisterRequest"].FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
        service = grpc.method_handlers_generic_handler(f"{PACKAGE}.Registration", {"Register": handler})
        self._server.add_generic_rpc_handlers((service,))
        self._server.add_insecure_port(f"unix://{folder / 'kubelet.sock'}")
        self._server.start()

    def _register(self, request: Any, _context: Any) -> Any:
        self.registered.append(request)
        self.called.set()
        return MESSAGES["Empty"]()

    def stop(self) -> None:
        self._server.stop(grace=None).wait()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A kubelet's folder with a plugin of three devices that is registered there."""
    kubelet = Kubelet(tmp_path)
    ended = threading.Event()
    thread = threading.Thread(target=serve_once, args=(tmp_path, 3, ended))
    thread.start()
    assert kubelet.called.wait(CALL_SECONDS)
    assert (kubelet.registered[0].resource_name, kubelet.registered[0].endpoint) == (RESOURCE, SOCKET)
    yield tmp_path
    ended.set()
    thread.join()
    kubelet.stop()


def call(folder: Path, method: str, request: Any, answer: str, *, stream: bool = False) -> Any:
    with grpc.insecure_channel(f"unix://{folder / SOCKET}") as channel:
        kind = channel.unary_stream if stream else channel.unary_unary
        send = kind(
            f"/{PACKAGE}.DevicePlugin/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=MESSAGES[answer].FromString,
        )
        response = send(request, timeout=CALL_SECONDS)
        return next(response) if stream else response


def test_the_plugin_lists_its_devices_and_hands_them_out_by_cdi(folder: Path) -> None:
    listing = call(folder, "ListAndWatch", MESSAGES["Empty"](), "ListAndWatchResponse", stream=True)
    assert [(device.ID, device.health) for device in listing.devices] == [(str(n), "Healthy") for n in range(3)]
    request = MESSAGES["AllocateRequest"]()
    request.container_requests.add(devices_ids=["0", "2"])
    allocated = call(folder, "Allocate", request, "AllocateResponse")
    names = [device.name for device in allocated.container_responses[0].cdi_devices]
    assert names == ["nvidia.com/gpu=0", "nvidia.com/gpu=2"]
