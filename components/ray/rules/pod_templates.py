"""Rules of pod templates' patches: parts of one berth's pods that a patch would change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from berth.components.core.manifest import Manifest
from berth.components.core.merge import REMOVES
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.isolation import (
    PodSecurity,
    PodStandard,
    places_beyond,
    pod_standard,
    pods_of,
)
from berth.components.ray.complete_settings import Head, RayClusterSettings, WorkerGroup
from berth.components.ray.manifest import ray_cluster
from berth.components.ray.placed import PlacedCluster
from berth.components.ray.pod_template.merging import changed_parts, patched
from berth.components.ray.pods import RAY_HEAD, RAY_WORKER
from berth.components.ray.settings import BerthShape, RayShape
from berth.components.sharing import Pool

_LONGEST = 40
"""Characters of a value that a message shows."""

_SHARED_MEMORY = frozenset(("/dev/shm", "shared-memory"))  # noqa: S108 - in the pod
"""Folder and volume of a worker's shared memory."""

_PORTS_OF_RAY = (6379, 8265, 10001, 52365, "gcs-server", "dashboard", "client")
"""Ports of a head: control store, dashboard, clients and the dashboard's agent."""

_DOMAINS_OF_OTHERS = ("google.com", "gke.io", "kubernetes.io", "k8s.io", "nvidia.com")
"""Domains of labels that are not the pool's settings."""

_KUBERAYS_VOLUMES = ("shared-mem",)
"""Volumes that KubeRay adds (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go)."""


@dataclass(frozen=True)
class PodPatch:
    """Patch of a head or of a group's workers.

    Attributes:
        within: path of the pod's settings in those of the RayCluster.
        container: name of Ray's container.
        patch: the patch, merged from all layers of settings.
        template: the template that the patch is merged into.
        pool: pool of the pods.
        workers: most workers that wait for the pod; 0 for a worker itself.
        on_existing_cluster: whether berth knows the nodes only by their machine type.
        strictest: strictest Pod Security level of berths.
        standards: what pods of the namespace are held to without patches, and with this one.
        is_written: whether the settings themselves have the whole patch; else it is merged from
            several layers, and positions in its lists are not those of the settings.
    """

    within: tuple[str, ...]
    container: str
    patch: Manifest
    template: Manifest
    pool: Pool
    workers: int
    on_existing_cluster: bool
    strictest: PodSecurity
    standards: tuple[PodStandard, PodStandard]
    is_written: bool

    @property
    def own_container(self) -> tuple[SettingPath, Manifest]:
        """Ray's own container as the patch has it, with its place in the patch."""
        for path, container in _containers(self.patch):
            if container["name"] == self.container:
                return path, container
        return (), {}

    def place(self, path: SettingPath) -> SettingPath:
        """Return the place in the settings of a path in the patch."""
        inner = path if self.is_written else _up_to_list(path)
        return (*self.within, "podTemplate", *inner)


POD_TEMPLATES = Rules[PodPatch](BerthShape)
"""Rules of a patch; their places begin at the RayCluster's settings."""

_ANYWHERE = ("head.podTemplate.**", "worker.podTemplate.**", "workerGroups.*.podTemplate.**")


def pod_template_problems(placed: PlacedCluster) -> Iterator[Problem]:
    """Yield the problems of patches of a RayCluster's pods, at their places as written."""
    for patch in _patches(placed):
        yield from POD_TEMPLATES.problems(patch, placed.path)


def pod_template_warnings(placed: PlacedCluster) -> Iterator[Problem]:
    """Yield what works of patches of a RayCluster's pods, but likely not as intended."""
    for patch in _patches(placed):
        yield from POD_TEMPLATES.warnings(patch, placed.path)


def without_patches(cluster: RayClusterSettings) -> RayClusterSettings:
    """Return settings of a RayCluster without patches of its pods."""
    head = cluster.head.model_copy(update={"pod_template": {}})
    groups = [group.model_copy(update={"pod_template": {}}) for group in cluster.groups]
    return cluster.model_copy(update={"head": head, "groups": groups})


def _patches(placed: PlacedCluster) -> Iterator[PodPatch]:
    cluster = placed.cluster
    of_groups = any(group.pod_template for group in cluster.groups)
    if not of_groups and not cluster.head.pod_template:
        return
    plain = ray_cluster(without_patches(cluster), placed.pools, "", {})
    spec = plain["spec"]
    groups = zip(cluster.groups, spec["workerGroupSpecs"], strict=True)
    yield _patch(placed, ("head",), cluster.head, spec["headGroupSpec"]["template"], plain)
    for group, manifest in groups:
        yield _patch(placed, group.settings_path, group, manifest["template"], plain)


