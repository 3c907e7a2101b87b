"""Settings of a RayCluster as written in YAML, where every key may be left out."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from berth.components.core.bounds import WorkerCount
from berth.components.core.image import Image
from berth.components.core.settings import DefaultedSettings, Settings
from berth.components.core.types import (
    Duration,
    Memory,
    Name,
    NonEmpty,
    Quantity,
    RayLabel,
    RayLabelValue,
    RayResource,
    must_match,
)
from berth.components.fabric import NcclShape
from berth.components.hardware import versions
from berth.components.isolation import Access, PriorityClass
from berth.components.lifecycle import LifecycleShape
from berth.components.nested import NestedContainers
from berth.components.ray import kuberay_words
from berth.components.ray.pod_template.setting import PodTemplate
from berth.components.ray.storage.buckets import GcsFuse
from berth.components.ray.storage.home import HomeSetting
from berth.components.ray.storage.volumes import Volumes
from berth.components.ray.variables import FromSecret, ObjectName, Secrets, Variables

Dashboard = Literal["private", "internal", "public"]
"""Network that reaches the dashboard of a head."""

ImageContent = Literal["libnl", "podman", "torch"]
"""Content of an image beyond Ray that berth may need."""

# Ray's main branch calls itself 3.0.0.
_RAY_VERSION = re.compile(r"[1-3]\.\d{1,3}\.\d{1,3}", re.ASCII)
_REDIS = re.compile(r"(rediss?://)?[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?:\d{1,5}", re.ASCII)


def _whole(value: Any) -> Any:
    """Refuse a part of a GPU."""
    match value:
        case float():
            raise ValueError(
                f"{value!r} is not a whole number; a part of a GPU is a share of a pool with"
                " `sharing`"
            )
    return value


class HeadShape(DefaultedSettings):
    """Head pod."""

    other_words: ClassVar[Mapping[str, str]] = kuberay_words.OF_HEADS

    pool: Annotated[Name | None, Field(examples=["cpu"])] = None
    """Node pool of the head. Default: the environment's only pool without GPUs, or with them if
    `gpus`."""
    gpus: Annotated[
        int, Field(examples=[1], ge=0, le=512, strict=True), BeforeValidator(_whole)
    ] = 0
    """GPUs of the head, or shares, with workers or without (`workers: 0`: a berth of one pod)."""
    cpu: Annotated[Quantity, Field(examples=["4"])] = "2"
    """Cores: request and limit."""
    memory: Annotated[Memory, Field(examples=["16Gi"])] = "8Gi"
    """Memory: request and limit."""
    ray_cpus: Annotated[
        Annotated[int, Field(ge=0, le=4096, strict=True)] | None, Field(examples=[0])
    ] = None
    """Cores that Ray counts on the head; 0 keeps tasks off it. Default: `cpu`; 0 for services with
    workers."""
    ray_gpus: Annotated[
        Annotated[int, Field(ge=0, le=512, strict=True)] | None, Field(examples=[0])
    ] = None
    """GPUs that Ray counts on the head; 0 keeps tasks with GPUs off it. Default: `gpus`."""
    env: Annotated[Variables, Field(examples=[{"LOG_LEVEL": "debug"}])] = {}
    """Environment variables of the head alone; they override those of all pods."""
    pod_template: Annotated[
        PodTemplate, Field(examples=[{"metadata": {"annotations": {"team": "research"}}}])
    ] = {}
    """Patch of the head's pod template, for what has no setting: see
    `berth docs advanced#pod-templates`."""


class GcsFaultTolerance(Settings):
    """Fault tolerance of Ray's control store: its state is in Redis, and outlives the head."""

    other_words: ClassVar[Mapping[str, str]] = kuberay_words.OF_FAULT_TOLERANCE

    redis: Annotated[
        str,
        must_match(
            _REDIS, "is not the address of a Redis; write HOST:PORT, as in redis.redis:6379"
        ),
        Field(examples=["redis.redis:6379"]),
    ]
    """Address, `HOST:PORT`, which `isolation` must let berths reach."""
    password: Annotated[
        FromSecret | None, Field(examples=[{"secret": "redis", "key": "password"}])
    ] = None
    """Password, from a Secret."""
    storage_namespace: Annotated[NonEmpty | None, Field(examples=["train"])] = None
    """Prefix of its keys. Default: the RayCluster's uid."""


