"""Settings that every operator with a chart has."""

from collections.abc import Collection
from typing import Annotated, Any

from pydantic import Field

from berth.components.core.merge import merged
from berth.components.core.settings import Settings
from berth.components.core.types import Document, NonEmpty
from berth.components.operators.parts import Chart, Values

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
