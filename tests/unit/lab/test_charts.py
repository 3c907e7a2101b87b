from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.hardware import versions
from berth.lab.home import CLONE

CHARTS = CLONE / "lab" / "charts"
PUBLISHED = CLONE.parent / "shared" / "upstream"

FEWEST = {"gpu-operator": 50, "dranet": 12, "dra-driver-nvidia-gpu": 12}
"""Smallest number of values in each of our charts, so that no test compares nothing."""


def leaves(values: dict[str, Any], *path: str) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            found |= leaves(value, *path, key)
        else:
            found[(*path, key)] = value
    return found


@pytest.mark.parametrize("chart", FEWEST)
def test_every_value_of_our_chart_is_the_published_ones_with_its_default(chart: str) -> None:
    file = PUBLISHED / chart / "values.yaml"
    if not file.is_file():
        pytest.skip(f"the published chart's values are not here: {file.relative_to(CLONE.parent)}")
    published = leaves(yaml.safe_load(file.read_text()))
    found = leaves(yaml.safe_load((CHARTS / chart / "values.yaml").read_text()))
    assert len(found) >= FEWEST[chart]
    assert {path: published.get(path, "not there") for path in found} == found


def rules(schema: dict[str, Any], *path: str) -> dict[tuple[str, ...], Any]:
    """Rules of a definition for each of its fields: type, allowed values, required fields,
    default, nullable.
    """
    names = ("type", "enum", "required", "default", "nullable")
    found = {path: {name: schema[name] for name in names if name in schema}}
    for key, value in (schema.get("properties") or {}).items():
        found |= rules(value, *path, key)
    return found | (rules(schema["items"], *path, "[]") if "items" in schema else {})


def specification(text: str) -> dict[str, Any]:
    versions = yaml.safe_load(text)["spec"]["versions"]
    return dict(versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"])


def test_our_cluster_policy_refuses_what_the_published_one_refuses() -> None:
    file = PUBLISHED / "gpu-operator" / "nvidia.com_clusterpolicies.yaml"
    if not file.is_file():
        pytest.skip(f"the published definition is not here: {file.relative_to(CLONE.parent)}")
    ours = rules(
        specification((CHARTS / "gpu-operator" / "crds" / "clusterpolicies.yaml").read_text())
    )
    published = rules(specification(file.read_text()))
    assert len(ours) >= FEWEST["gpu-operator"]
    assert {path: rule for path, rule in published.items() if path in ours} == ours
    # Each field that the chart sets and that has rules of its own is there.
    values = leaves(yaml.safe_load((CHARTS / "gpu-operator" / "values.yaml").read_text()))
    strict = {path for path, rule in published.items() if "enum" in rule and path in values}
    assert strict
    assert strict <= ours.keys()


@pytest.mark.parametrize(
    ("chart", "version", "app"),
    [
        ("gpu-operator", versions.GPU_OPERATOR, versions.GPU_OPERATOR),
        ("dranet", versions.DRANET, f"v{versions.DRANET}"),
        ("dra-driver-nvidia-gpu", versions.GPU_DRA, versions.GPU_DRA),
        ("kuberay-operator", versions.KUBERAY, f"v{versions.KUBERAY}"),
    ],
)
def test_a_chart_is_of_the_version_that_berth_installs(chart: str, version: str, app: str) -> None:
    found = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())
    assert (found["version"], found["appVersion"]) == (version, app)


def test_every_chart_of_the_lab_has_a_name_of_its_own() -> None:
    names = {path.parent.name: yaml.safe_load(path.read_text())["name"] for path in charts()}
    assert names
    assert all(folder == name for folder, name in names.items())


def charts() -> list[Path]:
    return sorted((CLONE / "lab" / "charts").glob("*/Chart.yaml"))
