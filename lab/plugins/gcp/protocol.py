"""Messages of the engine's protocol as plain data, and errors that the engine shows as they are.

The SDK's own server (`pulumi.provider.experimental`) answers every error with a Python stack and
cannot report an object that exists but is not ready. So the SDK's generated protocol is served
here.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from google.protobuf import json_format, struct_pb2
from pulumi.runtime.proto import provider_pb2, status_pb2

from berth.components.core.errors import BerthError
from berth.components.core.numbers import whole_numbers
from berth.lab.plugins.gcp.errors import ProviderError

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


def plain_properties(properties: struct_pb2.Struct) -> Properties:
    """Return a message's properties as plain data, in which whole numbers are integers."""
    found: Properties = whole_numbers(json_format.MessageToDict(properties))
    return found


def message_properties(properties: Mapping[str, Any]) -> struct_pb2.Struct:
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
                id=error.resource_id,
                properties=message_properties(error.properties),
                reasons=error.reasons,
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
