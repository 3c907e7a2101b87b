"""The KubeRay operator, which makes pods of RayClusters."""

from __future__ import annotations

import pulumi

from components.operators.helm import Chart, operator_namespace, release
from stacks.settings.operators import KubeRaySettings


class KubeRay(pulumi.ComponentResource):
    """KubeRay by its Helm chart. The chart brings the CRDs, and leaves them behind when it is removed."""

    def __init__(self, name: str, settings: KubeRaySettings, opts: pulumi.ResourceOptions | None = None) -> None:
        """Install the operator.

        Args:
            name: name of the Helm release.
            settings: chart, version, namespace.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:operators:KubeRay", name, None, opts)
        chart = Chart(
            chart=settings.chart,
            repository=settings.repository,
            version=settings.version,
            namespace=settings.namespace,
            values={"image": {"tag": f"v{settings.version}"}},
        )
        namespace = operator_namespace(name, settings.namespace, pulumi.ResourceOptions(parent=self))
        release(name, chart, pulumi.ResourceOptions(parent=self, depends_on=[namespace]))
        self.register_outputs({})
