"""The shape of a RayCluster: as it is written in YAML (partial), and as it is after the defaults (complete)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from berth.components.core.bounds import WorkerBounds, WorkerCount, at_most
from berth.components.core.settings import Settings
from berth.components.core.types import Duration, Name, NonEmpty, Quantity, RayResource
from berth.components.fabric import Nccl, NcclShape
from berth.components.hardware import versions
from berth.components.isolation import Access, AccessShape, PriorityClass
from berth.components.lifecycle import Lifecycle, LifecycleShape
from berth.components.nested import NestedContainers

ImageContent = Literal["libnl", "podman", "torch"]
"""Content of an image beyond Ray that berth may need."""


class HeadShape(Settings):
    """The head pod, which gets no GPU."""

    pool: Name | None = None
    """Node pool that the head runs on. Default: the environment's only pool without GPUs."""
    cpu: Quantity | None = None
    """Cores, request and limit alike. Default: 2."""
    memory: Quantity | None = None
    """Memory, request and limit alike. Default: 8Gi."""


class WorkerShape(Settings):
    """One worker pod."""

    pool: Name | None = None
    """Node pool that the workers run on. Default: the environment's only pool with GPUs."""
    gpus: Annotated[int, Field(ge=0, le=512, strict=True)] | None = None
    """GPUs of one worker, or shares of GPUs where the pool shares them. Default: 1; for a named cluster all of a node."""
    gpu_resource: NonEmpty | None = None
    """The resource to ask for. Default: the one that the pool advertises."""
    gpu_memory: Quantity | None = None
    """GPU memory that the worker needs for each of its GPUs: you are warned where the pool's share has less."""
    nics: Annotated[int, Field(ge=0, le=16, strict=True)] | None = None
    """RDMA NICs of one worker. Default, on a pool with `rdma`: one for each GPU where GPUs are claimed (`gpuAllocation: dra`), all
    of a node for a worker that takes all its GPUs, else none."""
    cpu: Quantity | None = None
    """Cores of one worker, request and limit alike. Default: 4; for a named cluster nine tenths of a node."""
    cpu_limit: Quantity | None = None
    """Most cores of one worker, where it may use more than `cpu` while others don't need them. Default: `cpu`."""
    memory: Quantity | None = None
    """Memory of one worker, request and limit alike. Default: 16Gi; for a named cluster four fifths of a node."""
    ray_gpus: Annotated[int, Field(ge=0, le=512, strict=True)] | None = None
    """GPUs that Ray's scheduler counts on one worker. Default: as many as it has (`gpus`)."""
    ray_resources: dict[RayResource, Annotated[int, Field(ge=1, le=1_000_000, strict=True)]] | None = None
    """Other resources that Ray's scheduler counts on one worker, by name, for `@ray.remote(resources={NAME: 1})`."""


class Wait(Settings):
    """What `pulumi up` waits for."""

    until: Literal["ready", "submitted"] | None = None
    """`ready`: every pod of the RayCluster runs (default). `submitted`: the API server took it; for pools that start
    at 0 nodes or queue for capacity."""
    timeout: Duration | None = None
    """How long to wait for `ready` before the update fails and says why. Default: 10m."""


class RayClusterShape(Settings):
    """The pods of a RayCluster as they are written in YAML, whatever it is for."""

    workers: WorkerCount | None = None
    """Number of worker pods, or `{min, max}` for Ray's autoscaler, with `start` for as many at the start. Default: 1."""
    worker: WorkerShape = WorkerShape()
    """One worker pod."""
    head: HeadShape = HeadShape()
    """The head pod."""
    image: NonEmpty | None = None
    """Container image of head and workers. Its Ray version must be `rayVersion`."""
    image_has: list[ImageContent] | None = None
    """Programs and libraries that `image` has beyond Ray, for an image of your own: workers with RDMA NICs need `libnl` and `torch`,
    `nestedContainers: cdi-per-pod` needs `podman`. berth warns where an image is not known to have them. Default: what
    images/ray-a4 and images/ray-podman have for images of these names, else nothing."""
    ray_version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$", examples=[versions.RAY])] | None = None
    """Ray's version in the image."""
    env: dict[NonEmpty, str] | None = None
    """Environment variables of head and workers."""
    nccl: NcclShape = NcclShape()
    """NCCL's settings in workers with GPUs."""
    nested_containers: NestedContainers | None = None
    """How containers that Ray starts inside its pods (`image_uri`, `container`) get the pod's GPUs. `cdi-per-pod`: podman of the
    image sees exactly the GPUs of its pod, by a CDI specification made in the pod; the pods run without seccomp and AppArmor
    profiles then. `nvidia-runtime`: the workers' pods themselves run by NVIDIA's container runtime. `none`: nothing is done for
    them (default). docs/nested-containers.md compares them."""
    auth: Literal["token", "none"] | None = None
    """`token`: every call of Ray's ports needs the cluster's token (default). `none` is against policy `ray-auth`."""
    access: AccessShape = AccessShape()
    """Who may use it by kubectl and Ray."""
    priority: PriorityClass | None = None
    """PriorityClass of its pods. Default: berth-development for an engineer's berth, else berth-production, which preempts it."""


