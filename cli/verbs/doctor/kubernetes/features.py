"""Checks of GKE's add-ons that pods of berths use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from berth.cli.verbs.doctor.findings import CLUSTER, DoctorFinding
from berth.components.cluster.api import ClusterApi, RefusedError
from berth.components.gke import SHARE_DRIVER, Addon
from berth.components.ray import BUCKET_DRIVER, SYNC_API

_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers/"


@dataclass(frozen=True)
class ClusterFeature:
    """Add-on of GKE as a cluster shows it.

    Attributes:
        name: the add-on in words.
        path: path that the API server has with the add-on.
        absent: what is wrong without it.
        remedy: command that turns it on.
    """

    name: str
    path: str
    absent: str
    remedy: str


FEATURES: Mapping[Addon, ClusterFeature] = {
    "gcs_fuse": ClusterFeature(
        "Cloud Storage FUSE driver",
        f"{_DRIVERS}{BUCKET_DRIVER}",
        f"{BUCKET_DRIVER} is not there: pods with buckets cannot start",
        "gcloud container clusters update CLUSTER --location=LOCATION"
        " --update-addons=GcsFuseCsiDriver=ENABLED",
    ),
    "filestore": ClusterFeature(
        "Filestore driver",
        f"{_DRIVERS}{SHARE_DRIVER}",
        f"{SHARE_DRIVER} is not there: no Filestore volumes are created, and pods that mount one"
        " cannot start",
        "gcloud container clusters update CLUSTER --location=LOCATION"
        " --update-addons=GcpFilestoreCsiDriver=ENABLED",
    ),
    "secret_sync": ClusterFeature(
        "synchronization with Secret Manager",
        f"/apis/{SYNC_API}",
        f"{SYNC_API} is not served: values of Secret Manager never arrive, and an update fails",
        "gcloud container clusters update CLUSTER --location=LOCATION"
        " --enable-secret-sync --enable-secret-sync-rotation",
    ),
}


def check_features(api: ClusterApi, addons: Iterable[Addon]) -> Iterable[DoctorFinding]:
    """Check that a cluster has add-ons of GKE.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    for addon in addons:
        feature = FEATURES[addon]
        try:
            answer = api.get(feature.path)
        except RefusedError as error:
            yield CLUSTER.unchecked(f"GKE's {feature.name}: {error}")
            continue
        if answer:
            yield CLUSTER.fine(f"GKE's {feature.name} is on")
        else:
            yield CLUSTER.missing(feature.absent, feature.remedy)
