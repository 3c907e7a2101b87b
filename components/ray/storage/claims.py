"""Claims on storage that outlives pods: of a berth's home, and of its Filestore shares."""

from collections.abc import Mapping

from berth.components.core.manifest import Manifest, unawaited
from berth.components.gke import own_class
from berth.components.ray.storage.home import HOME_CLAIM, Home
from berth.components.ray.storage.volumes import Volume, shares_of

SHARE_PREFIX = "share-"
"""Beginning of the names of shares' claims, before the volume's name."""


def home_claim(home: Home | None, namespace: str, labels: dict[str, str]) -> Manifest | None:
    """Return the claim of a home; None without one.

    The disk is created in the zone of the node that the head is scheduled to, so that nothing can
    wait for the disk before.
    """
    if home is None:
        return None
    metadata = {"name": HOME_CLAIM, "namespace": namespace, "labels": labels}
    return _claim(metadata, "ReadWriteOnce", home.size, home.storage_class)


def share_claims(
    volumes: Mapping[str, Volume], namespace: str, labels: dict[str, str], *, own_classes: bool
) -> list[Manifest]:
    """Return the claims of a berth's shares.

    Args:
        volumes: volumes by name.
        namespace: namespace of the berth.
        labels: labels of the berth's objects.
        own_classes: whether the environment has StorageClasses for the network of its cluster.
    """
    claims = []
    for name, share in shares_of(volumes).items():
        storage_class = own_class(share.class_of_share) if own_classes else share.class_of_share
        metadata = {"name": f"{SHARE_PREFIX}{name}", "namespace": namespace, "labels": labels}
        claims.append(_claim(metadata, "ReadWriteMany", str(share.filestore), storage_class))
    return claims


def has_storage_that_stays(home: Home | None, volumes: Mapping[str, Volume]) -> bool:
    """Return whether the home or a Filestore volume stays when the berth goes."""
    if home and home.retain:
        return True
    return any(share.retain for share in shares_of(volumes).values())


def _claim(metadata: Manifest, mode: str, size: str, storage_class: str | None) -> Manifest:
    """Return a claim on storage, which is created once a pod that mounts it is scheduled.

    Without a StorageClass it has the cluster's default.
    """
    spec: Manifest = {"accessModes": [mode], "resources": {"requests": {"storage": size}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    return unawaited(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": spec,
        }
    )
