"""Resources of Pulumi's Google provider, registered by type and arguments.

The classes of `pulumi_gcp.compute` and `pulumi_gcp.container` would send the same. Their import
takes two seconds of every preview and update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi_gcp import _utilities
from pydantic.alias_generators import to_camel

MAPS = frozenset({"labels", "resource_labels", "sysctls"})
"""Arguments that are maps, which keep their keys."""


class GoogleResource(pulumi.CustomResource):
    """Resource of Google Cloud, without properties of its own: `output` returns one."""

    def __init__(
        self,
        kind: str,
        name: str,
        arguments: Mapping[str, Any],
        opts: pulumi.ResourceOptions,
        outputs: Sequence[str] = (),
    ) -> None:
        """Register the resource.

        Args:
            kind: the type within the provider, such as `compute/network:Network`.
            name: the resource's name in the stack.
            arguments: arguments in snake case.
            opts: Pulumi's options.
            outputs: names of the outputs that are read and are no arguments, in snake case.
        """
        properties = sent(arguments) | {to_camel(output): None for output in outputs}
        version = pulumi.ResourceOptions(version=_utilities.get_version())
        super().__init__(f"gcp:{kind}", name, properties, pulumi.ResourceOptions.merge(version, opts))

    def output(self, name: str) -> pulumi.Output[Any]:
        """Return an argument or an output by its name in snake case."""
        found: pulumi.Output[Any] = pulumi.get(self, to_camel(name))
        return found


def sent(value: Any) -> Any:
    """Return arguments with the names that the provider knows."""
    if isinstance(value, Mapping):
        return {to_camel(key): inner if key in MAPS else sent(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [sent(inner) for inner in value]
    return value
