"""Volumes in the pod templates of head and workers, mounted in Ray's container."""

from collections.abc import Mapping, Sequence

from berth.components.core.manifest import Manifest
from berth.components.isolation import RAY_USER
from berth.components.nested import NestedParts, with_nested_parts
from berth.components.ray.storage.buckets import GcsFuse, bucket_source, with_bucket_sizes
from berth.components.ray.storage.claims import SHARE_PREFIX
from berth.components.ray.storage.home import HOME_CLAIM, HOME_FOLDER, Home
from berth.components.ray.storage.volumes import Volume, mounts_buckets, mounts_shares


def with_home(template: Manifest, home: Home | None) -> Manifest:
    """Return the pod template of a head with its home mounted in Ray's container."""
    if home is None:
        return template
    volume = {"name": HOME_CLAIM, "persistentVolumeClaim": {"claimName": HOME_CLAIM}}
    mount = {"name": HOME_CLAIM, "mountPath": HOME_FOLDER}
    return with_mounts(template, [volume], [mount], new_storage=True)


def with_volumes(
    template: Manifest, volumes: Mapping[str, Volume], gcs_fuse: GcsFuse, *, worker: bool
) -> Manifest:
    """Return a pod template with volumes in Ray's container; only workers have scratch.

    GKE's driver for shares lets Kubernetes set the group of the files
    (https://github.com/kubernetes-sigs/gcp-filestore-csi-driver, docs/kubernetes/fsgroup.md).
    """
    of_pod = {name: volume for name, volume in volumes.items() if worker or not volume.scratch}
    if not of_pod:
        return template
    mounts = [_mount(name, volume) for name, volume in of_pod.items()]
    sources = [_source(name, volume) for name, volume in of_pod.items()]
    result = with_mounts(template, sources, mounts, new_storage=mounts_shares(of_pod))
    return with_bucket_sizes(result, gcs_fuse) if mounts_buckets(of_pod) else result


def with_mounts(
    template: Manifest,
    volumes: Sequence[Manifest],
    mounts: Sequence[Manifest],
    *,
    new_storage: bool,
) -> Manifest:
    """Return a pod template with volumes that are mounted in Ray's container.

    Args:
        template: the pod template.
        volumes: volumes to add to the pod.
        mounts: mounts to add to Ray's container.
        new_storage: whether a volume is new storage, which belongs to root: the group of the pod
            then lets the user of Ray's image write.
    """
    result = with_nested_parts(template, NestedParts(volumes=[*volumes], mounts=[*mounts]))
    if new_storage:
        group = {"fsGroup": RAY_USER, "fsGroupChangePolicy": "OnRootMismatch"}
        result["spec"]["securityContext"] = {**template["spec"].get("securityContext", {}), **group}
    return result


def _mount(name: str, volume: Volume) -> Manifest:
    mount: Manifest = {"name": _name_in_pod(name), "mountPath": volume.at}
    if volume.read_only:
        mount["readOnly"] = True
    return mount


def _source(name: str, volume: Volume) -> Manifest:
    """Return a volume as the pod has it."""
    source: Manifest
    if volume.scratch:
        source = {"emptyDir": {"sizeLimit": volume.scratch}}
    elif volume.bucket:
        source = bucket_source(volume.bucket, volume.mount_options, read_only=volume.read_only)
    else:
        claim = f"{SHARE_PREFIX}{name}" if volume.filestore else volume.claim
        source = {"persistentVolumeClaim": {"claimName": claim, "readOnly": volume.read_only}}
    return {"name": _name_in_pod(name), **source}


def _name_in_pod(name: str) -> str:
    return f"volume-{name}"
