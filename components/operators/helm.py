"""The one way that a chart is installed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes.helm import v3 as helm

from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import MANAGED_BY


@dataclass(frozen=True)
class Chart:
    """A chart and what to install it with.

    Attributes:
        chart: a name in `repository`, an `oci://` reference, or a folder (begins with `.` or `/`).
        repository: the chart repository; unused for the other two.
        version: the chart's version; unused for a folder, which has its own.
        namespace: where it goes; it must be there (operator_namespace).
        values: Helm values.
        timeout: seconds to wait for what the chart installs to be ready.
        validated: Helm holds the chart's objects to the cluster's OpenAPI schema first.
    """

    chart: str
    repository: str | None
    version: str
    namespace: str
    values: dict[str, Any] = field(default_factory=dict)
    timeout: int = 300
    validated: bool = True


def operator_namespace(name: str, namespace: str, opts: pulumi.ResourceOptions) -> KubernetesObject:
    """The namespace of an operator. Helm could make it too, but would leave it behind when the release goes."""
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": dict(MANAGED_BY)}}
    return KubernetesObject(name, manifest, opts)


def is_folder(chart: str) -> bool:
    """Whether a chart is a folder rather than a name or a reference."""
    return chart.startswith((".", "/"))


def release(name: str, chart: Chart, opts: pulumi.ResourceOptions) -> helm.Release:
    """A real Helm release (its hooks run), named `name`, whose objects are ready when it is done.

    Args:
        name: name of the release, fixed so that objects derived from it are too.
        chart: what to install.
        opts: Pulumi's options.
    """
    from_repository = not is_folder(chart.chart) and not chart.chart.startswith("oci://")
    return helm.Release(
        name,
        name=name,
        chart=chart.chart,
        version=None if is_folder(chart.chart) else chart.version,
        repository_opts=helm.RepositoryOptsArgs(repo=chart.repository)
        if from_repository and chart.repository
        else None,
        namespace=chart.namespace,
        values=chart.values,
        timeout=chart.timeout,
        disable_openapi_validation=None if chart.validated else True,
        opts=opts,
    )
