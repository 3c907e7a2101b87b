"""A mirror of images: nothing that an environment's program registers pulls from elsewhere."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.core.merge import merged
from berth.components.hardware import versions
from berth.components.operators.settings import OPERATORS
from berth.stacks.program.environment import register_environment
from tests.unit.cases import table
from tests.unit.loaded import engineer_of, environment_of
from tests.unit.recording import Recorder, run
from tests.unit.stacks.test_fabric_program import RELEASE, serves

CLONE = Path(__file__).resolve().parents[3]
UPSTREAM = CLONE.parent / "shared" / "upstream"
MIRROR = "registry.example.com:5000/mirror"
ELSEWHERE = re.compile(
    r"(?<![\w./-])(?:[\w-]+[.-])*(?:docker\.io|nvcr\.io|quay\.io|gcr\.io|registry\.k8s\.io|docker\.pkg\.dev|rayproject)/"
)
"""Beginning of an image's name that is not below the mirror."""
ON_NODES = "cos-nvidia-installer:fixed"
"""Image that every node has and nobody pulls."""

A4: dict[str, Any] = {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot"}
EVERYTHING: dict[str, Any] = table(__file__, "image_mirror.yaml")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Recorder]:
    """Record what the program of an environment with every operator registers."""
    serves(monkeypatch, "v1")

    def record(**values: Any) -> Recorder:
        loaded = environment_of("some", merged(EVERYTHING, values))
        return run(lambda: register_environment(loaded), "some")

    return record


def images(value: Any, key: str = "") -> Iterator[str]:
    """Images of manifests: the text of each `image`."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from images(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from images(inner, key)
    elif key == "image":
        yield str(value)


def repositories(values: Any) -> Iterator[str]:
    """Repositories of a chart's values, which may be empty."""
    if isinstance(values, dict):
        yield from (str(inner) for name, inner in values.items() if name == "repository" and inner)
        for inner in values.values():
            yield from repositories(inner)


def charts(name: str) -> list[Path]:
    """Default values of a chart: the lab's, and the published chart's where they are at hand."""
    found = [CLONE / "lab" / "charts" / name / "values.yaml", UPSTREAM / name / "values.yaml"]
    return [path for path in found if path.exists()]


def test_no_image_of_a_manifest_or_chart_escapes_the_mirror(
    recorded: Callable[..., Recorder],
) -> None:
    registrations = recorded().registrations
    releases = [found for found in registrations if found.type == RELEASE]
    assert {found.name for found in releases} == {
        operator.release for operator in OPERATORS if operator.known_chart().images
    }
    pulled = {
        image for found in registrations if found.type != RELEASE for image in images(found.inputs)
    }
    assert len(pulled) > 3
    assert {image for image in pulled if not image.startswith(f"{MIRROR}/")} == {ON_NODES}
    for release in releases:
        for path in charts(release.name):
            values = merged(
                yaml.safe_load(path.read_text(encoding="utf-8")), release.inputs["values"]
            )
            assert [
                name for name in repositories(values) if not name.startswith(f"{MIRROR}/")
            ] == [], path
    for found in registrations:
        text = json.dumps(
            {key: value for key, value in found.inputs.items() if key != "chart"}, default=str
        )
        assert not (match := ELSEWHERE.search(text)), (
            found.name,
            text[match.start() : match.end() + 40],
        )


def test_values_that_lead_to_the_mirror(
    recorded: Callable[..., Recorder], golden: Callable[[str, Any], None]
) -> None:
    for release in recorded().of_type(RELEASE):
        golden(f"mirror/{release.name}", release.inputs["values"])


def test_what_users_write_is_pulled_as_it_is_written(recorded: Callable[..., Recorder]) -> None:
    own = "registry.example.com/own"
    found = recorded(
        defaults={"image": f"{own}/ray:1"},
        operators={
            "gib": {"image": f"{own}/gib:1"},
            "kuberay": {"values": {"image": {"repository": f"{own}/kuberay"}}},
            "gpu": {"values": {"toolkit": {"repository": own}}},
        },
    )
    pulled = {
        image
        for entry in found.registrations
        for image in images(entry.inputs)
        if entry.type != RELEASE
    }
    assert {f"{own}/ray:1", f"{own}/gib:1"} <= pulled
    assert f"{MIRROR}/docker.io/{versions.RAY_IMAGE}" not in pulled
    values = {release.name: release.inputs["values"] for release in found.of_type(RELEASE)}
    assert values["kuberay-operator"]["image"]["repository"] == f"{own}/kuberay"
    assert values["gpu-operator"]["toolkit"]["repository"] == own


def test_engineers_own_stacks_take_the_mirrors_image_and_its_name_of_the_proofs() -> None:
    contract = environment_of("some", EVERYTHING).contract()
    assert contract.image_mirror == MIRROR
    settings = engineer_of("carol").on(contract).berth.settings
    assert settings.image == f"{MIRROR}/docker.io/{versions.RAY_IMAGE}"
    assert engineer_of("carol", image="own:1").on(contract).berth.settings.image == "own:1"


def test_names_and_tags_are_those_of_the_published_chart() -> None:
    path = UPSTREAM / "gpu-operator" / "values.yaml"
    if not path.exists():
        pytest.skip("the real chart's data (../shared/upstream/gpu-operator) is not at hand")
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    (operator,) = (operator for operator in OPERATORS if operator.release == "gpu-operator")
    for image in operator.known_chart().images:
        if image.is_split:
            component = values
            for key in image.repository.split(".")[:-1]:
                component = component[key]
            assert image.name == f"{component['repository']}/{component['image']}"
            assert image.tag == component.get("version", "{version}")