class AutoscalerShape(DefaultedSettings):
    """Ray's autoscaler, beside the head of a RayCluster whose workers have bounds."""

    other_words: ClassVar[Mapping[str, str]] = kuberay_words.OF_AUTOSCALERS

    cpu: Annotated[Quantity, Field(examples=["1"])] = "500m"
    """Cores: request and limit."""
    memory: Annotated[Memory, Field(examples=["2Gi"])] = "512Mi"
    """Memory: request and limit."""


class WorkerShape(DefaultedSettings):
    """Worker pod."""

    other_words: ClassVar[Mapping[str, str]] = kuberay_words.OF_WORKERS

    pool: Annotated[Name | None, Field(examples=["dev"])] = None
    """Node pool of the workers. Default: the environment's only pool with GPUs."""
    gpus: Annotated[
        int, Field(examples=[2], ge=0, le=512, strict=True), BeforeValidator(_whole)
    ] = 1
    """GPUs of one worker, or shares of GPUs on a pool that shares them. Default: 1; for a named
    cluster all GPUs of a node."""
    gpu_resource: Annotated[NonEmpty | None, Field(examples=["nvidia.com/mig-2g.45gb"])] = None
    """Resource name of the GPUs. Default: the name that the pool advertises."""
    gpu_memory: Annotated[Quantity | None, Field(examples=["40Gi"])] = None
    """GPU memory that the worker needs on each GPU; berth warns if a share has less."""
    nics: Annotated[Annotated[int, Field(ge=0, le=16, strict=True)] | None, Field(examples=[2])] = (
        None
    )
    """RDMA NICs of one worker. Default with `rdma`: one for each claimed GPU, all of a node for a
    worker with all its GPUs, else none."""
    cpu: Annotated[Quantity, Field(examples=["8"])] = "4"
    """Cores of one worker: request and limit. Default: 4; for a named cluster, and on nodes that
    have not as many, nine tenths of a node."""
    cpu_limit: Annotated[Quantity | None, Field(examples=["12"])] = None
    """Limit of cores, for a worker that may use more than `cpu` while other pods do not. Default:
    `cpu`."""
    memory: Annotated[Memory, Field(examples=["32Gi"])] = "16Gi"
    """Memory of one worker: request and limit. Default: 16Gi; for a named cluster, and on nodes
    that have not as much, four fifths of a node."""
    ray_gpus: Annotated[
        Annotated[int, Field(ge=0, le=512, strict=True)] | None, Field(examples=[1])
    ] = None
    """GPUs that Ray's scheduler counts on one worker. Default: `gpus`."""
    ray_resources: Annotated[
        dict[RayResource, Annotated[int, Field(ge=1, le=1_000_000, strict=True)]],
        Field(examples=[{"local-disk": 1}]),
    ] = {}
    """Custom resources that Ray's scheduler counts on one worker, by name, for
    `@ray.remote(resources={NAME: 1})`."""
    env: Annotated[Variables, Field(examples=[{"POD_IP": {"field": "status.podIP"}}])] = {}
    """Environment variables of workers alone; they override those of all pods."""
    labels: Annotated[dict[RayLabel, RayLabelValue], Field(examples=[{"tier": "large"}])] = {}
    """Ray's labels of one worker, for `@ray.remote(label_selector={KEY: VALUE})`; its pod has them
    too."""
    pod_template: Annotated[
        PodTemplate, Field(examples=[{"spec": {"terminationGracePeriodSeconds": 120}}])
    ] = {}
    """Patch of the workers' pod template, for what has no setting: see
    `berth docs advanced#pod-templates`."""


