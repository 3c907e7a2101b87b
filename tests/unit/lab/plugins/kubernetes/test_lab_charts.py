from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.hardware import versions
from berth.lab.home import CLONE
from berth.lab.plugins.kubernetes.lab_charts import REFERENCES, REPOSITORIES, played

CHARTS = CLONE / "lab" / "charts"


def inputs(name: str = "kuberay-operator", repository: str | None = versions.KUBERAY_REPOSITORY, **more: Any) -> Any:
    return {"chart": name, "repositoryOpts": {"repo": repository, "caFile": ""}, "version": versions.KUBERAY} | more


def test_the_repositories_are_those_that_berth_installs_from() -> None:
    assert {
        "kuberay-operator": versions.KUBERAY_REPOSITORY.rstrip("/"),
        "gpu-operator": versions.GPU_OPERATOR_REPOSITORY.rstrip("/"),
    } == REPOSITORIES
    assert {
        "dranet": versions.DRANET_CHART,
        "dra-driver-nvidia-gpu": versions.GPU_DRA_CHART,
    } == REFERENCES
    assert {path.name for path in CHARTS.iterdir()} == REPOSITORIES.keys() | REFERENCES.keys()


def test_a_published_chart_is_played_by_the_labs_of_that_name() -> None:
    found = played(CHARTS, inputs())
    assert found is not None
    assert (found.folder, found.version) == (CHARTS / "kuberay-operator", versions.KUBERAY)
    assert str(found) == "simulated: the lab has no network and plays this chart by its own kuberay-operator 1.6.2"
    operator = played(CHARTS, inputs("gpu-operator", versions.GPU_OPERATOR_REPOSITORY, version=versions.GPU_OPERATOR))
    assert operator is not None
    assert operator.version == versions.GPU_OPERATOR


@pytest.mark.parametrize(
    ("chart", "version"), [(versions.DRANET_CHART, versions.DRANET), (versions.GPU_DRA_CHART, versions.GPU_DRA)]
)
def test_a_chart_that_is_published_as_an_image_is_played_too(tmp_path: Path, chart: str, version: str) -> None:
    found = played(CHARTS, {"chart": chart, "version": version})
    assert found is not None
    assert str(found).endswith(f" {version}"), "nothing is recorded under another version than the lab's own"
    assert (found.copy(tmp_path) / "templates").is_dir()


@pytest.mark.parametrize(
    "given",
    [
        inputs("./charts/kuberay-operator"),
        inputs("oci://registry.example/kuberay-operator"),
        inputs(repository=None),
        inputs(repository="https://charts.example/mirror"),
        inputs("dranet"),
        {"chart": "dranet", "version": versions.DRANET},
        {"chart": "oci://mirror.example/charts/dranet", "version": versions.DRANET},
        {"chart": "oci://registry.k8s.io/networking/charts/other"},
        {"chart": "kuberay-operator", "version": "1.6.2"},
    ],
)
def test_other_charts_are_helms_business(given: dict[str, Any]) -> None:
    assert played(CHARTS, given) is None


def test_a_lab_without_charts_plays_none(tmp_path: Path) -> None:
    assert played(tmp_path / "charts", inputs()) is None


@pytest.mark.parametrize(("asked", "recorded"), [("1.7.0", "1.7.0"), ("", "1.6.2"), ("~1.6", "1.6.2")])
def test_the_version_that_is_asked_for_is_what_is_recorded(tmp_path: Path, asked: str, recorded: str) -> None:
    found = played(CHARTS, inputs(version=asked))
    assert found is not None
    copy = found.copy(tmp_path)
    assert found.copy(tmp_path) == copy
    metadata = yaml.safe_load((copy / "Chart.yaml").read_text())
    assert (metadata["name"], metadata["version"], metadata["appVersion"]) == ("kuberay-operator", recorded, "v1.6.2")
    assert (copy / "templates" / "deployment.yaml").is_file()
    assert ("recorded as 1.7.0" in str(found)) is (asked == "1.7.0")
