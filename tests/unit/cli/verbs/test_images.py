"""`berth images`: images and charts of a stack, with the settings that name them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from berth.cli.main import app
from berth.components.hardware import versions
from berth.stacks.files import stack_file
from tests.unit.loaded import environment_values

A4: dict[str, Any] = {"machineType": "a4-highgpu-8g", "nodes": 1, "capacity": "spot"}
KUBERAY = (
    "environment.operators.kuberay.values.image.repository",
    f"quay.io/kuberay/operator:v{versions.KUBERAY}",
)


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Return what `berth images --json` says of settings."""
    monkeypatch.setattr(stack_file, "stack_path", lambda stack: tmp_path / f"Pulumi.{stack}.yaml")

    def found(**settings: Any) -> dict[str, Any]:
        config = {f"berth:{key}": value for key, value in settings.items()}
        (tmp_path / "Pulumi.some.yaml").write_text(
            yaml.safe_dump({"config": config}), encoding="utf-8"
        )
        done = CliRunner().invoke(app, ["images", "-s", "some", "--json"])
        assert done.exit_code == 0, done.output
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    return found


def test_every_image_and_chart_has_its_setting() -> None:
    done = CliRunner().invoke(app, ["images", "-s", "prod", "--json"])
    found = json.loads(done.stdout)
    assert (done.exit_code, found["stack"]) == (0, "prod")
    images = {row["setting"]: row["image"] for row in found["images"]}
    assert images["environment.operators.gib.image"] == versions.GIB_IMAGE
    assert KUBERAY in images.items()
    named = [image for setting, image in images.items() if setting.endswith(".image")]
    assert found["commands"] == [f"crane digest {image}" for image in named]
    assert {
        "setting": "environment.operators.kuberay.chart",
        "chart": "kuberay-operator",
        "repository": versions.KUBERAY_REPOSITORY,
        "version": versions.KUBERAY,
    } in found["charts"]
    shown = CliRunner().invoke(app, ["images", "-s", "prod"]).stdout
    assert f"\ncrane digest {versions.GIB_IMAGE}\n" in shown
    assert "environment.operators.kuberay.chart" in shown


@pytest.mark.parametrize(
    ("settings", "images"),
    [
        (
            {"engineers": {"bob": None}, "pools": {"pair": A4 | {"rdma": "managed"}}},
            {
                ("environment.defaults.image", versions.RAY_IMAGE),
                ("environment.operators.gib.image", versions.GIB_IMAGE),
            },
        ),
        (
            {"engineers": {"bob": {"image": "a", "env": {"image": "not one"}}}},
            {("environment.engineers.bob.image", "a")},
        ),
        ({}, set[tuple[str, str]]()),
        (
            {
                "pools": {"pair": A4 | {"rdma": "managed"}},
                "operators": {"gib": {"source": "present"}},
            },
            set(),
        ),
        (
            {
                "pools": {"pair": A4 | {"rdma": "managed"}},
                "operators": {"gib": {"image": "own/gib:1"}},
            },
            {("environment.operators.gib.image", "own/gib:1")},
        ),
    ],
)
def test_defaults_that_the_stack_uses_are_among_them(
    listed: Callable[..., dict[str, Any]], settings: dict[str, Any], images: set[tuple[str, str]]
) -> None:
    environment = environment_values(**settings.pop("pools", {})) | settings
    found = {(row["setting"], row["image"]) for row in listed(environment=environment)["images"]}
    assert {row for row in found if row[0].endswith(".image")} == images
    assert KUBERAY in found


@pytest.mark.parametrize(("own", "images"), [({}, []), ({"image": "a@sha256:0"}, ["a@sha256:0"])])
def test_an_engineers_own_stack_names_its_image_at_most(
    listed: Callable[..., dict[str, Any]], own: dict[str, str], images: list[str]
) -> None:
    found = listed(engineer={"environment": "env"} | own)
    assert ([row["image"] for row in found["images"]], found["charts"], found["commands"]) == (
        images,
        [],
        [],
    )


def test_a_mirror_is_filled_by_the_commands(listed: Callable[..., dict[str, Any]]) -> None:
    mirror = "registry.example.com/mirror"
    pools = environment_values(pair=A4 | {"gpuManagement": "operator", "rdma": "managed"})
    given = pools | {"engineers": {"bob": {"image": "own/ray:1"}}, "mirror": {"images": mirror}}
    found = listed(environment=given)
    for row in found["images"]:
        assert row["image"] == (
            row["source"] if row["source"] == "own/ray:1" else f"{mirror}/{row['source']}"
        )
        copy = f"crane copy {row['source']} {row['image']}"
        assert (copy in found["commands"]) == (row["image"] != row["source"])
    assert (
        "crane copy nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
        f" {mirror}/nvcr.io/nvidia/k8s-device-plugin:v0.20.0" in (found["commands"])
    )
    assert not any(
        "dcgm" in command or "nvcr.io/nvidia/driver" in command for command in found["commands"]
    ), "what is switched off is not pulled"


def test_tags_of_an_unknown_version_of_a_chart_come_from_its_values(
    listed: Callable[..., dict[str, Any]],
) -> None:
    given = environment_values(dev=A4 | {"gpuManagement": "operator"}) | {
        "operators": {"gpu": {"version": "v26.7.9", "values": {"toolkit": {"version": "v9"}}}}
    }
    found = listed(environment=given)
    images = {
        row["setting"].removeprefix("environment.operators.gpu.values."): row["image"]
        for row in found["images"]
    }
    assert images["operator.repository"] == "nvcr.io/nvidia/gpu-operator:v26.7.9"
    assert images["toolkit.repository"] == "nvcr.io/nvidia/k8s/container-toolkit:v9"
    assert images["devicePlugin.repository"] == "nvcr.io/nvidia/k8s-device-plugin"
    assert found["commands"] == [
        f"helm show values gpu-operator --repo {versions.GPU_OPERATOR_REPOSITORY} --version v26.7.9"
    ]