def _patch(
    placed: PlacedCluster,
    within: tuple[str, ...],
    pod: Head | WorkerGroup,
    template: Manifest,
    plain: Manifest,
) -> PodPatch:
    is_worker = isinstance(pod, WorkerGroup)
    strictest = placed.available.isolation.pod_security
    pods = list(pods_of([plain]))
    pods_with_patch = [*pods, patched(template, pod.pod_template)["spec"]]
    return PodPatch(
        within=within,
        container=RAY_WORKER if is_worker else RAY_HEAD,
        patch=pod.pod_template,
        template=template,
        pool=placed.pools[pod.pool],
        workers=0 if is_worker else placed.cluster.workers_at_most,
        on_existing_cluster=placed.available.on_existing_cluster,
        strictest=strictest,
        standards=(pod_standard(pods, strictest), pod_standard(pods_with_patch, strictest)),
        is_written=_written_patch(placed.written, within) == pod.pod_template,
    )


def _written_patch(shape: RayShape, within: tuple[str, ...]) -> Manifest | None:
    """Return the patch that a shape itself has at a path; None if the shape lacks the group."""
    if within == ("head",):
        return shape.head.pod_template
    if within == ("worker",):
        return shape.worker.pod_template
    group = shape.worker_groups.get(within[-1])
    return group.pod_template if group else None


def _up_to_list(path: SettingPath) -> SettingPath:
    """Return the part of a path before the first position in a list."""
    positions = [index for index, part in enumerate(path) if isinstance(part, int)]
    return path[: positions[0]] if positions else path


@POD_TEMPLATES.problem(*_ANYWHERE)
def patch_of_what_berth_sets(patch: PodPatch) -> Iterator[Breach]:
    """Fields that berth sets in the template stay as they are."""
    pod = ".".join(patch.within)
    for path, names, value in changed_parts(patch.template, patch.patch):
        field = ".".join(part for part in path if not isinstance(part, int))
        shown = ".".join(map(str, names))
        yield Breach(
            f"{shown} is berth's{_in_brackets(value)}, and stays as it is;"
            f" {_instead(field, pod, names)}",
            at=patch.place(path),
        )


@POD_TEMPLATES.problem(*_ANYWHERE)
def container_without_an_image(patch: PodPatch) -> Iterator[Breach]:
    """A container that the patch adds needs an image."""
    for path, container in _containers(patch.patch):
        own = patch.template["spec"].get(path[1]) or []
        is_own = any(container["name"] == other["name"] for other in own)
        if not is_own and not container.get("image"):
            yield Breach(
                f"container {container['name']!r} needs an `image`, or the name"
                f" {patch.container!r} for Ray's own container",
                at=patch.place(path),
            )


@POD_TEMPLATES.problem(*_ANYWHERE)
def mount_of_a_lost_volume(patch: PodPatch) -> Iterator[Breach]:
    """A container mounts volumes that the pod has."""
    spec = patched(patch.template, patch.patch)["spec"]
    volumes = {volume["name"] for volume in spec.get("volumes") or []}
    for path, container in _containers(patch.patch):
        for position, mount in enumerate(container.get("volumeMounts") or []):
            name = mount.get("name")
            exists = name in {*volumes, *_KUBERAYS_VOLUMES}
            if name and not exists and REMOVES not in mount:
                yield Breach(
                    f"there is no volume {name!r} in the pod{did_you_mean(name, volumes)}",
                    at=patch.place((*path, "volumeMounts", position, "name")),
                )


@POD_TEMPLATES.warning(*_ANYWHERE)
def command_before_ray(patch: PodPatch) -> Iterator[Breach]:
    """KubeRay runs the container's command, and then `ray start` with the settings' parameters.

    Source: kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go, BuildPod.
    """
    path, container = patch.own_container
    for key in ("command", "args"):
        if container.get(key):
            yield Breach(
                "KubeRay runs this before `ray start`, which has `rayCpus`, `memory` and the like"
                " of the settings: a command that starts Ray itself, or does not end, leaves them"
                " without effect; prepare the pod in an init container, or Python by"
                " `py_executable` of a runtime environment",
                at=patch.place((*path, key)),
            )
            return


@POD_TEMPLATES.warning(*_ANYWHERE)
def probe_that_may_wait_for_workers(patch: PodPatch) -> Iterator[Breach]:
    """Workers start once the head's Service has an address, which a head that is not ready lacks.

    Source: https://github.com/vllm-project/production-stack/issues/653.
    """
    path, container = patch.own_container
    for key in ("startupProbe", "readinessProbe"):
        probe = container.get(key)
        if probe and patch.workers and not _asks_ray(probe):
            yield Breach(
                "workers wait for a head that is ready, so a probe that waits for workers, or for"
                " what runs on them, never passes; ask only what the head has by itself, or take it"
                " out",
                at=patch.place((*path, key)),
            )


