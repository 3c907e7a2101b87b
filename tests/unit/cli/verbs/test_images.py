"""`berth images`: images and charts of a stack, with the settings that name them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.cli.verbs.images import images_of
from berth.components.hardware import versions


def test_every_image_and_chart_has_its_setting() -> None:
    done = CliRunner().invoke(app, ["images", "-s", "prod", "--json"])
    found = json.loads(done.stdout)
    assert (done.exit_code, found["stack"]) == (0, "prod")
    images = {row["setting"]: row["image"] for row in found["images"]}
    assert images["environment.operators.gib.image"] == versions.GIB_IMAGE
    assert found["commands"] == [f"crane digest {image}" for image in dict.fromkeys(images.values())]
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
            {"environment": {"engineers": {"bob": None}, "pools": {"pair": {"rdma": "networks"}}}},
            {"environment.defaults.image": versions.RAY_IMAGE, "environment.operators.gib.image": versions.GIB_IMAGE},
        ),
        (
            {"environment": {"engineers": {"bob": {"image": "a", "env": {"image": "not one"}}}}},
            {"environment.engineers.bob.image": "a"},
        ),
        ({"environment": {"pools": {"cpu": {}}}}, {}),
        ({"environment": {"pools": {"pair": {"rdma": "networks"}}, "operators": {"gib": {"source": "present"}}}}, {}),
        ({"engineer": {"environment": "env"}}, {}),
        ({"engineer": {"environment": "env", "image": "a@sha256:0"}}, {"engineer.image": "a@sha256:0"}),
    ],
)
def test_defaults_that_the_stack_uses_are_among_them(settings: dict[str, object], images: dict[str, str]) -> None:
    assert images_of(settings) == images
