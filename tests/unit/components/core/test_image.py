"""References of images."""

import pytest

from berth.components.core.image import checked_image, full_name, mirrored
from tests.unit.cases import table

DIGEST = "sha256:" + "0123456789abcdef" * 4
REFERENCES = table(__file__, "image.yaml")


@pytest.mark.parametrize("text", REFERENCES["good"])
def test_a_reference(text: str) -> None:
    assert checked_image(text) == text


@pytest.mark.parametrize("text", REFERENCES["bad"])
def test_no_reference(text: str) -> None:
    with pytest.raises(
        ValueError,
        match=r"image's name has 255|not the reference of an image|has a digest of sha256",
    ):
        checked_image(text)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("rayproject/ray:2.60.0", "docker.io/rayproject/ray:2.60.0"),
        ("busybox", "docker.io/library/busybox"),
        ("quay.io/a/b:1", "quay.io/a/b:1"),
        ("localhost:5000/a", "localhost:5000/a"),
        (f"nvcr.io/nvidia/driver@{DIGEST}", f"nvcr.io/nvidia/driver@{DIGEST}"),
    ],
)
def test_names_are_those_that_containerd_keeps_and_a_mirror_has_them_below_its_own(
    image: str, name: str
) -> None:
    assert full_name(image) == name
    assert (mirrored(image, "r.example.com:5000/m"), mirrored(image, "")) == (
        f"r.example.com:5000/m/{name}",
        image,
    )
