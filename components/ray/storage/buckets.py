"""Buckets of Cloud Storage, as settings and as volumes of pods."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from berth.components.core.manifest import Manifest
from berth.components.core.settings import Settings
from berth.components.core.types import Memory, Quantity, must_match
from berth.components.isolation import RAY_USER, bucket_annotations

BUCKET_DRIVER = "gcsfuse.csi.storage.gke.io"
"""GKE's Cloud Storage FUSE driver."""

# https://docs.cloud.google.com/storage/docs/buckets#naming
_BUCKET = re.compile(r"[a-z0-9][-_.a-z0-9]{1,220}[a-z0-9]")

BucketName = Annotated[
    str,
    must_match(_BUCKET, "is not the name of a bucket; write it without gs:// and without a folder"),
]
"""Name of a bucket."""

MountOption = Annotated[
    str, must_match(re.compile(r"[^\s,]+"), "is not one mount option; write each as an entry")
]
"""Mount option of Cloud Storage FUSE
(https://docs.cloud.google.com/kubernetes-engine/docs/reference/cloud-storage-fuse-csi-driver/mount-options)."""

# Files belong to the user of Ray's image; folders exist that only names of objects imply
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-setup).
_OPTIONS = f"implicit-dirs,uid={RAY_USER},gid={RAY_USER}"


class GcsFuse(Settings):
    """Container that GKE adds to pods that mount buckets; all files go through it."""

    cpu: Annotated[Quantity, Field(examples=["4"])] = "250m"
    """CPU cores."""
    memory: Annotated[Memory, Field(examples=["8Gi"])] = "512Mi"
    """Memory. Where it runs out, the buckets are away until the pod restarts."""
    disk: Annotated[Memory, Field(examples=["200Gi"])] = "5Gi"
    """Disk, for files that are written or cached (`file-cache` in `mountOptions`)."""


def bucket_source(bucket: str, mount_options: Sequence[str], *, read_only: bool) -> Manifest:
    """Return the source of a pod's volume that is a bucket."""
    attributes = {"bucketName": bucket, "mountOptions": ",".join([_OPTIONS, *mount_options])}
    csi = {"driver": BUCKET_DRIVER, "readOnly": read_only, "volumeAttributes": attributes}
    return {"csi": csi}


def with_bucket_sizes(template: Manifest, gcs_fuse: GcsFuse) -> Manifest:
    """Return a pod template whose annotations size the container that GKE adds for buckets."""
    metadata = template["metadata"]
    sizes = bucket_annotations(gcs_fuse.cpu, gcs_fuse.memory, gcs_fuse.disk)
    annotations = {**metadata.get("annotations", {}), **sizes}
    return {**template, "metadata": {**metadata, "annotations": annotations}}
