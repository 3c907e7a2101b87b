"""Base of the operators: facts that berth asks of each, on a cluster or without one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

from berth.components.gke import PoolSettings
from berth.components.operators.charts import (
    KnownChart,
    known_charts,
    pulled_image,
    values_of_copies,
)
from berth.components.operators.parts import Object, Part, Values, pulled_containers
from berth.components.operators.site import Site
from berth.components.plan.effect import Effect, Level, sitting_on
from berth.components.plan.fleet import PlannedFleet, PlannedPool
from berth.components.plan.plan import Step
from berth.components.sharing import Pools

BY_CHART = ("chart", "repository", "version", "namespace", "values")
"""Settings that belong to an operator's chart."""

SettingsType = TypeVar("SettingsType")


@dataclass(frozen=True)
class OtherInstallation:
    """An operator that somebody else has installed, and that must not run beside berth's.

    It is recognized by an image or by its name.

    Attributes:
        conflict: what the two would do to each other.
        remedy: setting to write instead of removing the other one; empty if there is none.
        images: ends of the names of its images, such as `kuberay/operator`.
        name: name of its DaemonSet in kube-system.
    """

    conflict: str
    remedy: str = ""
    images: tuple[str, ...] = ()
    name: str = ""


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
    settings_by_source: ClassVar[Mapping[tuple[str, ...], tuple[str, ...]]] = {("chart",): BY_CHART}
    """Settings that belong to some values of `source` only, by these values."""
    settings_by_value: ClassVar[Mapping[str, str]] = {}
    """Settings to write in place of Helm values, by the path of the value."""
    not_installed: ClassVar[tuple[str, ...]] = ("present", "addon")
    """Values of `source` with which berth installs nothing."""
    needs: ClassVar[tuple[type[Operator[Any]], ...]] = ()
    """Operators that are installed before it."""
    daemon_set: ClassVar[str] = ""
    """Beginning of the names of the DaemonSets by which a plan's object is recognized, for
    operators without a chart."""
    pool_setting: ClassVar[str] = ""
    """Setting of a pool that the operator is for; empty where its settings are never ignored."""
    other_installation: ClassVar[OtherInstallation | None] = None
    """How to recognize the operator on a cluster where somebody else has installed it."""
    noun: ClassVar[str] = ""
    """Name of the operator in a sentence, such as `the GPU Operator`."""
    when_removed: ClassVar[str] = ""
    """Effect of a removal on running pods, for previews."""
    when_changed: ClassVar[str] = ""
    """Effect of another version or other settings on running pods, as a sentence for previews."""

    @classmethod
    def pulumi_type(cls) -> str:
        """Return Pulumi's type of the component."""
        return f"berth:operators:{cls.__name__}"

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
        return values_of_copies(self.known_chart().images, self.site.image_mirror)

    def images(self) -> Iterator[tuple[str, str]]:
        """Yield the images that it pulls, each behind the setting of the operator that names it.

        The setting is empty where none does. An image without a tag has the one of its chart, which
        berth does not know for other versions than its own.
        """
        for part in self.parts(self.release):
            if isinstance(part, Object):
                for container in pulled_containers(part.manifest):
                    yield "", container["image"]
            else:
                yield from self._images_of_chart(part.values)

    def _images_of_chart(self, values: Values) -> Iterator[tuple[str, str]]:
        default = type(self.settings).model_fields["version"].default  # type: ignore[attr-defined]
        version = getattr(self.settings, "version", default)
        for image in self.known_chart().images:
            if name := pulled_image(image, values, version, own=version == default):
                yield f"values.{image.repository}", name

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
        if not fleet.before:
            return fleet.everywhere
        return [name for name, pool in fleet.before.items() if cls.serves_planned(pool)]

    @classmethod
    def effects(cls, step: Step, fleet: PlannedFleet, changed: Sequence[str]) -> list[Effect]:
        """Return the effects of a change of some inputs of the release or DaemonSet."""
        del changed
        sitting = sitting_on(fleet, cls.pools_of(fleet))
        if step.operation in ("replace", "delete"):
            again = ", then installed again" if step.operation == "replace" else ""
            text = f"{cls.noun} is removed{again}: {cls.when_removed}"
            return [Effect(Level.DESTROYS, text, sitting)]
        return [Effect(Level.DISTURBS, cls.when_changed, sitting)]