class RayShape(RayClusterShape):
    """A RayCluster as it is written in YAML: what is left out comes from `defaults`, then from berth."""

    dashboard: Literal["private", "internal", "public"] | None = None
    """Who reaches the head's dashboard and client ports: `private`: the cluster's own network only (default). `internal`: the
    VPC, by an internal load balancer. `public`: the internet; against policy `private-dashboard`."""
    lifecycle: LifecycleShape = LifecycleShape()
    """When it is suspended by itself, and how long it lives. A named cluster takes none of `defaults`."""
    wait: Wait = Wait()
    """What `pulumi up` waits for."""

    def over(self, defaults: RayShape) -> RayShape:
        """This shape, with what it leaves out taken from `defaults`; `imageHas` of the defaults describes their image only."""
        below = _written(defaults)
        if self.image is not None:
            below.pop("image_has", None)
        return RayShape.model_validate(_merge(below, _written(self)))


def _written(shape: RayShape) -> dict[str, Any]:
    return shape.model_dump(exclude_none=True)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`above` over `below`, key by key in nested models; `workers`, and working hours, are one value, replaced whole."""
    merged = dict(below)
    for key, value in above.items():
        under = below.get(key)
        nested = isinstance(value, dict) and isinstance(under, dict) and key not in ("workers", "hours")
        merged[key] = _merge(under, value) if nested and isinstance(under, dict) else value
    return merged


class Head(Settings):
    """The head pod, complete."""

    pool: Name
    cpu: Quantity
    memory: Quantity


class Worker(Settings):
    """One worker pod, complete."""

    pool: Name
    gpus: int
    gpu_resource: NonEmpty
    gpu_memory: Quantity | None = None
    nics: int = 0
    cpu: Quantity
    cpu_limit: Quantity
    memory: Quantity
    ray_gpus: int | None = None
    """None: `gpus`."""
    ray_resources: dict[RayResource, int] = {}


class RayClusterSettings(Settings):
    """A RayCluster, complete: what components/ray makes a manifest of."""

    name: Name
    workers: int | WorkerBounds
    worker: Worker
    head: Head
    image: str
    image_has: tuple[ImageContent, ...] = ()
    """Content that the settings declare for the image; `image.contents` adds what is known by the image's name."""
    ray_version: str
    env: dict[str, str]
    nccl: Nccl = Nccl()
    nested_containers: NestedContainers = "none"
    auth: Literal["token", "none"] = "token"
    dashboard: Literal["private", "internal", "public"] = "private"
    access: Access = Access()
    priority: PriorityClass | None = None
    lifecycle: Lifecycle = Lifecycle()
    wait_until: Literal["ready", "submitted"]
    wait_timeout: Duration

    @property
    def workers_at_start(self) -> int:
        """Worker pods that the cluster starts with: what capacity is checked against."""
        if isinstance(self.workers, WorkerBounds):
            return self.workers.at_start
        return self.workers

    @property
    def workers_at_most(self) -> int:
        """Worker pods that the cluster can ever have."""
        return at_most(self.workers)


BUILT_IN = RayShape.model_validate(
    {
        "workers": 1,
        "worker": {"gpus": 1, "cpu": "4", "memory": "16Gi"},
        "head": {"cpu": "2", "memory": "8Gi"},
        "image": versions.RAY_IMAGE,
        "rayVersion": versions.RAY,
        "env": {},
        "nestedContainers": "none",
        "auth": "token",
        "dashboard": "private",
        "wait": {"until": "ready", "timeout": "10m"},
    }
)
"""What a berth has where neither it nor the environment's `defaults` says otherwise."""