def _asks_ray(probe: Manifest) -> bool:
    """Return whether a probe asks a port of Ray's own, which the head has without workers."""
    ports = [(probe.get(kind) or {}).get("port") for kind in ("httpGet", "tcpSocket")]
    return any(port in _PORTS_OF_RAY for port in ports)


@POD_TEMPLATES.warning(*_ANYWHERE)
def runtime_class_that_nothing_makes(patch: PodPatch) -> Iterator[Breach]:
    """The API server refuses pods of a RuntimeClass that does not exist."""
    name = (patch.patch.get("spec") or {}).get("runtimeClassName")
    by_operator = str(name).startswith("nvidia")
    if not name or patch.on_existing_cluster or (by_operator and patch.pool.settings.by_operator):
        return
    maker = (
        f"comes with the GPU Operator, which does not serve pool {patch.pool.name!r}; take it out,"
        " since pods get GPUs without it, or write `gpuManagement: operator` of the pool"
        if by_operator
        else "is none that berth makes: without it the API server refuses the pods; create it, or"
        " take this out"
    )
    yield Breach(f"RuntimeClass {name!r} {maker}", at=patch.place(("spec", "runtimeClassName")))


@POD_TEMPLATES.warning(*_ANYWHERE)
def label_that_no_node_has(patch: PodPatch) -> Iterator[Breach]:
    """Nodes have the labels of their pool, and those of Google, Kubernetes and drivers."""
    if patch.on_existing_cluster:
        return
    labels = patch.pool.settings.labels
    for key, value in ((patch.patch.get("spec") or {}).get("nodeSelector") or {}).items():
        domain = key.partition("/")[0] if "/" in key else ""
        if value is None or domain.endswith(_DOMAINS_OF_OTHERS) or labels.get(key) == value:
            continue
        yield Breach(
            f"no node of pool {patch.pool.name!r} has the label {key}={value}, so that the pod"
            f" would wait forever; write `labels: {{{key}: {value}}}` of the pool, or take it out",
            at=patch.place(("spec", "nodeSelector", key)),
        )


@POD_TEMPLATES.warning(*_ANYWHERE)
def patch_that_loosens_pod_security(patch: PodPatch) -> Iterator[Breach]:
    """A namespace has one level, which all of its pods can meet (isolation/pod_security.py)."""
    without, with_patch = patch.standards
    if not with_patch.is_looser_than(without):
        return
    spec = patch.patch.get("spec") or {}
    for path in list(places_beyond(spec, patch.strictest)) or [()]:
        yield Breach(
            f"lowers the Pod Security level of the berth's namespace from {without} to"
            f" {with_patch}, which admits {with_patch.admits} for every pod there; take it out if"
            " the container also works as user 1000 without privileges",
            at=patch.place(("spec", *path)),
        )


def _in_brackets(value: Any) -> str:
    if isinstance(value, (dict, list)) or len(str(value)) > _LONGEST:
        return ""
    return f" ({value!r})"


def _instead(field: str, pod: str, names: SettingPath) -> str:
    """Return what to write in place of a field that berth sets in a pod.

    Args:
        field: path of the field in the template, without positions.
        pod: path of the pod's settings.
        names: path of the field with names of entries in place of positions.
    """
    if _SHARED_MEMORY.intersection(names):
        return "write `nccl: {sharedMemory: 64Gi}` for its size"
    ways = {
        "metadata": "take it out",
        "spec": "take it out",
        "spec.nodeSelector": f"write `{pod}.pool`",
        "spec.runtimeClassName": "`nestedContainers` needs it",
        "spec.securityContext": "`home` and `nestedContainers` need it",
        "spec.volumes": "take another name, or write `volumes` of the berth",
        "spec.imagePullSecrets": "write `imagePullSecrets` of the berth",
        "spec.containers.image": "write `image` of the berth",
        "spec.containers.resources": f"write `{pod}.cpu`, `{pod}.memory` or `worker.gpus`",
        "spec.containers.env": f"write `{pod}.env`, or take it out",
        "spec.containers.volumeMounts": "take another folder, or write `volumes` of the berth",
        "spec.containers.ports": "take another port",
        "spec.containers.command": "`nestedContainers` and `nccl.profile: gib` need it",
        "spec.containers.securityContext": "`nestedContainers` needs it",
    }
    while field not in ways:
        field = field.rpartition(".")[0]
    return ways[field]


def _containers(patch: Manifest) -> Iterator[tuple[tuple[str, str, int], Manifest]]:
    """Yield the containers that a patch adds or changes, with their places."""
    spec = patch.get("spec") or {}
    for kind in ("initContainers", "containers"):
        for position, container in enumerate(spec.get(kind) or []):
            if REMOVES not in container:
                yield ("spec", kind, position), container
