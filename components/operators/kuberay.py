"""The KubeRay operator, which creates the pods of RayClusters."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from berth.components.core.types import Name
from berth.components.hardware import versions
from berth.components.operators.chart_settings import ChartName, ChartSettings, Repository
from berth.components.operators.operator import Operator, OtherInstallation
from berth.components.operators.parts import Part, namespace_of

RAY_CLUSTERS = "rayclusters.ray.io"
"""Name of the CRD of RayClusters."""


class KubeRaySettings(ChartSettings):
    """The KubeRay operator."""

    source: Literal["chart", "addon", "present"] = "chart"
    """`chart`: berth installs it. `addon`: GKE does, in a version of its own choice. `present`: it
    is there already."""
    chart: ChartName = "kuberay-operator"
    repository: Repository = versions.KUBERAY_REPOSITORY
    version: Annotated[str, Field(examples=[versions.KUBERAY], pattern=r"^\d+\.\d+\.\d+$")] = (
        versions.KUBERAY
    )
    """Version of chart and operator."""
    namespace: Annotated[Name, Field(examples=["kuberay"])] = "kuberay-operator"
    """Namespace that the operator runs in."""

    @property
    def uses_proxy(self) -> bool:
        """Whether the operator calls heads by its own API client."""
        return bool((self.values or {}).get("useKubernetesProxy"))


class KubeRay(Operator[KubeRaySettings]):
    """KubeRay by its Helm chart, with its CRDs, which stay when the release is removed."""

    title: ClassVar[str] = "KubeRay operator"
    release: ClassVar[str] = "kuberay-operator"
    setting: ClassVar[str] = "kuberay"
    other_installation: ClassVar[OtherInstallation | None] = OtherInstallation(
        conflict="two of them would manage the same RayClusters",
        remedy="write `source: present`",
        images=("kuberay/operator",),
    )
    noun: ClassVar[str] = "the KubeRay operator"
    when_removed: ClassVar[str] = (
        "RayClusters keep running, and nothing creates, repairs or deletes their pods"
    )
    when_changed: ClassVar[str] = (
        "the CRDs of KubeRay are brought up to date, and its operator restarts; RayClusters keep"
        " running, and none is created or repaired meanwhile"
    )

    def parts(self, name: str) -> Iterator[Part]:
        """Yield the namespace and the chart."""
        yield namespace_of(name, self.settings.namespace)
        values = {"image": {"tag": f"v{self.settings.version}"}}
        yield self.settings.chart_with(values, self.repositories, definition=RAY_CLUSTERS)
