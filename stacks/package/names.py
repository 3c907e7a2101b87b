"""Pulumi's names of what a component registers: they begin with the component's own.

A URN has the types of a resource's parents, but not their names: two components of one program that
register the same names would collide. Pulumi also finds the children of a component that is renamed
with an alias by this beginning (pulumi 3.250, inheritedChildAlias in
pkg/resource/deploy/step_generator.go).
"""

from typing import Any

from pulumi.runtime import settings
from pulumi.runtime.proto import resource_pb2


class _NamingMonitor:
    """The engine's monitor, to which resources and hooks go under the component's name."""

    def __init__(self, monitor: Any, component: str) -> None:
        self._monitor = monitor
        self._component = component

    def __getattr__(self, name: str) -> Any:
        return getattr(self._monitor, name)

    def _name(self, name: str) -> str:
        own = name == self._component or name.startswith(f"{self._component}-")
        return name if own else f"{self._component}-{name}"

    def RegisterResource(self, request: resource_pb2.RegisterResourceRequest) -> Any:  # noqa: N802 - the service's name
        request.name = self._name(request.name)
        for _, hooks in request.hooks.ListFields():
            hooks[:] = [self._name(hook) for hook in hooks]
        return self._monitor.RegisterResource(request)

    def ReadResource(self, request: resource_pb2.ReadResourceRequest) -> Any:  # noqa: N802
        request.name = self._name(request.name)
        return self._monitor.ReadResource(request)

    def RegisterResourceHook(self, request: resource_pb2.RegisterResourceHookRequest) -> Any:  # noqa: N802
        request.name = self._name(request.name)
        return self._monitor.RegisterResourceHook(request)

    def RegisterErrorHook(self, request: resource_pb2.RegisterErrorHookRequest) -> Any:  # noqa: N802
        request.name = self._name(request.name)
        return self._monitor.RegisterErrorHook(request)


def name_after(component: str) -> None:
    """Name what this call of the engine registers from now on after a component."""
    settings.SETTINGS.monitor = _NamingMonitor(settings.get_monitor(), component)
