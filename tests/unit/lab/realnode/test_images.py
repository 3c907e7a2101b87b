"""Images as archives that containerd reads."""

import yaml

from berth.components.hardware.versions import RAY, RAY_IMAGE
from berth.lab.home import CLONE
from berth.lab.realnode.images import RAY_PACKAGES, RAY_REQUIREMENTS


def test_the_image_has_the_ray_that_stacks_ask_for() -> None:
    assert f"\nray=={RAY} " in RAY_REQUIREMENTS.read_text()
    assert RAY_IMAGE.split(":")[1].startswith(f"{RAY}-py311")


def test_the_image_has_what_the_stack_of_the_real_node_says_that_it_has() -> None:
    stack = yaml.safe_load((CLONE / "lab" / "Pulumi.real.yaml").read_text(encoding="utf-8"))
    packages = set(RAY_PACKAGES.read_text().split())
    known = {"libnl": {"libnl-3-200", "libnl-route-3-200"}, "torch": {"python3-torch"}}
    for content in stack["config"]["berth:engineer"]["imageHas"]:
        assert known[content] <= packages, content
