"""CRDs in the folder `crds/` of a chart, brought up to date before the chart's release changes.

Helm installs such definitions once. It never changes them, neither with an upgrade nor where an
earlier release left them (https://helm.sh/docs/chart_best_practices/custom_resource_definitions/).
An operator of a newer version would then run on definitions that drop its new fields. Charts whose
own hook upgrades their definitions, such as the GPU Operator's, need none of this.

A definition that the cluster has as the chart wants it is not applied: for the four of KubeRay an
API server needs 5 s of CPU even if nothing changes, and 0.3 s to show them.
"""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pulumi
import yaml

from berth.components.cluster.api import ClusterApi, ClusterError
from berth.components.core.errors import BerthError
from berth.components.core.fast_yaml import LOADER
from berth.components.core.manifest import Manifest
from berth.components.core.numbers import whole_numbers
from berth.components.operators.parts import Chart

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KIND = "CustomResourceDefinition"


class DefinitionsError(BerthError):
    """Failure to apply the definitions of a chart, with the reason and the remedy."""


def definitions_hook(
    name: str, chart: Chart, kubeconfig: pulumi.Input[str], parent: pulumi.Resource
) -> pulumi.ResourceHook:
    """Return a hook of a release that brings every definition of its chart up to date.

    Before a first installation it does nothing, unless the cluster has `chart.definition` already.
    """

    async def apply(change: pulumi.ResourceHookArgs) -> None:
        text = await pulumi.Output.from_input(kubeconfig).future()
        try:
            cluster = await asyncio.to_thread(ClusterApi, str(text))
            existing = f"{_PATH}/{chart.definition}"
            if change.old_inputs is None and await asyncio.to_thread(cluster.get, existing) is None:
                return
            for definition in await _definitions(name, chart, parent):
                path = f"{_PATH}/{definition['metadata']['name']}"
                if not is_up_to_date(await asyncio.to_thread(cluster.get, path), definition):
                    manager = f"berth-{pulumi.get_stack()}"
                    await asyncio.to_thread(
                        cluster.apply, path, json.dumps(definition, default=str), manager
                    )
        except (ClusterError, OSError, ValueError) as error:
            raise DefinitionsError(
                f"the CRDs of chart {chart.chart} could not be brought up to date: {error}. The"
                " release was not changed, since the operator would run on older CRDs",
                "fix the cause, or apply the chart's CRDs by hand; then run the update again",
            ) from error
        pulumi.log.info(f"the CRDs of chart {chart.chart} are up to date", parent)

    return pulumi.ResourceHook(f"{name}-definitions", apply)


async def _definitions(name: str, chart: Chart, parent: pulumi.Resource) -> list[Manifest]:
    if chart.is_folder:
        return await asyncio.to_thread(definitions_in_folder, Path(chart.chart))
    # The provider's own `helm template` can fetch what a release can.
    options = {
        "chart": chart.chart,
        "version": chart.version,
        "fetch_opts": {"repo": chart.in_repository} if chart.in_repository else {},
        "namespace": chart.namespace,
        "release_name": name,
        "values": chart.values,
    }
    rendered = await pulumi.runtime.invoke_async(
        "kubernetes:helm:template",
        {"jsonOpts": json.dumps(options)},
        pulumi.InvokeOptions(parent=parent),
    )
    # The API server takes no 1.0 for an integer.
    return definitions_among(whole_numbers((rendered or {}).get("result") or []))


def definitions_in_folder(chart: Path) -> list[Manifest]:
    """Return the definitions of a chart that is a folder.

    Raises:
        ValueError: a file in `crds/` is not YAML, or has no definition.
    """
    definitions: list[Manifest] = []
    for path in sorted((chart / "crds").glob("*.yaml")):
        try:
            of_file = definitions_among(
                yaml.load_all(path.read_text(encoding="utf-8"), Loader=LOADER)
            )
        except yaml.YAMLError as error:
            raise ValueError(f"{path} is not YAML: {error}") from error
        if not of_file:
            raise ValueError(f"{path} is not a {_KIND}")
        definitions += of_file
    return definitions


def definitions_among(objects: Iterable[Any]) -> list[Manifest]:
    """Return the definitions among the objects of a chart."""
    return [
        manifest
        for manifest in objects
        if isinstance(manifest, dict) and manifest.get("kind") == _KIND
    ]


def is_up_to_date(live: Any, manifest: Any) -> bool:
    """Return whether an object of the cluster, or a part of it, is as a manifest wants it.

    The cluster may have more fields. A list has to be the same: the versions of a definition, with
    their schemas, are one.
    """
    if isinstance(manifest, dict):
        return isinstance(live, dict) and all(
            is_up_to_date(live.get(key), value) for key, value in manifest.items()
        )
    # Generators write `creationTimestamp: null`, which asks for nothing.
    return manifest is None or bool(live == manifest)
