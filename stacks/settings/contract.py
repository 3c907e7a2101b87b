"""Contract of an environment with engineers' own stacks: what its stack tells them."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, PlainSerializer

from berth.components.core.owner import namespace_of
from berth.components.core.settings import Settings
from berth.components.core.types import Name, NonEmpty, ProjectId
from berth.components.gke import ExistingCluster, PoolSettings
from berth.components.hardware.names import ResourceApi
from berth.components.isolation import IsolationSettings
from berth.components.lifecycle import complete_lifecycle
from berth.components.operators import KubeRaySettings
from berth.components.ray import BerthShape, Demand, RayClusterSettings
from berth.components.sharing import SharingProfile
from berth.stacks.settings.environment import KEYS, EnvironmentSettings
from berth.stacks.settings.resolved import Resolved


def _without_queued(pools: Any) -> Any:
    """Return pools of an older version without `capacity.queued`, which is gone, if it is off."""
    for pool in pools.values() if isinstance(pools, dict) else ():
        capacity = pool.get("capacity") if isinstance(pool, dict) else None
        if isinstance(capacity, dict) and capacity.get("queued") is False:
            del capacity["queued"]
    return pools


class EnvironmentContract(Settings):
    """Output `environment` of an environment's stack, which engineers' stacks read."""

    format: int = 1
    """Version of the format, raised when a field changes its meaning."""
    name: str
    """Name of the environment."""
    pools: Annotated[dict[Name, PoolSettings], BeforeValidator(_without_queued)]
    sharing: dict[Name, SharingProfile] = {}
    defaults: Annotated[
        BerthShape,
        PlainSerializer(lambda shape: shape.model_dump(by_alias=True, exclude_unset=True)),
    ]
    demands: list[Demand]
    """Demands of the environment's own berths and clusters on the pools."""
    namespaces: dict[str, str]
    """Owners of the namespaces that the environment's stack registers."""
    resource_api: ResourceApi = "v1"
    """Version of resource.k8s.io for claims on the cluster."""
    kuberay: KubeRaySettings = KubeRaySettings()
    """Place of the KubeRay operator."""
    isolation: IsolationSettings | None = None
    """Isolation of its berths. None: a version of berth without PriorityClasses wrote this."""
    production: bool = False
    """Whether the environment is a production environment."""
    waived: dict[NonEmpty, NonEmpty] = {}
    """Policies that do not hold, each with the reason: an engineer's own stack can waive none."""
    keeper: bool = False
    """Whether a keeper suspends and wakes berths."""
    gcs_fuse: bool = True
    """Whether pods can mount buckets, as far as the settings say."""
    filestore: Literal[True] | None = None
    """Whether pods can mount Filestore volumes."""
    project: ProjectId | None = None
    """Google Cloud project, if GKE synchronizes Secrets with Secret Manager there."""
    login: ExistingCluster | None = None
    """Kubeconfig of an existing cluster: its file and context, which say nothing secret."""
    image_mirror: str | None = None
    """Registry with copies of the images that berth names itself."""
    currency: str | None = None
    """Currency of the pools' hourly rates."""

    def differing(self, other: Self) -> list[str]:
        """Return the names of the parts that engineers' stacks read in another way."""
        return [
            name
            for name in EnvironmentContract.model_fields
            if self._part(name) != other._part(name)
        ]

    def _part(self, name: str) -> Any:
        """Return a part as engineers' stacks read it.

        Demands have no order: the program gets settings from Pulumi, which sorts their keys, and
        `berth` reads them as the file has them.
        """
        if name != "demands":
            return getattr(self, name)
        demands = [demand.model_dump() for demand in self.demands]
        return sorted(demands, key=lambda demand: list(map(str, demand.values())))


def contract_of(
    settings: EnvironmentSettings, stack: str, resolved: Resolved, resource_api: ResourceApi = "v1"
) -> EnvironmentContract:
    """Return what an environment's stack tells engineers' stacks."""
    return EnvironmentContract(
        name=stack,
        pools=settings.pools,
        sharing=settings.sharing,
        defaults=settings.defaults_here,
        demands=resolved.demands,
        namespaces={
            namespace_of(workload.settings.name): f"{KEYS[workload.kind]}.{workload.settings.name}"
            for workload in resolved.workloads()
        },
        resource_api=resource_api,
        # Only the environment installs the operator.
        kuberay=settings.operators.kuberay.model_copy(update={"values": None}),
        isolation=settings.isolation_here,
        production=settings.is_production(stack),
        waived=settings.policies.waived,
        keeper=has_keeper(settings, resolved.every),
        gcs_fuse=bool(settings.addon("gcs_fuse")) or settings.cluster.existing is not None,
        filestore=(settings.addon("filestore") and settings.cluster.existing is None) or None,
        project=settings.project if settings.addon("secret_sync") else None,
        login=settings.cluster.existing,
        image_mirror=settings.mirror.images,
        currency=settings.currency,
    )


def has_keeper(settings: EnvironmentSettings, clusters: Iterable[RayClusterSettings]) -> bool:
    """Return whether an environment has a keeper: by its settings, or for a lifecycle."""
    with_defaults = [
        complete_lifecycle(settings.defaults.lifecycle),
        *(cluster.lifecycle for cluster in clusters),
    ]
    return settings.keeper is not None or any(lifecycle.any for lifecycle in with_defaults)


def keeper_image(settings: EnvironmentSettings) -> str:
    """Return the image of an environment's keeper: by default that of its berths."""
    return (settings.keeper and settings.keeper.image) or settings.defaults_here.image
