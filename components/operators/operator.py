"""Base of the operators: facts that berth asks of each, and their parts."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field

from berth.components.core import fast_yaml
from berth.components.core.image import mirrored
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.core.merge import merged
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.settings import Settings
from berth.components.core.table import broken
from berth.components.core.types import Document, NonEmpty
from berth.components.gke import PoolSettings
from berth.components.hardware.names import ResourceApi
from berth.components.operators.charts import KnownChart, known_charts, pulled, repositories
from berth.components.plan.effect import Effect, Level, sitting_on
from berth.components.plan.fleet import PlannedFleet, PlannedPool
from berth.components.plan.plan import Step
from berth.components.sharing import Occupants, Pools

if TYPE_CHECKING:
    import pulumi

ChartName = Annotated[
    NonEmpty,
    Field(
        description=(
            "A chart's name in `repository`, an `oci://` reference, or a folder (begins with `.` or"
            " `/`)."
        ),
        examples=["oci://registry.example.com/charts/name"],
    ),
]
Repository = Annotated[
    NonEmpty | None,
    Field(
        description="Chart repository; unused for an OCI reference or a folder.",
        examples=["https://charts.example.com"],
    ),
]
ChartValues = Annotated[
    Document | None,
    Field(
        description=(
            "Helm values over berth's own, as in a file of values: mappings merge, lists are"
            " replaced, null removes a default. `berth check` names each value of berth's that they"
            " change."
        ),
        examples=[{"resources": {"limits": {"memory": "1Gi"}}}],
    ),
]
Values = Mapping[str, Any]

_CONTRADICTIONS, _WORDS = (
    fast_yaml.load_beside(__file__, f"{name}.yaml") for name in ("contradictions", "words")
)


@dataclass(frozen=True)
class Chart:
    """A chart and what it is installed with."""

    chart: str
    """A name in `repository`, an `oci://` reference, or a folder (begins with `.` or `/`)."""
    repository: str | None
    """The chart repository; unused for the other two."""
    version: str
    """Version of the chart; unused for a folder, which has its own."""
    namespace: str
    values: dict[str, Any] = field(default_factory=dict)
    ours: dict[str, Any] = field(default_factory=dict)
    """Values among them that berth sets, whatever the settings override."""
    timeout: int = 300
    """Seconds until the objects of the chart have to be ready."""
    validated: bool = True
    """Whether Helm checks the objects against the cluster's OpenAPI schema first."""
    definition: str = ""
    """Name of a CRD that the chart has in its folder `crds/`, for charts that do not upgrade
    them."""
    warn: Callable[[Values, Values], Iterable[str]] | None = None
    """Lines to print in a preview, from the Helm values before and after a change."""

    def mirrored(self, mirror: str) -> Chart:
        """Return the chart as a repository, or a prefix of `oci://` references, has it.

        A folder, or without a mirror ("") any chart, stays as it is.
        """
        if not mirror or self.is_folder:
            return self
        name = self.chart.rstrip("/").rpartition("/")[2]
        if mirror.startswith("oci://"):
            return replace(self, chart=f"{mirror.rstrip('/')}/{name}")
        return replace(self, chart=name, repository=mirror)

    @property
    def is_folder(self) -> bool:
        """Whether the chart is a folder rather than a name or a reference."""
        return self.chart.startswith((".", "/"))

    @property
    def in_repository(self) -> str | None:
        """Repository of a chart that is given by name."""
        return None if self.is_folder or self.chart.startswith("oci://") else self.repository


@dataclass(frozen=True)
class Object:
    """A Kubernetes object of an operator."""

    name: str
    """Pulumi's name."""
    manifest: Manifest
    was_part_of: str = ""
    """Type and name of the component that the object belonged to in older versions."""


Part = Chart | Object


