"""Images of folder images/, which have more than Ray, and what the tags of Ray's images say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from berth.components.hardware import versions
from berth.components.ray.settings import ImageContent

# Ray's own images name CUDA as -cu124
# (https://docs.ray.io/en/latest/ray-overview/installation.html#docker-source-images).
_TAG_CUDA = re.compile(r":[^/]*-cu(\d\d)(\d{1,2})(?:-[^/:]*)?$")
_TAG = re.compile(r"(?P<name>.*):(?P<tag>[^/:@]+)")
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)(?:[-.].*)?")
# A version after the word: 1.4.2-ray2.54.0, cuda12.8_ray-2.54.0.
_VERSION_OF_RAY = re.compile(r"(?:.*[-_.])?ray[-_.]?v?(\d+\.\d+\.\d+)(?:[-_.].*)?")
# The form of the tags of Ray's own images: 2.54.0-py311-cu128.
_FORM_OF_RAY = re.compile(r"(2\.\d+\.\d+)(?:\.[0-9a-f]{6})?-py3\d+(?:-.*)?")
_RAYS_OWN = re.compile(r"(?:.*/)?rayproject/[^/]+")


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


_NAMES_OF_RAY = frozenset(("ray", "ray-llm", "ray-ml", *BERTH_IMAGES))
"""Names of Ray's own images and of berth's, which their copies keep."""


def tag_of_image(name: str) -> str:
    """Return the tag of an image of berth's own: versions of Ray, Python and CUDA."""
    tag = versions.RAY_IMAGE.rpartition(":")[2]
    return tag if BERTH_IMAGES[name].has_cuda else tag.rpartition("-")[0]


def contents_of_image(image: str) -> tuple[ImageContent, ...]:
    """Return what an image is known to have beyond Ray, by the last part of its name."""
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return BERTH_IMAGES[name].contents if name in BERTH_IMAGES else ()


def ray_in_tag(image: str) -> str | None:
    """Return the version of Ray that an image's tag names; None for tags that name none.

    The tag of an image of somebody's own counts that image's releases, not Ray's.
    """
    reference = _TAG.fullmatch(image)
    if not reference:
        return None
    name = reference["name"]
    tag = reference["tag"]
    after_the_word = _VERSION_OF_RAY.fullmatch(tag)
    if after_the_word:
        return after_the_word[1]
    version = _VERSION.fullmatch(tag)
    if version and _RAYS_OWN.fullmatch(name):
        return version[1]
    of_a_copy = name.rpartition("/")[2] in _NAMES_OF_RAY
    return version[1] if version and of_a_copy and version[1].startswith("2.") else None


def ray_in_likely_tag(image: str) -> str | None:
    """Return the version that a tag in the form of Ray's own tags begins with, on any image."""
    reference = _TAG.fullmatch(image)
    likely = reference and _FORM_OF_RAY.fullmatch(reference["tag"])
    return likely[1] if likely else None


def cuda_in_tag(image: str) -> tuple[int, int] | None:
    """Return the version of CUDA that an image's tag names; None for other tags."""
    tag = _TAG_CUDA.search(image)
    return (int(tag[1]), int(tag[2])) if tag else None
