"""CRDs in the folder `crds/` of a chart, applied before the chart's release changes.

Helm installs such definitions once. It never changes them, neither with an upgrade nor where an
earlier release left them (https://helm.sh/docs/chart_best_practices/custom_resource_definitions/).
An operator of a newer version would then run on definitions that drop its new fields. Charts whose
own hook upgrades their definitions, such as the GPU Operator's, need none of this.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi

from berth.components.core.errors import BerthError
from berth.components.operators.operator import Chart

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KIND = "CustomResourceDefinition"


class DefinitionsError(BerthError):
    """Failure to apply the definitions of a chart, with the reason and the remedy."""


def definitions_hook(name: str, chart: Chart, parent: pulumi.Resource) -> pulumi.ResourceHook:
    """Return a hook of a release that applies every definition of its chart.

    Before a first installation it does nothing, unless the cluster has `chart.definition` already.
    """

    async def apply(change: pulumi.ResourceHookArgs) -> None:
        # Imported here: the kubernetes client takes a third of a second, and few updates change a
        # release.
        from berth.components.cluster.api import ClusterApi, ClusterError  # noqa: PLC0415

        text = await pulumi.Output.from_input(chart.kubeconfig).future()
        try:
            cluster = await asyncio.to_thread(ClusterApi, str(text))
            known = f"{_PATH}/{chart.definition}"
            if change.old_inputs is None and await asyncio.to_thread(cluster.get, known) is None:
                return
            for definition, manifest in (await _definitions(name, chart, parent)).items():
                await asyncio.to_thread(cluster.apply, f"{_PATH}/{definition}", manifest, f"berth-{pulumi.get_stack()}")
        except (ClusterError, OSError, ValueError) as error:
            raise DefinitionsError(
                f"the CRDs of chart {chart.chart} could not be brought up to date: {error}. The release was not"
                " changed, since the operator would run on older CRDs. Fix that, or apply the chart's CRDs by hand, and"
                " run the update again"
            ) from error
        pulumi.log.info(f"the CRDs of chart {chart.chart} are up to date", parent)

    return pulumi.ResourceHook(f"{name}-definitions", apply)


async def _definitions(name: str, chart: Chart, parent: pulumi.Resource) -> dict[str, str]:
    if chart.is_folder:
        return await asyncio.to_thread(in_folder, Path(chart.chart))
    found = await pulumi.runtime.invoke_async(
        "kubernetes:helm:template",
        {"jsonOpts": json.dumps(_template(name, chart))},
        pulumi.InvokeOptions(parent=parent),
    )
    return among((found or {}).get("result") or [])


def _template(name: str, chart: Chart) -> dict[str, Any]:
    """Return options of the provider's own `helm template`, which can fetch what a release can."""
    return {
        "chart": chart.chart,
        "version": chart.version,
        "fetch_opts": {"repo": chart.in_repository} if chart.in_repository else {},
        "namespace": chart.namespace,
        "release_name": name,
        "values": chart.values,
    }


def in_folder(chart: Path) -> dict[str, str]:
    """Return the definitions of a chart that is a folder: YAML text by the definition's name.

    Raises:
        ValueError: a file in `crds/` is not one definition.
    """
    return {_name(path): path.read_text(encoding="utf-8") for path in sorted((chart / "crds").glob("*.yaml"))}


def among(objects: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the definitions among the objects of a chart: JSON text by the definition's name."""
    found = [manifest for manifest in objects if manifest["kind"] == _KIND]
    # The engine turns every number into a float, and the API server takes no 1.0 for an integer.
    plain: list[dict[str, Any]] = json.loads(json.dumps(found), parse_float=_number)
    return {definition["metadata"]["name"]: json.dumps(definition) for definition in plain}


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _name(path: Path) -> str:
    """Return the name of the definition in a file, which is too long to parse as YAML."""
    group = plural = ""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("  group: "):
                group = line.split()[1]
            elif line.startswith("    plural: "):
                plural = line.split()[1]
            if group and plural:
                return f"{plural}.{group}"
    raise ValueError(f"{path} is not a {_KIND}")
