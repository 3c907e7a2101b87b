"""Images as archives that containerd reads."""

from __future__ import annotations

import pytest
import yaml

from berth.components.hardware.versions import RAY, RAY_IMAGE
from berth.lab.home import CLONE
from berth.lab.realnode.images import RAY_PACKAGES, RAY_REQUIREMENTS, full_name


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("rayproject/ray:2.60.0", "docker.io/rayproject/ray:2.60.0"),
        ("busybox", "docker.io/library/busybox"),
        ("quay.io/a/b:1", "quay.io/a/b:1"),
        ("localhost:5000/a", "localhost:5000/a"),
    ],
)
def test_names_are_those_that_containerd_keeps(image: str, name: str) -> None:
    assert full_name(image) == name


def test_the_image_has_the_ray_that_stacks_ask_for() -> None:
    assert f"\nray=={RAY} " in RAY_REQUIREMENTS.read_text()
    assert RAY_IMAGE.split(":")[1].startswith(f"{RAY}-py311")


def test_the_image_has_what_the_stack_of_the_real_node_says_that_it_has() -> None:
    stack = yaml.safe_load((CLONE / "lab" / "realnode" / "Pulumi.real.yaml").read_text(encoding="utf-8"))
    packages = set(RAY_PACKAGES.read_text().split())
    known = {"libnl": {"libnl-3-200", "libnl-route-3-200"}, "torch": {"python3-torch"}}
    for content in stack["config"]["berth:engineer"]["imageHas"]:
        assert known[content] <= packages, content
