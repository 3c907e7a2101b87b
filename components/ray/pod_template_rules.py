"""Rules of pod templates' patches: parts of one berth's pods that a patch would change."""

from collections.abc import Iterable, Iterator

from berth.components.core.manifest import Manifest
from berth.components.core.merge import REMOVES
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath
from berth.components.ray.manifest import RAY_HEAD, RAY_WORKER, ray_cluster
from berth.components.ray.pod_template import REFUSALS, clashes, patched
from berth.components.ray.settings import RayClusterSettings, RayShape
from berth.components.sharing import Pools

_LONGEST = 40
_KUBERAYS_VOLUMES = ("shared-mem",)
"""Volumes that KubeRay adds (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go)."""


def pod_template_problems(
    cluster: RayClusterSettings, pools: Pools, path: SettingPath, written: RayShape
) -> Iterable[Problem]:
    """Yield the problems of patches of a RayCluster's pods, at their places as written."""
    if not any(patch for _, _, patch in _patches(cluster)):
        return
    spec = ray_cluster(without_patches(cluster), pools, "", {})["spec"]
    templates = [group["template"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]
    for template, (within, ray, patch) in zip(templates, _patches(cluster), strict=True):
        own = _written(written, within)
        for inner, message in _problems(template, patch, ".".join(within), ray):
            yield Problem(
                (*path, *within, "podTemplate", *(inner if own == patch else _up_to_list(inner))),
                message,
            )


def without_patches(cluster: RayClusterSettings) -> RayClusterSettings:
    """Return settings of a RayCluster without patches of its pods."""
    head = cluster.head.model_copy(update={"pod_template": {}})
    groups = [group.model_copy(update={"pod_template": {}}) for group in cluster.groups]
    return cluster.model_copy(update={"head": head, "groups": groups})


def _patches(cluster: RayClusterSettings) -> list[tuple[tuple[str, ...], str, Manifest]]:
    """Return the patches of head and groups: path of the settings, name of the container, patch."""
    workers = [(group.within, RAY_WORKER, group.pod_template) for group in cluster.groups]
    return [(("head",), RAY_HEAD, cluster.head.pod_template), *workers]


def _written(shape: RayShape, within: tuple[str, ...]) -> Manifest | None:
    """Return the patch that a shape itself has at a path; None if the shape lacks the group."""
    if within == ("head",):
        return shape.head.pod_template
    group = shape.worker_groups.get(within[-1]) if len(within) > 1 else shape.worker
    return group.pod_template if group else None


def _up_to_list(path: SettingPath) -> SettingPath:
    """Return the part of a path before the first position, which counts entries of `defaults`."""
    first = next((index for index, part in enumerate(path) if isinstance(part, int)), len(path))
    return path[:first]


def _problems(
    template: Manifest, patch: Manifest, where: str, ray: str
) -> Iterator[tuple[SettingPath, str]]:
    for path, names, value in clashes(template, patch):
        fields = [part for part in path if not isinstance(part, int)]
        starts = (".".join(fields[:length]) for length in range(len(fields), 0, -1))
        setting = next(words for start in starts if (words := REFUSALS["own_fields"].get(start)))
        shown = ".".join(str(name) for name in names)
        is_now = (
            f" ({value!r})"
            if not isinstance(value, (dict, list)) and len(str(value)) <= _LONGEST
            else ""
        )
        yield path, f"{shown} is berth's{is_now}, and stays as it is; {setting.format(pod=where)}"
    yield from _of_containers(template, patch, ray)


def _of_containers(
    template: Manifest, patch: Manifest, ray: str
) -> Iterator[tuple[SettingPath, str]]:
    """Yield containers without an image, and mounts of volumes that the pod lacks."""
    named = {
        kind: {container["name"] for container in template["spec"].get(kind) or []}
        for kind in ("initContainers", "containers")
    }
    volumes = {volume["name"] for volume in patched(template, patch)["spec"].get("volumes") or []}
    for kind, own in named.items():
        for number, container in enumerate((patch.get("spec") or {}).get(kind) or []):
            where: SettingPath = ("spec", kind, number)
            name = container["name"]
            if REMOVES in container:
                continue
            if name not in own and not container.get("image"):
                yield (
                    where,
                    (
                        f"container {name!r} needs an `image`, or the name {ray!r} for Ray's own"
                        " container"
                    ),
                )
            for index, mount in enumerate(container.get("volumeMounts") or []):
                volume = mount.get("name")
                if volume and REMOVES not in mount and volume not in {*volumes, *_KUBERAYS_VOLUMES}:
                    message = (
                        f"there is no volume {volume!r} in the pod{did_you_mean(volume, volumes)}"
                    )
                    yield (*where, "volumeMounts", index, "name"), message