class WorkerGroupShape(WorkerShape):
    """Worker pods of one group."""

    workers: Annotated[WorkerCount, Field(examples=[2, {"min": 0, "max": 4}])] = 1
    """Number of the group's workers, or `{min, max}` for Ray's autoscaler. A change restarts no
    pod; the first bounds of a RayCluster restart it."""


class Wait(DefaultedSettings):
    """Goal of `pulumi up`."""

    until: Literal["ready", "submitted"] = "ready"
    """`ready`: every pod of the RayCluster runs. `submitted`: the API server accepted the
    RayCluster; for pools that start at 0 nodes or queue for capacity."""
    timeout: Annotated[Duration, Field(examples=["20m"])] = "10m"
    """Longest wait for `ready`; after it the update fails and reports the reasons."""


class WorkersShape(DefaultedSettings):
    """Workers and head of a RayCluster as written, which pools complete."""

    workers: Annotated[WorkerCount, Field(examples=[2, {"min": 0, "max": 4}])] = 1
    """Number of worker pods, or `{min, max}` for Ray's autoscaler, with `start` for the number at
    the start."""
    worker: Annotated[
        WorkerShape, Field(examples=[{"pool": "dev", "gpus": 1, "cpu": 8, "memory": "32Gi"}])
    ] = WorkerShape()
    """Worker pod. With `workerGroups`: keys that a group leaves out."""
    worker_groups: Annotated[
        dict[Name, WorkerGroupShape],
        Field(
            examples=[{"cpu": {"gpus": 0, "pool": "cpu"}, "gpu": {"workers": {"min": 0, "max": 4}}}]
        ),
    ] = {}
    """Groups of workers by name, in place of `workers`; keys that a group leaves out come from
    `worker`. A change of a group other than its `workers` restarts all pods: keep a spare group
    with `workers: 0`. Only berths have the groups of `defaults`."""
    head: Annotated[HeadShape, Field(examples=[{"cpu": 4, "memory": "16Gi"}])] = HeadShape()
    """Head pod."""
    nccl: Annotated[NcclShape, Field(examples=[{"env": {"NCCL_DEBUG": "INFO"}}])] = NcclShape()
    """NCCL's settings in workers with GPUs."""


