"""Images as archives that containerd reads."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest
import yaml

from berth.components.hardware.versions import RAY, RAY_IMAGE
from berth.lab.home import CLONE
from berth.lab.realnode.images import RAY_PACKAGES, RAY_REQUIREMENTS, Settings, full_name, write_archive


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


def test_an_archive_holds_one_layer_and_says_which(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tool").write_text("text")
    archive = tmp_path / "image.tar"
    write_archive(root, "example.invalid/tool:1", Settings(("/bin/tool",), "1000:100", "/home", {"A": "b"}), archive)
    with tarfile.open(archive) as tar:
        assert sorted(tar.getnames()) == ["config.json", "layer.tar", "manifest.json"]

        def read(name: str) -> bytes:
            file = tar.extractfile(name)
            assert file is not None
            return file.read()

        manifest, config = json.loads(read("manifest.json")), json.loads(read("config.json"))
        assert manifest == [{"Config": "config.json", "RepoTags": ["example.invalid/tool:1"], "Layers": ["layer.tar"]}]
        assert config["config"] == {"Cmd": ["/bin/tool"], "User": "1000:100", "WorkingDir": "/home", "Env": ["A=b"]}
        assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(read('layer.tar')).hexdigest()}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image.tar", "root"]


def test_the_image_has_the_ray_that_stacks_ask_for() -> None:
    assert f"\nray=={RAY} " in RAY_REQUIREMENTS.read_text()
    assert RAY_IMAGE.split(":")[1].startswith(f"{RAY}-py311")


def test_the_image_has_what_the_stack_of_the_real_node_says_that_it_has() -> None:
    stack = yaml.safe_load((CLONE / "stacks" / "Pulumi.real.yaml").read_text(encoding="utf-8"))
    packages = set(RAY_PACKAGES.read_text().split())
    known = {"libnl": {"libnl-3-200", "libnl-route-3-200"}, "torch": {"python3-torch"}}
    for content in stack["config"]["berth:engineer"]["imageHas"]:
        assert known[content] <= packages, content
