"""Debug messages of Pulumi's SDK, which a run without `--debug` need not send.

The SDK sends four for each resource, and waits for the engine's answer to each one; without
`--debug` the engine drops them (pulumi 3.272, sdk/python/lib/pulumi/log.py). For a list of 100
engineers that was nowhere changed they were a seventh of the time.
"""

from typing import Any

from pulumi.runtime import settings
from pulumi.runtime.proto import engine_pb2


class _QuietEngine:
    """The engine that a program talks to, without its debug messages."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def Log(self, request: engine_pb2.LogRequest) -> None:  # noqa: N802 - the service's name
        if request.severity != engine_pb2.DEBUG:
            self._engine.Log(request)


def send_no_debug_messages() -> None:
    """Keep the debug messages of this program from the engine."""
    settings.SETTINGS.engine = _QuietEngine(settings.get_engine())
