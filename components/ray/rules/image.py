"""Rules of the image of head and workers: its versions, its architecture, and what it contains."""

import re
from collections.abc import Iterator

from berth.components.core.rules import Breach, Rules
from berth.components.core.words import names_in_words
from berth.components.hardware import versions
from berth.components.ray.images import (
    BERTH_IMAGES,
    contents_of_image,
    cuda_in_tag,
    ray_in_likely_tag,
    ray_in_tag,
    tag_of_image,
)
from berth.components.ray.placed import PlacedCluster, PlacedGroup
from berth.components.ray.settings import BerthShape, ImageContent

_RAYS_OWN = re.compile(r"(.*/)?rayproject/ray:(?P<tag>.*)")
_MOVING = re.compile(r"(?!.*@)(.*/)?[^/:]+(:(latest|nightly)[^/:]*)?")

_REASONS: dict[ImageContent, str] = {
    "libnl": (
        "gIB's libraries are linked against libnl (libnl-3-200, libnl-route-3-200), and NCCL fails"
        " without it"
    ),
    "torch": (
        "`berth verify fabric` and most training need torch, and the NCCL that comes with it"
    ),
    "podman": (
        "Ray starts containers in its pods by podman, and every task with `image_uri` fails"
        " without it"
    ),
}
"""Reasons why a RayCluster needs some content."""

IMAGES = Rules[PlacedCluster](BerthShape)
"""Rules of the image of a RayCluster."""

IMAGES_OF_GROUPS = Rules[PlacedGroup](BerthShape)
"""Rules of the image for each group of workers; their places begin at the RayCluster's settings."""


@IMAGES.problem("rayVersion")
def ray_without_tokens(placed: PlacedCluster) -> str | None:
    """Ray has token authentication since a version."""
    cluster = placed.cluster
    version = tuple(int(part) for part in cluster.ray_version.split("."))
    if version >= versions.RAY_TOKEN_AUTH_SINCE or cluster.auth != "token":
        return None
    oldest = ".".join(map(str, versions.RAY_TOKEN_AUTH_SINCE))
    return (
        f"Ray {cluster.ray_version} has no token authentication, so anyone who reaches the head"
        f" could run code; the oldest that has it is {oldest}; for an older one write `auth: none`,"
        " which breaks policy ray-auth"
    )


@IMAGES.problem("image")
def image_of_another_ray(placed: PlacedCluster) -> str | None:
    """KubeRay starts Ray by `rayVersion`."""
    cluster = placed.cluster
    in_tag = ray_in_tag(cluster.image)
    if in_tag is None or in_tag == cluster.ray_version:
        return None
    return (
        f"the image's tag says Ray {in_tag}, but rayVersion is {cluster.ray_version}; KubeRay"
        " starts Ray by rayVersion, so make them agree"
    )


@IMAGES.warning("image")
def image_of_another_ray_perhaps(placed: PlacedCluster) -> str | None:
    """The tag of somebody's own image may have the form of Ray's and mean something else."""
    cluster = placed.cluster
    likely = ray_in_likely_tag(cluster.image)
    if ray_in_tag(cluster.image) or likely in (None, cluster.ray_version):
        return None
    return (
        f"the image's tag looks like Ray {likely}, and rayVersion is {cluster.ray_version}; write"
        " the version that the image has in `rayVersion`, by which KubeRay starts Ray"
    )


@IMAGES.warning("rayVersion")
def ray_of_the_future(placed: PlacedCluster) -> str | None:
    """Versions of Ray that came after this berth are not known to work with it."""
    version = placed.cluster.ray_version
    newest = versions.RAY.rpartition(".")[0]
    if _minor(version) <= _minor(versions.RAY):
        return None
    return (
        f"Ray {version} is newer than {newest}, the newest that this berth was tested with; check"
        " that the image has it (python -c 'import ray; print(ray.__version__)')"
    )


