"""Requirements of a RayCluster for its image beyond Ray, and images that meet them."""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.components.core.problems import Path, Problem
from berth.components.hardware import versions
from berth.components.ray.settings import ImageContent, RayClusterSettings

_TAG = versions.RAY_IMAGE.rpartition(":")[2]


@dataclass(frozen=True)
class BerthImage:
    """Image of berth's own."""

    tag: str
    """Versions of Ray, Python and CUDA, as in the tags of Ray's images."""
    has: tuple[ImageContent, ...]
    """Content beyond Ray."""


BERTH_IMAGES: Mapping[str, BerthImage] = {
    "ray-a4": BerthImage(_TAG, ("libnl", "torch")),
    "ray-podman": BerthImage(_TAG.rpartition("-")[0], ("podman",)),
}
"""Images of folder images/ by the last part of their names."""

_REASONS: Mapping[ImageContent, str] = {
    "libnl": "gIB's libraries are linked against libnl (libnl-3-200, libnl-route-3-200), and NCCL fails without it",
    "torch": "`berth verify fabric` and most training need torch, and the NCCL that comes with it",
    "podman": "Ray starts containers in its pods by podman, and every task with `image_uri` fails without it",
}


def contents(cluster: RayClusterSettings) -> set[ImageContent]:
    """Return the known content of a cluster's image, by the settings or by the image's name."""
    name = cluster.image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    named = BERTH_IMAGES.get(name)
    return {*cluster.image_has, *(named.has if named else ())}


def needs(cluster: RayClusterSettings) -> list[ImageContent]:
    """Return the content beyond Ray that a cluster needs in its image."""
    found: list[ImageContent] = []
    if any(group.nics for group in cluster.groups):
        found += ["libnl", "torch"]
    if cluster.nested_containers == "cdi-per-pod":
        found.append("podman")
    return found


def image_warning(cluster: RayClusterSettings, path: Path) -> Problem | None:
    """Return a warning if the image is not known to have the content that the cluster needs."""
    needed, known = needs(cluster), contents(cluster)
    missing = [content for content in needed if content not in known]
    if not missing:
        return None
    reasons = "; ".join(_REASONS[content] for content in missing)
    return Problem(
        (*path, "image"),
        f"{cluster.image} is not known to have {' and '.join(missing)}: {reasons}; {_remedy(missing)}, or write"
        f" `imageHas: [{', '.join(needed)}]` if it has {'them' if len(needed) > 1 else 'it'}",
    )


def _remedy(missing: list[ImageContent]) -> str:
    for name, image in BERTH_IMAGES.items():
        if set(missing) <= set(image.has):
            build = f"docker build -t REPOSITORY/{name}:{image.tag} images/{name}"
            return f"build one that has ({build}; images/README.md) and name it in `image`"
    return (
        "build an image from images/ray-a4 that has podman 4.1 or newer as well (images/README.md), and name"
        " it in `image`"
    )
