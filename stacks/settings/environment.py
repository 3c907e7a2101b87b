"""Environment: a GKE cluster with its network, pools and operators, and its RayClusters."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

from pydantic import Field, field_validator

from berth.components.core.image import ImageMirror, mirrored
from berth.components.core.owner import OwnerKind
from berth.components.core.settings import Settings
from berth.components.core.types import Name, NonEmpty
from berth.components.gke import Addon
from berth.components.hardware import versions
from berth.components.isolation import IsolationSettings, UserName
from berth.components.lifecycle import KeeperSettings
from berth.components.operators import OperatedSettings
from berth.components.ray import (
    BerthShape,
    ClusterOptions,
    JobShape,
    RayShape,
    ServiceShape,
    from_secret_manager,
    mounts_buckets,
    mounts_shares,
)

KEYS: dict[OwnerKind, str] = {
    "engineer": "engineers",
    "cluster": "clusters",
    "job": "jobs",
    "service": "services",
}
"""Key of an environment's settings that lists the owners of one kind."""

USES: Mapping[Addon, Callable[[ClusterOptions], object]] = {
    "gcs_fuse": lambda shape: mounts_buckets(shape.volumes),
    "filestore": lambda shape: mounts_shares(shape.volumes),
    "secret_sync": lambda shape: from_secret_manager(shape.secrets),
}
"""Whether a RayCluster uses an add-on of GKE, by the add-on."""


class PolicySettings(Settings):
    """Settings of the policies, and the policies that are switched off."""

    required_labels: Annotated[list[NonEmpty], Field(examples=[["owner"]])] = [
        "owner",
        "cost-center",
    ]
    """Labels that a production environment must have in `labels`."""
    waived: Annotated[
        dict[NonEmpty, NonEmpty],
        Field(
            examples=[{"ray-auth": "the benchmark client knows no tokens; until the end of March"}]
        ),
    ] = {}
    """Policies that are switched off here, each with the reason."""


class MirrorSettings(Settings):
    """Mirrors of charts and images, for clusters without a way to the internet."""

    charts: Annotated[
        NonEmpty | None,
        Field(
            examples=["https://charts.example.com", "oci://registry.example.com/charts"],
            pattern=r"^(https?|oci)://",
        ),
    ] = None
    """Chart repository, or prefix of `oci://` references, with the operators' charts. Default: the
    variable `BERTH_CHART_MIRROR`, else where each chart is published."""
    images: Annotated[ImageMirror | None, Field(examples=["registry.example.com/mirror"])] = None
    """Registry with copies of the images that berth and its charts name by default, each under its
    full name; `berth images` prints the commands that fill it."""


class EnvironmentSettings(OperatedSettings):
    """An environment; `pulumi up` creates all of it.

    References between settings are checked in resolve.py, so that all problems come at once.
    """

    production: bool | None = None
    """Whether people depend on the environment, so that more policies hold. Default: true if the
    stack's name is `prod` or `production`, or begins with one of them and `-`."""
    mirror: Annotated[
        MirrorSettings, Field(examples=[{"images": "registry.example.com/mirror"}])
    ] = MirrorSettings()
    isolation: Annotated[IsolationSettings, Field(examples=[{"reachable": ["10.128.0.0/20"]}])] = (
        IsolationSettings()
    )
    keeper: Annotated[KeeperSettings | None, Field(examples=[{"every": "10m"}])] = None
    """Keeper, which suspends and wakes berths by their `lifecycle`. Default: it runs if a berth, or
    `defaults`, has a lifecycle."""
    previewers: Annotated[
        list[UserName], Field(examples=[["berth-preview@your-project.iam.gserviceaccount.com"]])
    ] = []
    """Identities that preview this environment and look for its drift, such as CI's for pull
    requests. On the cluster they read what the environment has applied, but no Secrets, write in
    dry runs only, and run nothing. On GKE: e-mail addresses of service accounts or people."""
    policies: Annotated[PolicySettings, Field(examples=[{"requiredLabels": ["owner"]}])] = (
        PolicySettings()
    )
    defaults: Annotated[BerthShape, Field(examples=[{"worker": {"pool": "dev"}}])] = BerthShape()
    """Settings of berths and clusters that do not have their own."""
    engineers: Annotated[
        dict[Name, BerthShape], Field(examples=[{"alice": {}, "bob": {"workers": 2}}])
    ] = {}
    """Berths by the engineer's id. `alice: {}` takes all defaults."""
    clusters: Annotated[
        dict[Name, BerthShape],
        Field(examples=[{"train": {"workers": 2, "worker": {"pool": "train"}}}]),
    ] = {}
    """Named RayClusters whose workers each take a whole node unless they say otherwise."""
    jobs: Annotated[
        dict[Name, JobShape],
        Field(examples=[{"nightly": {"entrypoint": "python train.py", "cluster": "train"}}]),
    ] = {}
    """RayJobs by name: programs that run once. A job's own RayCluster is sized as a named one."""
    services: Annotated[
        dict[Name, ServiceShape],
        Field(
            examples=[
                {
                    "chat": {
                        "serveConfig": {"applications": [{"name": "app", "import_path": "app:app"}]}
                    }
                }
            ]
        ),
    ] = {}
    """RayServices by name: applications of Ray Serve, each on a RayCluster sized as a named one."""

    @field_validator("engineers", "clusters", mode="before")
    @classmethod
    def _empty_entry(cls, value: object) -> object:
        """`alice:` with nothing after it reads as null and means all defaults."""
        if isinstance(value, dict):
            return {key: {} if entry is None else entry for key, entry in value.items()}
        return value

    def addon(self, name: Addon) -> bool | None:
        """Whether an add-on of GKE is on: by the settings, else where something uses it."""
        given = super().addon(name)
        if given is not None:
            return given
        shapes = [self.defaults, *(shape for _, _, shape in self.owners())]
        return True if any(map(USES[name], shapes)) else None

    def owners(self) -> Iterator[tuple[OwnerKind, str, RayShape]]:
        """Yield everything that has a RayCluster or runs on one: kind, name and settings."""
        for kind, key in KEYS.items():
            for name, shape in getattr(self, key).items():
                yield kind, name, shape

    @property
    def defaults_here(self) -> BerthShape:
        """Defaults, with the copy of Ray's image if there is a mirror and they name no image."""
        if not self.mirror.images or "image" in self.defaults.model_fields_set:
            return self.defaults
        return self.defaults.model_copy(
            update={"image": mirrored(versions.RAY_IMAGE, self.mirror.images)}
        )

    @property
    def isolation_here(self) -> IsolationSettings:
        """Complete isolation of berths: the metadata server is open on clusters of berth's own."""
        if self.isolation.metadata_server is not None:
            return self.isolation
        return self.isolation.model_copy(update={"metadata_server": self.cluster.existing is None})

    def is_production(self, stack: str) -> bool:
        """Whether it is a production environment: as it says, else by its stack's name."""
        if self.production is not None:
            return self.production
        return stack.partition("-")[0] in ("prod", "production")
