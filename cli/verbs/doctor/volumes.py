"""Parts of a cluster that volumes and secrets of berths need, and claims that settings name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.components.berth import BerthInputs
from berth.components.cluster.api import ClusterApi, RefusedError, within
from berth.components.core.owner import namespace_of
from berth.components.gke import SHARE_DRIVER
from berth.components.ray.secret_manager import SYNC_GROUP
from berth.components.ray.volumes import BUCKET_DRIVER

CLUSTER, VOLUMES = Topic("cluster"), Topic("volumes")

_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
_CLAIMS = "/api/v1/persistentvolumeclaims"
_FOR_MANY = {"ReadWriteMany", "ReadOnlyMany"}
_UPDATE = "gcloud container clusters update CLUSTER"


@dataclass(frozen=True)
class Feature:
    """Feature of GKE that settings need.

    Attributes:
        name: name for people.
        path: path that the API server has with the feature.
        missing: what is missing, and what would happen.
        remedy: command that switches the feature on.
    """

    name: str
    path: str
    missing: str
    remedy: str


BUCKETS = Feature(
    "Cloud Storage FUSE driver",
    f"{_DRIVERS}/{BUCKET_DRIVER}",
    f"{BUCKET_DRIVER} is not there: pods with buckets cannot start",
    f"{_UPDATE} --update-addons=GcsFuseCsiDriver=ENABLED",
)
SHARES = Feature(
    "Filestore driver",
    f"{_DRIVERS}/{SHARE_DRIVER}",
    f"{SHARE_DRIVER} is not there: no shares are created, and pods with shares cannot start",
    f"{_UPDATE} --update-addons=GcpFilestoreCsiDriver=ENABLED",
)
SECRET_MANAGER = Feature(
    "synchronization with Secret Manager",
    f"/apis/{SYNC_GROUP}",
    f"{SYNC_GROUP} is not served: values of Secret Manager never arrive, and an update fails",
    f"{_UPDATE} --enable-secret-sync --enable-secret-sync-rotation",
)


def check_features(api: ClusterApi, features: Iterable[Feature]) -> Iterable[Finding]:
    """Check that a cluster has features of GKE.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    for feature in features:
        try:
            there = api.get(feature.path)
        except RefusedError as error:
            yield CLUSTER.unchecked(f"GKE's {feature.name}: {error}")
        else:
            on = CLUSTER.fine(f"GKE's {feature.name} is on")
            yield on if there else CLUSTER.missing(feature.missing, feature.remedy)


def check_claims(berth: BerthInputs, api: ClusterApi) -> Iterable[Finding]:
    """Check that the claims that a berth's settings name are there, and are for several nodes.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    namespace = namespace_of(berth.settings.name)
    for name, volume in berth.settings.volumes.items():
        if not volume.claim:
            continue
        what = f"volume {name} of {berth.settings.name}"
        try:
            claim = api.get(f"{within(namespace, _CLAIMS)}/{volume.claim}")
        except RefusedError as error:
            yield VOLUMES.unchecked(f"{what}: {error}")
            continue
        show = f"kubectl get persistentvolumeclaims --namespace={namespace}"
        modes = ((claim or {}).get("spec") or {}).get("accessModes") or []
        if claim is None:
            text = f"{what} mounts claim {volume.claim}, which namespace {namespace} does not have: pods cannot start"
            yield VOLUMES.missing(text, show)
        elif not _FOR_MANY & set(modes):
            text = (
                f"{what} mounts claim {volume.claim}, whose access mode {', '.join(modes)} is for one node: pods on"
                " other nodes cannot start"
            )
            yield VOLUMES.missing(text, f"{show} --output=wide   # take a claim with ReadWriteMany")
        else:
            yield VOLUMES.fine(f"{what} mounts claim {volume.claim} ({', '.join(modes)})")
