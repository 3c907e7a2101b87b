"""The KubeRay operator, which makes pods of RayClusters."""

from __future__ import annotations

import pulumi

from berth.components.operators.definitions import up_to_date
from berth.components.operators.helm import Chart, operator_namespace, release
from berth.components.operators.settings import KubeRaySettings

RAY_CLUSTERS = "rayclusters.ray.io"
"""Name of the definition of RayClusters."""


class KubeRay(pulumi.ComponentResource):
    """KubeRay by its Helm chart. The chart brings the CRDs, and leaves them behind when it is removed.

    berth brings the CRDs up to date with each change of the release.
    """

    def __init__(
        self,
        name: str,
        settings: KubeRaySettings,
        kubeconfig: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Install the operator.

        Args:
            name: name of the Helm release.
            settings: chart, version, namespace.
            kubeconfig: the cluster, as text.
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
        hooks = up_to_date(name, chart, RAY_CLUSTERS, kubeconfig, self)
        release(name, chart, pulumi.ResourceOptions(parent=self, depends_on=[namespace], hooks=hooks))
        self.register_outputs({})
