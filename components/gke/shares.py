"""StorageClasses of Filestore: GKE's own, and those of an environment for its cluster's network.

GKE's own classes create shares in the VPC network `default`, which a cluster in another network
does not reach (https://docs.cloud.google.com/filestore/docs/csi-driver).
"""

from collections.abc import Mapping

from berth.components.core import fast_yaml
from berth.components.core.manifest import MANAGED_BY, Manifest, manifest_of, unawaited
from berth.components.gke.settings import GkeSettings

SHARE_DRIVER = "filestore.csi.storage.gke.io"
"""GKE's Filestore driver."""

SHARE_CLASSES: Mapping[str, Mapping[str, str]] = fast_yaml.load_beside(__file__)
"""GKE's StorageClasses of Filestore: `tier` and `least` size of their shares."""

_OWN = "berth-"


def own_class(name: str) -> str:
    """Return the environment's StorageClass in place of one of GKE's; another class as it is."""
    return f"{_OWN}{name}" if name in SHARE_CLASSES else name


def storage_classes(settings: GkeSettings, cluster: str) -> list[Manifest]:
    """Return the StorageClasses of shares in the cluster's network; none without the driver."""
    if not settings.addon("filestore") or settings.cluster.existing:
        return []
    labels = ",".join(f"{key}={value}" for key, value in sorted(settings.labels.items()))
    shared = {
        "managed": MANAGED_BY,
        "driver": SHARE_DRIVER,
        "labels": labels or None,
        **_network(settings, cluster),
    }
    return [
        unawaited(
            manifest_of(
                __file__, "storage_class", name=own_class(name), tier=known["tier"], **shared
            )
        )
        for name, known in SHARE_CLASSES.items()
    ]


def _network(settings: GkeSettings, cluster: str) -> dict[str, str | None]:
    """Return the parameters for the cluster's network.

    A share reaches a Shared VPC by private services access alone
    (https://docs.cloud.google.com/filestore/docs/shared-vpc).
    """
    existing = settings.network.existing
    if existing is None or existing.project in (None, settings.project):
        return {"network": existing.network if existing else cluster, "connect_mode": None}
    path = f"projects/{existing.project}/global/networks/{existing.network}"
    return {"network": path, "connect_mode": "PRIVATE_SERVICE_ACCESS"}
