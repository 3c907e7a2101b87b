"""CRDs of a chart: which there are, and when they are applied."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pulumi
import pytest

from berth.components.cluster import api
from berth.components.cluster.api import ClusterError
from berth.components.operators.definitions import DefinitionsError, among, definitions_hook, in_folder
from berth.components.operators.operator import Chart

RAY = "rayclusters.ray.io"
TEXT = """# made by a generator
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: rayclusters.ray.io
spec:
  group: ray.io
  names:
    kind: RayCluster
    plural: rayclusters
"""


@pytest.fixture
def chart(tmp_path: Path) -> Chart:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "a.yaml").write_text(TEXT)
    return Chart(str(tmp_path), None, "1.0.0", "n", definition=RAY, kubeconfig="kubeconfig")


def test_the_definitions_of_a_folder(chart: Chart) -> None:
    assert in_folder(Path(chart.chart)) == {RAY: TEXT}
    (Path(chart.chart) / "crds" / "b.yaml").write_text("kind: Nothing\n")
    with pytest.raises(ValueError, match=r"b\.yaml is not a CustomResourceDefinition"):
        in_folder(Path(chart.chart))


def test_the_definitions_among_rendered_objects() -> None:
    definition = {"kind": "CustomResourceDefinition", "metadata": {"name": RAY}, "spec": {"maxLength": 63.0}}
    found = among([definition, {"kind": "Deployment", "metadata": {"name": "x"}}])
    assert {name: json.loads(text) for name, text in found.items()} == {RAY: definition}
    assert '"maxLength": 63}' in found[RAY], "an integer again"


class Cluster:
    """A cluster that has some definitions."""

    def __init__(self, *names: str, refuses: bool = False) -> None:
        self.names = names
        self.refuses = refuses
        self.applied: list[str] = []

    def get(self, path: str) -> dict[str, Any] | None:
        return {} if path.rsplit("/", 1)[1] in self.names else None

    def apply(self, path: str, manifest: str, manager: str) -> None:
        assert (manifest, manager) == (TEXT, "berth-stack")
        if self.refuses:
            raise ClusterError("no")
        self.applied.append(path.rsplit("/", 1)[1])


def run(chart: Chart, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, old: dict[str, Any] | None) -> list[str]:
    """The definitions that the hook of a release applies."""
    hooks: list[Any] = []
    monkeypatch.setattr(api, "ClusterApi", lambda _: cluster)

    def registered(_: str, function: Any) -> Any:
        hooks.append(function)
        return function

    monkeypatch.setattr(pulumi, "ResourceHook", registered)

    async def hooked() -> None:
        definitions_hook("kuberay", chart, pulumi.ComponentResource.__new__(pulumi.ComponentResource))
        await hooks[0](pulumi.ResourceHookArgs("urn", "id", "name", "type", old_inputs=old))

    monkeypatch.setattr(pulumi.log, "info", lambda *_: None)
    monkeypatch.setattr(pulumi, "get_stack", lambda: "stack")
    asyncio.run(hooked())
    return cluster.applied


def test_an_update_applies_them(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(chart, Cluster(), monkeypatch, {}) == [RAY]


def test_a_first_installation_leaves_them_to_helm(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(chart, Cluster(), monkeypatch, None) == []


def test_an_installation_where_an_earlier_one_left_them_applies_them(
    chart: Chart, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(chart, Cluster(RAY), monkeypatch, None) == [RAY]


def test_a_refusal_says_what_was_not_done_and_what_to_do(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DefinitionsError, match=r"not be brought up to date: no\. The release was not changed"):
        run(chart, Cluster(refuses=True), monkeypatch, {})
