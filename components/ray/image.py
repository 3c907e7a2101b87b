"""Requirements of a RayCluster for its image beyond Ray, and images that meet them."""

from collections.abc import Iterable, Mapping
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.problems import Path, Problem
from berth.components.core.table import beside, broken
from berth.components.hardware import versions
from berth.components.ray.settings import ImageContent, RayClusterSettings

_DATA = fast_yaml.beside(__file__)

BERTH_IMAGES: Mapping[str, Mapping[str, Any]] = _DATA["images"]
"""Images of folder images/ by the last part of their names."""


def contents(cluster: RayClusterSettings) -> set[ImageContent]:
    """Return the known content of a cluster's image, by the settings or by the image's name."""
    name = cluster.image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return {*cluster.image_has, *BERTH_IMAGES.get(name, {}).get("has", ())}


def needs(cluster: RayClusterSettings) -> list[ImageContent]:
    """Return the content beyond Ray that a cluster needs in its image."""
    found: list[ImageContent] = []
    if any(group.nics for group in cluster.groups):
        found += ["libnl", "torch"]
    if cluster.nested_containers == "cdi-per-pod":
        found.append("podman")
    return found


def image_warnings(cluster: RayClusterSettings, path: Path) -> Iterable[Problem]:
    """Yield a warning if the image is not known to have the content that the cluster needs."""
    needed, known = needs(cluster), contents(cluster)
    if missing := [content for content in needed if content not in known]:
        reasons = "; ".join(_DATA["reasons"][content] for content in missing)
        facts = {"missing": missing, "reasons": reasons, "remedy": _remedy(missing), "needed": needed}
        it = "them" if len(needed) > 1 else "it"
        yield from broken(beside(__file__)["image"], path, cluster=cluster, it=it, **facts)


def _remedy(missing: list[ImageContent]) -> str:
    for name, image in BERTH_IMAGES.items():
        if set(missing) <= set(image["has"]):
            return str(_DATA["remedies"]["one"].format(name=name, tag=tag_of(name)))
    return str(_DATA["remedies"]["all"])


def tag_of(name: str) -> str:
    """Return the tag of an image of berth's own: versions of Ray, Python and CUDA."""
    tag = versions.RAY_IMAGE.rpartition(":")[2]
    return tag if BERTH_IMAGES[name]["cuda"] else tag.rpartition("-")[0]
