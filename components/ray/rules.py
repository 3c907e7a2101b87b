"""Rules for one RayCluster on its pools: of Ray, of its image, and of its pods' features."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.bounds import Bounds
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.table import beside, broken
from berth.components.core.types import parse_quantity
from berth.components.fabric import fabric_problems
from berth.components.hardware import versions
from berth.components.lifecycle import lifecycle_problems
from berth.components.ray.fit import fit_problems, sizes_of, version_problems
from berth.components.ray.place import Placed
from berth.components.ray.secret_manager import secret_problems
from berth.components.ray.settings import BerthShape, ImageContent, RayClusterSettings
from berth.components.ray.storage import home_problems, share_problems, volume_problems
from berth.components.sharing import Pools

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation of a pod that says whether GKE's autoscaler may end it. Upgrades and drains of nodes
ignore it (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler)."""

_IMAGES: Mapping[str, Any] = fast_yaml.load_beside(__file__, "image.yaml")

BERTH_IMAGES: Mapping[str, Mapping[str, Any]] = _IMAGES["images"]
"""Images of folder images/ by the last part of their names."""

Rule = Callable[[Placed], Iterable[Problem]]
"""Rule of a RayCluster."""


def _groups(placed: Placed) -> Iterable[Problem]:
    cluster, pools, path = placed.cluster, placed.pools, placed.path
    head_arm64 = pools[cluster.head.pool].settings.machine.series.arm64
    for group in cluster.groups:
        pool = pools[group.pool]
        objects = {"cluster": cluster, "group": group, "pool": pool, "head_arm64": head_arm64}
        yield from fabric_problems("nics", group, pool, (*path, *group.within))
        yield from broken(beside(__file__)["problems"], path, **objects)
    # NCCL's settings are those of all groups, and count in the ones that have GPUs.
    for group in [group for group in cluster.groups if group.gpus or group.nics] or cluster.groups:
        yield from fabric_problems("nccl", group, pools[group.pool], path)


def _storage(placed: Placed) -> Iterable[Problem]:
    cluster, pools, path = placed.cluster, placed.pools, placed.path
    yield from home_problems(cluster.home, pools[cluster.head.pool], path)
    yield from share_problems(cluster.home, cluster.volumes, path)
    ssds = {name: pools[name].settings.ephemeral_ssds for name in cluster.pools}
    fewest = min(ssds, key=lambda name: ssds[name])
    yield from volume_problems(cluster.volumes, ssds[fewest], fewest, path)


def _variables(placed: Placed) -> Iterable[Problem]:
    cluster, path = placed.cluster, placed.path
    for name in sorted(cluster.env.keys() & cluster.secrets.keys()):
        yield Problem((*path, "secrets", name), "is in `env` too; take one of the two out")
    yield from secret_problems(cluster.secrets, path, projects=placed.ground.existing)


def _lifecycle(placed: Placed) -> Iterable[Problem]:
    if isinstance(placed.written, BerthShape):
        yield from lifecycle_problems(
            placed.written.lifecycle, placed.cluster.lifecycle, placed.path
        )


def cluster_problems(placed: Placed) -> list[Problem]:
    """Return the problems of a RayCluster on its pools; those of several groups may be one."""
    rules: tuple[Rule, ...] = (
        fit_problems,
        _groups,
        version_problems,
        _storage,
        _variables,
        _lifecycle,
    )
    return list(dict.fromkeys(problem for rule in rules for problem in rule(placed)))


def cluster_warnings(placed: Placed) -> list[Problem]:
    """Return what works of a RayCluster, but likely not as intended."""
    return list(dict.fromkeys(_warnings(placed)))


def _warnings(placed: Placed) -> Iterable[Problem]:
    cluster, pools, path = placed.cluster, placed.pools, placed.path
    facts = {"head_memory": parse_quantity(cluster.head.memory), "newest": versions.RAY_IMAGE}
    for group in cluster.groups:
        pool, within = pools[group.pool], (*path, *group.within)
        objects = {
            "cluster": cluster,
            "group": group,
            "pool": pool,
            **facts,
            **sizes_of(group, pool),
        }
        yield from broken(beside(__file__)["warnings_of_groups"], within, **objects)
        yield from fabric_problems("alignment", group, pool, within)
        yield from broken(beside(__file__)["warnings"], path, **objects)
    yield from _image(cluster, path)


def may_be_evicted(cluster: RayClusterSettings, pools: Pools) -> bool:
    """Return whether GKE's autoscaler may end a head to remove its node, and nobody allows it."""
    nodes = pools[cluster.head.pool].settings.nodes
    annotations = (cluster.head.pod_template.get("metadata") or {}).get("annotations") or {}
    return isinstance(nodes, Bounds) and nodes.min < nodes.max and SAFE_TO_EVICT not in annotations


def _image(cluster: RayClusterSettings, path: SettingPath) -> Iterable[Problem]:
    """Yield a warning if the image is not known to have what the cluster needs beyond Ray."""
    needed: list[ImageContent] = (
        ["libnl", "torch"] if any(group.nics for group in cluster.groups) else []
    )
    if cluster.nested_containers == "cdi-per-pod":
        needed.append("podman")
    name = cluster.image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    known = {*cluster.image_has, *BERTH_IMAGES.get(name, {}).get("has", ())}
    if missing := [content for content in needed if content not in known]:
        reasons = "; ".join(_IMAGES["reasons"][content] for content in missing)
        facts = {
            "missing": missing,
            "reasons": reasons,
            "remedy": _remedy(missing),
            "needed": needed,
        }
        it = "them" if len(needed) > 1 else "it"
        yield from broken(beside(__file__)["image"], path, cluster=cluster, it=it, **facts)


def _remedy(missing: list[ImageContent]) -> str:
    for name, image in BERTH_IMAGES.items():
        if set(missing) <= set(image["has"]):
            return str(_IMAGES["remedies"]["one"].format(name=name, tag=tag_of(name)))
    return str(_IMAGES["remedies"]["all"])


def tag_of(name: str) -> str:
    """Return the tag of an image of berth's own: versions of Ray, Python and CUDA."""
    tag = versions.RAY_IMAGE.rpartition(":")[2]
    return tag if BERTH_IMAGES[name]["cuda"] else tag.rpartition("-")[0]