@IMAGES.problem("image")
def cuda_that_does_not_know_the_gpu(placed: PlacedCluster) -> Iterator[Breach]:
    """A GPU needs a version of CUDA that knows it."""
    cluster = placed.cluster
    cuda = cuda_in_tag(cluster.image)
    if cuda is None:
        return
    pools_with_gpus = [group.pool for group in cluster.groups if group.gpus]
    if cluster.head.gpus:
        pools_with_gpus.append(cluster.head.pool)
    for pool in dict.fromkeys(pools_with_gpus):
        gpu = placed.pools[pool].settings.machine.gpu
        if cuda < gpu.oldest_cuda:
            major, minor = gpu.oldest_cuda
            yield Breach(
                f"the image's tag says CUDA {cuda[0]}.{cuda[1]}, which does not know the"
                f" {gpu.product} of pool {pool!r}; take one with CUDA {major}.{minor} or newer"
                f" (-cu{major}{minor})"
            )


@IMAGES_OF_GROUPS.problem("image")
def image_of_one_architecture(placed: PlacedGroup) -> str | None:
    """Ray's own images have one architecture each, named -aarch64 where it is Arm's.

    Source: https://github.com/ray-project/ray, docker/base-deps/README.md, Tags.
    """
    cluster = placed.cluster
    rays_own = _RAYS_OWN.fullmatch(cluster.image)
    if not placed.machine.series.arm64 or rays_own is None:
        return None
    head_on_arm = placed.placed.pools[cluster.head.pool].settings.machine.series.arm64
    if rays_own["tag"].endswith("-aarch64") and head_on_arm:
        return None
    return (
        f"{cluster.image} has one architecture, the head is on pool {cluster.head.pool!r} and the"
        f" workers are on nodes of Arm's ({placed.pool.name!r}); build an image for both (docker"
        " buildx build --platform=linux/amd64,linux/arm64), and name it here"
    )


@IMAGES.warning("image")
def image_that_changes(placed: PlacedCluster) -> str | None:
    """Workers that start later have the versions of Ray and Python that the head has.

    Source: Ray compares them when a worker starts (ray/_private/node.py, check_version_info).
    """
    image = placed.cluster.image
    if not _MOVING.fullmatch(image):
        return None
    return (
        f"{image} is another image after each release: a worker that starts later, or on another"
        " node, may have another Ray or Python than the head, and does not join; name a version, as"
        f" in {versions.RAY_IMAGE}"
    )


@IMAGES.warning("image", "")
def image_that_may_lack_content(placed: PlacedCluster) -> Iterator[Breach]:
    """An image has what NICs and nested containers need beyond Ray."""
    cluster = placed.cluster
    needed: list[ImageContent] = []
    if any(group.nics for group in cluster.groups):
        needed += ["libnl", "torch"]
    if cluster.nested_containers == "cdi-per-pod":
        needed.append("podman")
    known = {*cluster.image_has, *contents_of_image(cluster.image)}
    missing = [content for content in needed if content not in known]
    if not missing:
        return
    reasons = "; ".join(_REASONS[content] for content in missing)
    them = "them" if len(needed) > 1 else "it"
    # Whoever wrote no image wrote a RayCluster that needs one.
    by_default = "image" not in placed.written.model_fields_set and (
        cluster.image == versions.RAY_IMAGE
    )
    image = f"{cluster.image}, the default," if by_default else cluster.image
    yield Breach(
        f"{image} is not known to have {names_in_words(missing, 'and')}: {reasons};"
        f" {_way_to_an_image(missing)}, or write `imageHas: [{', '.join(needed)}]` if it has"
        f" {them}",
        at=() if by_default else None,
    )


def _minor(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:2])


def _way_to_an_image(missing: list[ImageContent]) -> str:
    """Return how to get an image with some content: one of berth's, or one that has all."""
    for name, image in BERTH_IMAGES.items():
        if set(missing) <= set(image.contents):
            return (
                f"build one that has (docker build -t REPOSITORY/{name}:{tag_of_image(name)}"
                f" images/{name}; `berth docs images`) and name it in `image`"
            )
    return (
        "build an image from images/ray-a4 that has podman 4.1 or newer as well"
        " (`berth docs images`), and name it in `image`"
    )
