"""Parts of an operator: charts, with what they are installed with, and Kubernetes objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest

Values = Mapping[str, Any]
"""Helm values of a chart."""


@dataclass(frozen=True)
class Chart:
    """A chart and what it is installed with."""

    chart: str
    """A name in `repository`, an `oci://` reference, or a folder (begins with `.` or `/`)."""
    repository: str | None
    """The chart repository; unused for the other two."""
    version: str
    """Version of the chart; unused for a folder, which has its own."""
    namespace: str
    values: dict[str, Any] = field(default_factory=dict)
    ours: dict[str, Any] = field(default_factory=dict)
    """Values among them that berth sets, whatever the settings override."""
    timeout: int = 300
    """Seconds until the objects of the chart have to be ready."""
    validated: bool = True
    """Whether Helm checks the objects against the cluster's OpenAPI schema first."""
    definition: str = ""
    """Name of a CRD that the chart has in its folder `crds/`, for charts that do not upgrade
    them."""
    warn: Callable[[Values, Values], Iterable[str]] | None = None
    """Lines to print in a preview, from the Helm values before and after a change."""

    def mirrored(self, mirror: str) -> Chart:
        """Return the chart as a repository, or a prefix of `oci://` references, has it.

        A folder, or without a mirror ("") any chart, stays as it is.
        """
        if not mirror or self.is_folder:
            return self
        name = self.chart.rstrip("/").rpartition("/")[2]
        if mirror.startswith("oci://"):
            return replace(self, chart=f"{mirror.rstrip('/')}/{name}")
        return replace(self, chart=name, repository=mirror)

    @property
    def is_folder(self) -> bool:
        """Whether the chart is a folder rather than a name or a reference."""
        return self.chart.startswith((".", "/"))

    @property
    def in_repository(self) -> str | None:
        """Repository of a chart that is given by name."""
        return None if self.is_folder or self.chart.startswith("oci://") else self.repository


@dataclass(frozen=True)
class Object:
    """A Kubernetes object of an operator."""

    name: str
    """Pulumi's name."""
    manifest: Manifest
    was_part_of: str = ""
    """Type and name of the component that the object belonged to in older versions."""


Part = Chart | Object


def namespace_of(name: str, namespace: str) -> Object:
    """Return the namespace of an operator; Helm would create it too, but leave it behind."""
    metadata = {"name": namespace, "labels": dict(MANAGED_BY)}
    return Object(name, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def pulled_containers(manifest: Manifest) -> list[Manifest]:
    """Return the containers of a DaemonSet whose image a node pulls; none of another object."""
    pod = manifest["spec"]["template"]["spec"] if manifest["kind"] == "DaemonSet" else {}
    containers = [*pod.get("initContainers", ()), *pod.get("containers", ())]
    return [container for container in containers if container.get("imagePullPolicy") != "Never"]
