"""A cluster that operators are installed on."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from berth.components.core.image import mirrored
from berth.components.core.manifest import Manifest
from berth.components.hardware.names import ResourceApi
from berth.components.operators.parts import pulled_containers
from berth.components.sharing import Occupants, Pools

if TYPE_CHECKING:
    import pulumi


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
        for container in pulled_containers(copied):
            if container["image"] != written:
                container["image"] = mirrored(container["image"], self.image_mirror)
        return copied