class ClusterOptions(DefaultedSettings):
    """Settings of a RayCluster that hold as they are written."""

    gcs_fault_tolerance: Annotated[
        GcsFaultTolerance | None, Field(examples=[{"redis": "redis.redis:6379"}])
    ] = None
    """Ray's control store in Redis, so that workers outlive the head."""
    autoscaler: Annotated[AutoscalerShape, Field(examples=[{"memory": "2Gi"}])] = AutoscalerShape()
    """Size of Ray's autoscaler."""
    image: Annotated[Image, Field(examples=["registry.example.com/ray:2.60.0-py311-cu128"])] = (
        versions.RAY_IMAGE
    )
    """Container image of head and workers; its Ray version must be `rayVersion`."""
    image_has: Annotated[list[ImageContent], Field(examples=[["torch"]])] = []
    """Contents of an `image` of your own beyond Ray: workers with RDMA NICs need `libnl` and
    `torch`, `nestedContainers: cdi-per-pod` needs `podman`; berth warns otherwise. Default: known
    for images/ray-a4 and images/ray-podman."""
    ray_version: Annotated[
        str,
        must_match(
            _RAY_VERSION,
            "is not a version of Ray, which are 1.x and 2.x; write the one that the image has, as"
            f" in {versions.RAY} (python -c 'import ray; print(ray.__version__)')",
        ),
        Field(examples=[versions.RAY]),
    ] = versions.RAY
    """Version of Ray in the image."""
    image_pull_secrets: Annotated[list[ObjectName], Field(examples=[["registry"]])] = []
    """Secrets with logins to image registries; `berth secret set` writes them."""
    env: Annotated[
        Variables, Field(examples=[{"HF_HOME": "/home/ray/hf", "NODE": {"field": "spec.nodeName"}}])
    ] = {}
    """Environment variables of head and workers: text, `{secret: NAME, key: KEY}`, `{configMap:
    NAME, key: KEY}` of the berth's namespace, or `{field: spec.nodeName}` of the pod."""
    secrets: Annotated[
        Secrets,
        Field(examples=[{"HF_TOKEN": {}, "WANDB_API_KEY": {"secret": "wandb", "key": "key"}}]),
    ] = {}
    """Environment variables with secret values, by name: `{}` for a value that `berth secret set`
    writes, `{secret: NAME, key: KEY}` for a Secret of the berth's namespace, `{secretManager:
    NAME}` for one of Secret Manager (`projects/PROJECT/secrets/NAME/versions/N`). Settings, state
    and plans have no values."""
    volumes: Annotated[
        Volumes,
        Field(examples=[{"data": {"bucket": "my-bucket", "at": "/data", "readOnly": True}}]),
    ] = {}
    """Volumes by name: `{bucket: NAME, at: /data}` of Cloud Storage, `{filestore: 1Ti, at:
    /shared}` created for the berth (with `storageClass`; it stays unless `retain: false`), `{claim:
    NAME, at: /team}` of an existing claim, `{scratch: 500Gi, at: /scratch}` on the workers' local
    SSDs. `readOnly: true` refuses writes."""
    gcs_fuse: Annotated[GcsFuse, Field(examples=[{"cpu": 4, "memory": "8Gi", "disk": "200Gi"}])] = (
        GcsFuse()
    )
    """Container that GKE adds to pods with buckets."""
    nested_containers: NestedContainers = "none"
    """GPUs of containers that Ray starts inside its pods (`image_uri`). `cdi-per-pod`: podman of
    the image sees the pod's GPUs; the pods run without seccomp and AppArmor profiles.
    `nvidia-runtime`: workers run under NVIDIA's container runtime.
    See `berth docs advanced#nested-containers`."""
    auth: Literal["token", "none"] = "token"
    """`token`: every call to Ray's ports needs the cluster's token. `none` breaks policy
    `ray-auth`."""
    access: Annotated[Access, Field(examples=[{"users": ["alice@example.com"]}])] = Access()
    """Users of the berth, through kubectl and Ray."""
    priority: Annotated[
        PriorityClass | None, Field(examples=["berth-production", "berth-development"])
    ] = None
    """PriorityClass of the pods. Default: berth-development for an engineer's berth, else
    berth-production, which preempts it."""


# The fields of the last base come first, in the schema and on pages.
class RayShape(ClusterOptions, WorkersShape):
    """RayCluster of any owner as written in YAML: settings of its pods."""

    other_words: ClassVar[Mapping[str, str]] = kuberay_words.OF_CLUSTERS

    def of_cluster(self) -> dict[str, Any]:
        """Return the keys that are about the RayCluster, as written, by field name."""
        return {
            key: value
            for key, value in self.written_values().items()
            if key in BerthShape.model_fields
        }


class BerthShape(RayShape):
    """RayCluster as written in YAML; missing keys come from `defaults`, then from berth."""

    dashboard: Dashboard = "private"
    """Network that reaches the head's dashboard and client ports. `private`: the Kubernetes
    cluster. `internal`: the VPC, through an internal load balancer. `public`: the internet, which
    breaks policy `private-dashboard`."""
    home: Annotated[
        HomeSetting | None,
        Field(examples=["50Gi", {"size": "200Gi", "storageClass": "premium-rwo"}]),
    ] = None
    """Disk at /mnt/home in the head, which survives suspension, restarts, new images and the
    berth's removal. Named clusters ignore that of `defaults`. Default: none."""
    lifecycle: Annotated[LifecycleShape, Field(examples=[{"idle": "2h", "expires": "14d"}])] = (
        LifecycleShape()
    )
    """Automatic suspension and expiry. A named cluster ignores the lifecycle of `defaults`."""
    wait: Annotated[Wait, Field(examples=[{"until": "submitted"}])] = Wait()
    """Goal of `pulumi up`."""
