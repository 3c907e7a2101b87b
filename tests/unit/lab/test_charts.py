from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.home import CLONE

OURS = CLONE / "lab" / "charts" / "gpu-operator"
REAL = CLONE.parent / "shared" / "upstream" / "gpu-operator"


def leaves(values: dict[str, Any], *path: str) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            found |= leaves(value, *path, key)
        else:
            found[(*path, key)] = value
    return found


@pytest.fixture
def real() -> dict[str, Any]:
    file = REAL / "values.yaml"
    if not file.is_file():
        pytest.skip(f"the published chart's values are not here: {REAL.relative_to(CLONE.parent)}")
    return dict(yaml.safe_load(file.read_text()))


def test_every_value_of_our_gpu_operator_chart_is_the_published_ones_with_its_default(real: dict[str, Any]) -> None:
    ours = yaml.safe_load((OURS / "values.yaml").read_text())
    published = leaves(real)
    found = leaves(ours)
    assert len(found) > 50
    assert {path: published.get(path, "not there") for path in found} == found


def test_chart_and_operator_are_of_one_version() -> None:
    chart = yaml.safe_load((OURS / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == "v26.7.0"


def test_every_chart_of_the_lab_has_a_name_of_its_own() -> None:
    names = {path.parent.name: yaml.safe_load(path.read_text())["name"] for path in charts()}
    assert names
    assert all(folder == name for folder, name in names.items())


def charts() -> list[Path]:
    return sorted((CLONE / "lab" / "charts").glob("*/Chart.yaml"))
