"""Pulumi's engine, to which the plugin sends lines for the user."""

import logging
from typing import Any

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

_log = logging.getLogger(__name__)


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
