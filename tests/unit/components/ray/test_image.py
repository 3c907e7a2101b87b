"""Warnings about images that are not known to have what RayClusters need of them beyond Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.cli.repository.check import check
from berth.components.hardware import versions
from berth.components.ray.image import BERTH_IMAGES
from berth.lab.home import CLONE
from berth.stacks.load.stack import SettingsError, load
from berth.stacks.settings.resolve import resolve_environment
from tests.unit.stacks.test_cases import BASE, accepted, over

A4 = {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot", "rdma": "networks"}
L4 = {"machineType": "g2-standard-24", "nodes": 1, "capacity": "spot"}
ON_NICS: dict[str, Any] = {"pools": {"train": A4}, "clusters": {"train": {"worker": {"pool": "train"}}}}
NESTED: dict[str, Any] = {"pools": {"gpu": L4}, "engineers": {"alice": {"nestedContainers": "cdi-per-pod"}}}
OWN = "us-central1-docker.pkg.dev/your-project/berth"


def images(given: dict[str, Any]) -> list[str]:
    found = [f"{warning.where}: {warning.message}" for warning in resolve_environment(accepted(given)).warnings]
    return [line for line in found if ".image: " in line]


def on_nics(**shape: Any) -> dict[str, Any]:
    return over(ON_NICS, {"clusters": {"train": shape}})


def test_rays_own_image_has_nothing_of_what_workers_with_nics_need() -> None:
    (warning,) = images(ON_NICS)
    assert warning == (
        f"environment.clusters.train.image: {versions.RAY_IMAGE} is not known to have libnl and "
        "torch: gIB's libraries are linked"
        " against libnl (libnl-3-200, libnl-route-3-200), and NCCL fails without it; `berth verify "
        "fabric` and most training need"
        " torch, and the NCCL that comes with it; build one that has (docker build -t "
        f"REPOSITORY/ray-a4:{BERTH_IMAGES['ray-a4'].tag}"
        " images/ray-a4; images/README.md) and name it in `image`, or write `imageHas: [libnl, torch]` if it has them"
    )


@pytest.mark.parametrize("rdma", ["networks", "managed"])
@pytest.mark.parametrize(
    "shape",
    [
        {"image": f"{OWN}/ray-a4:2.60.0-py311-cu128"},
        {"image": f"{OWN}/ray-a4@sha256:{'0' * 64}"},
        {"image": f"{OWN}/ours:2.60.0-py311-cu128", "imageHas": ["torch", "libnl"]},
        {"imageHas": ["libnl", "torch"]},
        {"worker": {"nics": 0}},
    ],
    ids=["berth's image", "berth's image by digest", "an image of one's own", "a mirrored image", "no NICs"],
)
def test_an_image_that_is_known_to_have_it_is_not_warned_of(shape: dict[str, Any], rdma: str) -> None:
    assert images(over(on_nics(**shape), {"pools": {"train": {"rdma": rdma}}})) == []


@pytest.mark.parametrize(
    ("shape", "missing"),
    [
        ({"imageHas": ["torch"]}, "is not known to have libnl: "),
        ({"image": f"{OWN}/ray-a4-of-ours:2.60.0-py311-cu128"}, "is not known to have libnl and torch: "),
        ({"image": f"{OWN}/ray-podman:2.60.0-py311"}, "is not known to have libnl and torch: "),
        (
            {"nestedContainers": "cdi-per-pod"},
            "build an image from images/ray-a4 that has podman 4.1 or newer as well",
        ),
    ],
)
def test_only_what_is_missing_is_warned_of(shape: dict[str, Any], missing: str) -> None:
    (warning,) = images(on_nics(**shape))
    assert missing in warning


@pytest.mark.parametrize(
    ("pool", "worker"),
    [({}, {"gpus": 8}), ({"gpuAllocation": "dra"}, {"gpus": 2}), ({}, {"gpus": 8, "nics": 8})],
    ids=["a whole node", "pairs", "NICs that are asked for"],
)
def test_a_berth_with_nics_is_warned_of_like_a_cluster(pool: dict[str, Any], worker: dict[str, Any]) -> None:
    (warning,) = images({"pools": {"train": A4 | pool}, "engineers": {"alice": {"worker": worker}}})
    assert warning.startswith("environment.engineers.alice.image: ")


def test_nested_containers_need_an_image_with_podman() -> None:
    (warning,) = images(NESTED)
    assert "is not known to have podman" in warning
    assert f"docker build -t REPOSITORY/ray-podman:{BERTH_IMAGES['ray-podman'].tag} images/ray-podman" in warning
    assert images(over(NESTED, {"defaults": {"image": f"{OWN}/ray-podman:2.60.0-py311"}})) == []
    assert (
        images(over(NESTED, {"engineers": {"alice": {"nestedContainers": "nvidia-runtime"}}, "pools": OPERATOR})) == []
    )


OPERATOR = {"gpu": {"gpuManagement": "operator"}}


def test_what_the_defaults_say_of_an_image_is_said_of_that_image_only() -> None:
    defaults = {"image": f"{OWN}/ours:2.60.0", "imageHas": ["podman"]}
    assert images(over(NESTED, {"defaults": defaults})) == []
    (warning,) = images(over(NESTED, {"defaults": defaults, "engineers": {"alice": {"image": f"{OWN}/other:2.60.0"}}}))
    assert f"{OWN}/other:2.60.0 is not known to have podman" in warning


def test_a_content_that_nobody_knows_is_refused() -> None:
    given = over(BASE, over(ON_NICS, {"clusters": {"train": {"imageHas": ["numpy"]}}}))
    with pytest.raises(SettingsError) as caught:
        load("test", {"environment": given}, None)
    assert caught.value.lines == [
        "environment.clusters.train.imageHas[0]: 'numpy' is not one of 'libnl', 'podman' or 'torch'"
    ]


SHIPPED = sorted([*(CLONE / "stacks").glob("Pulumi.*.yaml"), *(CLONE / "stacks/gallery").glob("Pulumi.*.yaml")])


@pytest.mark.parametrize("file", SHIPPED, ids=lambda path: path.name.split(".")[1])
def test_every_shipped_stack_names_an_image_that_has_what_it_needs(file: Path) -> None:
    checked = check(file.name.split(".")[1], file.read_text(encoding="utf-8"))
    assert checked.lines == []
    assert [line for line in checked.warnings if ".image: " in line] == []
