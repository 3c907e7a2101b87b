"""Images of folder images/, which have more than Ray, and what the tags of Ray's images say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from berth.components.hardware import versions
from berth.components.ray.settings import ImageContent

# Ray's own images name CUDA as -cu124
# (https://docs.ray.io/en/latest/ray-overview/installation.html#docker-source-images).
_TAG_CUDA = re.compile(r":[^/]*-cu(\d\d)(\d{1,2})(?:-[^/:]*)?$")
_TAG_VERSION = re.compile(r":v?(\d+\.\d+\.\d+)(?:[-.].*)?$")


@dataclass(frozen=True)
class BerthImage:
    """An image of folder images/.

    Attributes:
        contents: what the image has beyond Ray.
        has_cuda: whether its base is Ray's image with CUDA.
    """

    contents: tuple[ImageContent, ...]
    has_cuda: bool


BERTH_IMAGES: Mapping[str, BerthImage] = {
    "ray-a4": BerthImage(("libnl", "torch"), has_cuda=True),
    "ray-podman": BerthImage(("podman",), has_cuda=False),
}
"""Images of folder images/ by the last part of their names."""


def tag_of_image(name: str) -> str:
    """Return the tag of an image of berth's own: versions of Ray, Python and CUDA."""
    tag = versions.RAY_IMAGE.rpartition(":")[2]
    return tag if BERTH_IMAGES[name].has_cuda else tag.rpartition("-")[0]


def contents_of_image(image: str) -> tuple[ImageContent, ...]:
    """Return what an image is known to have beyond Ray, by the last part of its name."""
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return BERTH_IMAGES[name].contents if name in BERTH_IMAGES else ()


def ray_in_tag(image: str) -> str | None:
    """Return the version of Ray that an image's tag names; None for other tags."""
    tag = _TAG_VERSION.search(image)
    return tag[1] if tag else None


def cuda_in_tag(image: str) -> tuple[int, int] | None:
    """Return the version of CUDA that an image's tag names; None for other tags."""
    tag = _TAG_CUDA.search(image)
    return (int(tag[1]), int(tag[2])) if tag else None
