"""CRDs of a chart: which there are, and when they are applied."""

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from berth.components.cluster.api import ClusterError
from berth.components.operators import definitions
from berth.components.operators.definitions import (
    DefinitionsError,
    definitions_among,
    definitions_hook,
    definitions_in_folder,
    is_up_to_date,
)
from berth.components.operators.parts import Chart

RAY = "rayclusters.ray.io"
TEXT = Path(__file__).with_name("definition.yaml").read_text(encoding="utf-8")
DEFINITION: dict[str, Any] = yaml.safe_load(TEXT)


@pytest.fixture
def chart(tmp_path: Path) -> Chart:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "a.yaml").write_text(TEXT)
    return Chart(str(tmp_path), None, "1.0.0", "n", definition=RAY)


def test_the_definitions_of_a_folder(chart: Chart) -> None:
    assert definitions_in_folder(Path(chart.chart)) == [DEFINITION]
    (Path(chart.chart) / "crds" / "b.yaml").write_text("kind: Nothing\n")
    with pytest.raises(ValueError, match=r"b\.yaml is not a CustomResourceDefinition"):
        definitions_in_folder(Path(chart.chart))
    (Path(chart.chart) / "crds" / "b.yaml").write_text("kind: [\n")
    with pytest.raises(ValueError, match=r"b\.yaml is not YAML"):
        definitions_in_folder(Path(chart.chart))


def test_the_definitions_among_rendered_objects() -> None:
    assert definitions_among(
        [DEFINITION, {"kind": "Deployment", "metadata": {"name": "x"}}, None]
    ) == [DEFINITION]


def live(**versions: Any) -> dict[str, Any]:
    """The definition as a cluster shows it, with other fields of its first version."""
    shown = copy.deepcopy(DEFINITION)
    shown["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    shown["spec"]["conversion"] = {"strategy": "None"}
    shown["spec"]["versions"][0] |= versions
    return shown


def test_a_cluster_has_a_definition_with_more_fields_but_not_with_another_schema() -> None:
    assert is_up_to_date(live(), DEFINITION)
    assert not is_up_to_date(live(served=False), DEFINITION)
    assert not is_up_to_date(live(schema={}), DEFINITION)
    assert not is_up_to_date(None, DEFINITION)


class Cluster:
    """A cluster that has some definitions."""

    def __init__(self, *definitions: dict[str, Any], refuses: bool = False) -> None:
        self.definitions = {
            definition["metadata"]["name"]: definition for definition in definitions
        }
        self.refuses = refuses
        self.applied: list[str] = []
        self.manifests: list[str] = []

    def get(self, path: str) -> dict[str, Any] | None:
        return self.definitions.get(path.rsplit("/", 1)[1])

    def apply(self, path: str, manifest: str, manager: str) -> None:
        assert (json.loads(manifest), manager) == (DEFINITION, "berth-stack")
        self.manifests.append(manifest)
        if self.refuses:
            raise ClusterError("no")
        self.applied.append(path.rsplit("/", 1)[1])


def run(
    chart: Chart, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, old: dict[str, Any] | None
) -> list[str]:
    """The definitions that the hook of a release applies."""
    hooks: list[Any] = []
    monkeypatch.setattr(definitions, "ClusterApi", lambda _: cluster)

    def registered(_: str, function: Any) -> Any:
        hooks.append(function)
        return function

    monkeypatch.setattr(pulumi, "ResourceHook", registered)

    async def hooked() -> None:
        definitions_hook(
            "kuberay",
            chart,
            "kubeconfig",
            pulumi.ComponentResource.__new__(pulumi.ComponentResource),
        )
        await hooks[0](pulumi.ResourceHookArgs("urn", "id", "name", "type", old_inputs=old))

    monkeypatch.setattr(pulumi.log, "info", lambda *_: None)
    monkeypatch.setattr(pulumi, "get_stack", lambda: "stack")
    asyncio.run(hooked())
    return cluster.applied


def test_an_update_applies_them(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(chart, Cluster(), monkeypatch, {}) == [RAY]


def test_a_first_installation_leaves_them_to_helm(
    chart: Chart, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(chart, Cluster(), monkeypatch, None) == []


def test_an_installation_where_an_earlier_one_left_them_applies_them(
    chart: Chart, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(chart, Cluster(live(schema={})), monkeypatch, None) == [RAY]


def test_definitions_that_the_cluster_has_are_not_applied_again(
    chart: Chart, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(chart, Cluster(live()), monkeypatch, None) == []
    assert run(chart, Cluster(live()), monkeypatch, {}) == []


def test_numbers_of_a_rendered_chart_are_integers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def rendered(*_: object) -> dict[str, Any]:
        return {"result": [json.loads(json.dumps(DEFINITION), parse_int=float)]}

    monkeypatch.setattr(pulumi.runtime, "invoke_async", rendered)
    monkeypatch.setattr(pulumi, "InvokeOptions", lambda **_: None)
    published = Chart("kuberay-operator", "https://charts", "1.0.0", "n", definition=RAY)
    cluster = Cluster()
    assert run(published, cluster, monkeypatch, {}) == [RAY]
    assert ".0" not in cluster.manifests[0]


def test_a_refusal_says_what_was_not_done_and_what_to_do(
    chart: Chart, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        DefinitionsError, match=r"not be brought up to date: no\. The release was not changed"
    ):
        run(chart, Cluster(refuses=True), monkeypatch, {})