def namespace_of(name: str, namespace: str) -> Object:
    """Return the namespace of an operator; Helm would create it too, but leave it behind."""
    metadata = {"name": namespace, "labels": dict(MANAGED_BY)}
    return Object(name, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


@dataclass(frozen=True)
class Site:
    """A cluster that operators are installed on."""

    pools: Pools = field(default_factory=dict)
    kubeconfig: pulumi.Input[str] = ""
    """Access to the cluster, as text."""
    occupants: Occupants = field(default_factory=dict)
    """Names of those who work on each pool."""
    resource_api: ResourceApi = "v1"
    """Version of resource.k8s.io that the cluster serves."""
    manifests: Mapping[str, Sequence[Manifest]] = field(default_factory=dict)
    """Objects read from the files of `source: manifest`, by the operator's setting."""
    chart_mirror: str = ""
    """Repository, or prefix of `oci://` references, that has all charts. Default: the environment
    variable `BERTH_CHART_MIRROR`, else the published charts."""
    image_mirror: str = ""
    """Registry with copies of all images; "" for where they are published."""

    def with_copies(self, manifest: Manifest, written: str = "") -> Manifest:
        """Return a DaemonSet of berth's own with copies of its images; a written image stays."""
        copied = copy.deepcopy(manifest)
        for container in pulling(copied):
            if container["image"] != written:
                container["image"] = mirrored(container["image"], self.image_mirror)
        return copied


def pulling(manifest: Manifest) -> list[Manifest]:
    """Return the containers of a DaemonSet whose image a node pulls; none of another object."""
    pod = manifest["spec"]["template"]["spec"] if manifest["kind"] == "DaemonSet" else {}
    containers = [*pod.get("initContainers", ()), *pod.get("containers", ())]
    return [container for container in containers if container.get("imagePullPolicy") != "Never"]


SettingsType = TypeVar("SettingsType")


@dataclass(frozen=True)
class Operator(ABC, Generic[SettingsType]):
    """An operator on a cluster."""

    settings: SettingsType
    """Settings of the operator; None for one without."""
    site: Site = field(default_factory=Site)

    title: ClassVar[str]
    """Name of the operator in previews."""
    release: ClassVar[str]
    """Name of the component, of its Helm release, and of its chart."""
    setting: ClassVar[str] = ""
    """Field of OperatorsSettings with its settings; empty without settings."""
    not_installed: ClassVar[tuple[str, ...]] = ("present", "addon")
    """Values of `source` with which berth installs nothing."""
    needs: ClassVar[tuple[type[Operator[Any]], ...]] = ()
    """Operators that are installed before it."""
    daemon_set: ClassVar[str] = ""
    """Beginning of the names of the DaemonSets by which a plan's object is recognized, for
    operators without a chart."""
    pool_setting: ClassVar[str] = ""
    """Setting of a pool that the operator is for; empty where its settings are never ignored."""

    @classmethod
    def pulumi_type(cls) -> str:
        """Return Pulumi's type of the component."""
        return f"berth:operators:{cls.__name__}"

    @classmethod
    def by_setting(cls) -> Mapping[str, str]:
        """Return the settings in place of Helm values, by the path of the value."""
        found: Mapping[str, str] = _WORDS.get(cls.release, {}).get("by_setting", {})
        return found

    @classmethod
    def known_chart(cls) -> KnownChart:
        """Return the facts about berth's default chart; no facts without a chart."""
        return known_charts().get(cls.release, KnownChart())

    @classmethod
    def on(cls, settings: SettingsType, site: Site) -> Self | None:
        """Return the operator for a cluster; None if nothing is to be installed."""
        installed = getattr(settings, "source", "") not in cls.not_installed
        return cls(settings, site) if installed and cls.served(site.pools) else None

    @abstractmethod
    def parts(self, name: str) -> Iterator[Part]:
        """Yield the objects and charts of the named component; each needs those before it."""

    @property
    def repositories(self) -> Values:
        """Helm values that lead to the copies of the chart's images; empty without a mirror."""
        return repositories(self.known_chart().images, self.site.image_mirror)

    def images(self) -> Iterator[tuple[str, str]]:
        """Yield the images that it pulls, each behind the setting of the operator that names it.

        The setting is empty where none does. An image without a tag has the one of its chart, which
        berth does not know for other versions than its own.
        """
        for part in self.parts(self.release):
            if isinstance(part, Object):
                yield from (("", container["image"]) for container in pulling(part.manifest))
            else:
                default = type(self.settings).model_fields["version"].default  # type: ignore[attr-defined]
                version = getattr(self.settings, "version", default)
                for image in self.known_chart().images:
                    if found := pulled(image, part.values, version, own=version == default):
                        yield f"values.{image.repository}", found

    @classmethod
    def serves(cls, pool: PoolSettings) -> bool:
        """Return whether a pool needs the operator."""
        del pool
        return True

    @classmethod
    def served(cls, pools: Pools) -> Pools:
        """Return the pools that need the operator."""
        return {name: pool for name, pool in pools.items() if cls.serves(pool.settings)}

    @property
    def pools(self) -> Pools:
        """Pools of the cluster that need the operator."""
        return self.served(self.site.pools)

    @classmethod
    def serves_planned(cls, pool: PlannedPool) -> bool:
        """Return whether the operator serves a pool of a plan."""
        del pool
        return False

    @classmethod
    def pools_of(cls, fleet: PlannedFleet) -> list[str]:
        """Return the served pools; on an existing cluster all pools in use."""
        planned = fleet.before.items()
        return (
            [name for name, pool in planned if cls.serves_planned(pool)]
            if planned
            else fleet.everywhere
        )

    @classmethod
    def problems(
        cls, settings: SettingsType, path: SettingPath, *, existing: bool
    ) -> Iterable[Problem]:
        """Return what is wrong with the settings at a path, on an existing cluster or a new one."""
        return broken(
            _CONTRADICTIONS.get(cls.setting, ()), path, settings=settings, existing=existing
        )

    @classmethod
    def effects(cls, step: Step, fleet: PlannedFleet, changed: Sequence[str]) -> list[Effect]:
        """Return the effects of a change of some inputs of the release or DaemonSet."""
        del changed
        sitting = sitting_on(fleet, cls.pools_of(fleet))
        if step.operation in ("replace", "delete"):
            again = ", then installed again" if step.operation == "replace" else ""
            return [
                Effect(Level.DESTROYS, _WORDS[cls.release]["removed"].format(again=again), sitting)
            ]
        return [Effect(Level.DISTURBS, _WORDS[cls.release]["changed"], sitting)]


class ChartSettings(Settings):
    """Settings that every operator with a chart has; each gives its own defaults."""

    chart: str
    repository: str | None
    version: str
    namespace: str
    values: ChartValues = None

    def chart_with(
        self, values: dict[str, Any], images: Values, *, by_name: Collection[str] = (), **more: Any
    ) -> Chart:
        """Return the chart with berth's Helm values, and those of the settings over them.

        Values that lead to the copies of the chart's images are under all others. Lists of the keys
        `by_name` merge by `name`; other lists are replaced.
        """
        every = merged(merged(images, values), self.values or {}, by_name=by_name)
        return Chart(
            self.chart, self.repository, self.version, self.namespace, every, ours=values, **more
        )
