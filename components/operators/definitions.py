"""Custom resource definitions in the folder `crds/` of a chart, brought up to date before the chart's release is.

Helm installs such definitions once. It never changes them, neither with an upgrade nor where an earlier release left them behind
(https://helm.sh/docs/chart_best_practices/custom_resource_definitions/). An operator of a newer version would then run on
definitions that drop its new fields. Charts whose own hook upgrades their definitions, such as the GPU Operator's, need none of this.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi

from berth.components.cluster.api import ClusterApi, ClusterError
from berth.components.operators.helm import Chart, is_folder

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KIND = "CustomResourceDefinition"


class DefinitionsError(Exception):
    """The definitions of a chart could not be brought up to date; the text says why, and what to do."""


def up_to_date(
    name: str, chart: Chart, known: str, kubeconfig: pulumi.Input[str], parent: pulumi.Resource
) -> pulumi.ResourceHookBinding:
    """Hooks of a release: before a change of it, every definition of its chart is applied.

    Args:
        name: name of the release.
        chart: the chart.
        known: a definition of the chart. Before a first installation, nothing is done unless the cluster has it already.
        kubeconfig: the cluster, as text.
        parent: carries the kubernetes provider.
    """

    async def apply(change: pulumi.ResourceHookArgs) -> None:
        text = await pulumi.Output.from_input(kubeconfig).future()
        try:
            cluster = await asyncio.to_thread(ClusterApi, str(text))
            if change.old_inputs is None and await asyncio.to_thread(cluster.get, f"{_PATH}/{known}") is None:
                return
            for definition, manifest in (await _definitions(name, chart, parent)).items():
                await asyncio.to_thread(cluster.apply, f"{_PATH}/{definition}", manifest, f"berth-{pulumi.get_stack()}")
        except (ClusterError, OSError, ValueError) as error:
            raise DefinitionsError(
                f"the CRDs of chart {chart.chart} could not be brought up to date: {error}. The release was not changed, since the"
                " operator would run on older CRDs. Mend that, or apply the chart's CRDs by hand, and run the update again"
            ) from error
        pulumi.log.info(f"the CRDs of chart {chart.chart} are up to date", parent)

    hook = pulumi.ResourceHook(f"{name}-definitions", apply)
    return pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])


async def _definitions(name: str, chart: Chart, parent: pulumi.Resource) -> dict[str, str]:
    if is_folder(chart.chart):
        return await asyncio.to_thread(in_folder, Path(chart.chart))
    found = await pulumi.runtime.invoke_async(
        "kubernetes:helm:template",
        {"jsonOpts": json.dumps(_template(name, chart))},
        pulumi.InvokeOptions(parent=parent),
    )
    return among((found or {}).get("result") or [])


def _template(name: str, chart: Chart) -> dict[str, Any]:
    """Options of the provider's own `helm template`, which can fetch what a release can."""
    return {
        "chart": chart.chart,
        "version": chart.version,
        "fetch_opts": {"repo": chart.repository} if chart.repository and not chart.chart.startswith("oci://") else {},
        "namespace": chart.namespace,
        "release_name": name,
        "values": chart.values,
    }


def in_folder(chart: Path) -> dict[str, str]:
    """The definitions of a chart that is a folder: YAML text by the definition's name.

    Args:
        chart: the folder.

    Raises:
        ValueError: a file in `crds/` is not one definition.
    """
    return {_name(path): path.read_text(encoding="utf-8") for path in sorted((chart / "crds").glob("*.yaml"))}


def among(objects: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The definitions among the objects of a chart: JSON text by the definition's name.

    Args:
        objects: the objects.
    """
    found = [each for each in objects if each["kind"] == _KIND]
    # On its way through the engine every number becomes a float, and the API server takes no 1.0 for an integer.
    plain: list[dict[str, Any]] = json.loads(json.dumps(found), parse_float=_number)
    return {each["metadata"]["name"]: json.dumps(each) for each in plain}


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _name(path: Path) -> str:
    """Name of the definition in a file. The files are too long to be parsed for it: megabytes."""
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
