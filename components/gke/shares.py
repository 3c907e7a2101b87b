"""StorageClasses of Filestore: GKE's own, and those of an environment for its cluster's network.

GKE's own classes create shares in the VPC network `default`, which a cluster in another network
does not reach (https://docs.cloud.google.com/filestore/docs/csi-driver).
"""

from collections.abc import Mapping
from typing import TypedDict

from berth.components.core.manifest import MANAGED_BY, Manifest, unawaited
from berth.components.gke.settings import GkeSettings

SHARE_DRIVER = "filestore.csi.storage.gke.io"
"""GKE's Filestore driver."""


class ShareClass(TypedDict):
    """Shares of a StorageClass: the service tier by the driver's name, and the least size."""

    tier: str
    least: str


SHARE_CLASSES: Mapping[str, ShareClass] = {
    "standard-rwx": {"tier": "standard", "least": "100Gi"},
    "premium-rwx": {"tier": "premium", "least": "2560Gi"},
    "zonal-rwx": {"tier": "zonal", "least": "1Ti"},
    "enterprise-rwx": {"tier": "enterprise", "least": "1Ti"},
}
"""GKE's StorageClasses of Filestore, by name.

Names: https://docs.cloud.google.com/filestore/docs/csi-driver; tiers and sizes:
https://github.com/kubernetes-sigs/gcp-filestore-csi-driver, pkg/csi_driver/controller.go, and
https://docs.cloud.google.com/filestore/docs/service-tiers.
"""

_OWN = "berth-"


def own_class(name: str) -> str:
    """Return the environment's StorageClass in place of one of GKE's; another class as it is."""
    return f"{_OWN}{name}" if name in SHARE_CLASSES else name


def storage_classes(settings: GkeSettings, cluster: str) -> list[Manifest]:
    """Return the StorageClasses of shares in the cluster's network; none without the driver."""
    if not settings.addon("filestore") or settings.cluster.existing:
        return []
    parameters = _network_parameters(settings, cluster)
    if settings.labels:
        labels = sorted(settings.labels.items())
        parameters["labels"] = ",".join(f"{key}={value}" for key, value in labels)
    return [
        unawaited(_storage_class(own_class(name), {"tier": share["tier"], **parameters}))
        for name, share in SHARE_CLASSES.items()
    ]


def _storage_class(name: str, parameters: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "labels": MANAGED_BY},
        "provisioner": SHARE_DRIVER,
        "parameters": parameters,
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": True,
        # In the zone of the first pod.
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _network_parameters(settings: GkeSettings, cluster: str) -> dict[str, str]:
    """Return the parameters for the cluster's network.

    A share reaches a Shared VPC by private services access alone
    (https://docs.cloud.google.com/filestore/docs/shared-vpc).
    """
    existing = settings.network.existing
    if existing is None:
        return {"network": cluster}
    if existing.project in (None, settings.project):
        return {"network": existing.network}
    path = f"projects/{existing.project}/global/networks/{existing.network}"
    return {"network": path, "connect-mode": "PRIVATE_SERVICE_ACCESS"}
