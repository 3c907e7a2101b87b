"""Helm's record of a release: Secrets on the cluster, repaired before Pulumi touches the release.

An update that is killed inside Helm leaves the newest revision *pending*. Helm then refuses every
further operation, and Pulumi's provider never repairs it (pulumi-kubernetes 2054). A release whose
record exists and that the state lacks is refused too, since its name is in use.

The repair writes what Helm itself writes when an operation is interrupted in order: the revision
has failed. The next upgrade then starts at the last deployed revision. Where the state lacks the
release, its record is deleted, and the installation takes over the objects: Helm adopts objects
that carry the annotations of the same release (helm v3.18.6, pkg/action/validate.go).
"""

import base64
import datetime as dt
import gzip
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.cluster.api import SECRETS, ClusterApi, Object, in_namespace

_LEFT = "berth/left"
"""Annotation of a revision that the repair has marked as failed, with the status that it had."""

_REPAIRS = "repairs revision"
_REPLACES = "replaces revision"
_MANAGER = "berth-repair"
_PROVIDER = "pulumi-"
"""Beginning of the field manager that Pulumi's provider writes Secrets as: `pulumi-kubernetes`, or
the name of its program."""


@dataclass(frozen=True)
class Revision:
    """One revision of a release."""

    number: int
    status: str
    """Status as Helm writes it, such as `deployed`."""
    name: str
    """Name of the Secret."""
    uid: str
    left: str
    """Status before the repair; empty for a revision that needed none."""
    begun: dt.datetime
    """Time at which its operation began."""
    ours: bool
    """Whether Pulumi's provider has written it, rather than a `helm` that may still run."""

    @property
    def is_pending(self) -> bool:
        """Whether an operation on it runs, or was killed."""
        return self.status.startswith("pending-")

    def may_run(self, timeout: int) -> bool:
        """Return whether an operation with a timeout in seconds may still be at work on it."""
        return self.is_pending and dt.datetime.now(dt.UTC) - self.begun < dt.timedelta(
            seconds=timeout
        )


def revisions_of(api: ClusterApi, namespace: str, release: str) -> list[Revision]:
    """Return the revisions of a release, the newest last."""
    secrets = api.metadata(
        in_namespace(namespace, SECRETS), labelSelector=f"owner=helm,name={release}"
    )
    record = [_revision(secret["metadata"]) for secret in secrets]
    return sorted(record, key=lambda revision: revision.number)


def pending_releases(api: ClusterApi, releases: Collection[str]) -> list[str]:
    """Return the releases among some names that are pending: `gpu-operator (pending-upgrade)`."""
    selector = f"owner=helm,name in ({','.join(releases)})"
    newest: dict[str, Revision] = {}
    for secret in api.metadata(SECRETS, labelSelector=selector):
        revision = _revision(secret["metadata"])
        name = str(secret["metadata"]["labels"]["name"])
        if name not in newest or newest[name].number < revision.number:
            newest[name] = revision
    return [
        f"{name} ({revision.status})"
        for name, revision in sorted(newest.items())
        if revision.is_pending
    ]


def deployed_versions(api: ClusterApi, releases: Collection[str]) -> dict[str, str]:
    """Return the versions of the charts of some releases, by those that are deployed."""
    selector = f"owner=helm,status=deployed,name in ({','.join(releases)})"
    versions: dict[str, str] = {}
    for secret in api.list(SECRETS, labelSelector=selector)[0]:
        chart = _unpacked(secret["data"]["release"])["chart"]
        versions[secret["metadata"]["labels"]["name"]] = str(chart["metadata"]["version"])
    return versions


def _revision(metadata: Object) -> Revision:
    labels = metadata["labels"]
    managers = [str(entry.get("manager")) for entry in metadata.get("managedFields") or ()]
    return Revision(
        number=int(labels["version"]),
        status=str(labels.get("status")),
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        begun=dt.datetime.fromisoformat(metadata["creationTimestamp"]),
        left=str((metadata.get("annotations") or {}).get(_LEFT, "")),
        ours=any(manager.startswith(_PROVIDER) for manager in managers),
    )


def mark_failed(api: ClusterApi, namespace: str, revision: Revision) -> None:
    """Record that the operation on a pending revision has failed.

    Raises:
        ClusterError: the request fails, or somebody else changes the revision meanwhile.
    """
    path = f"{in_namespace(namespace, SECRETS)}/{revision.name}"
    secret = api.get(path) or {"metadata": {}}
    change = {
        "metadata": {
            "resourceVersion": secret["metadata"].get("resourceVersion"),
            "labels": {"status": "failed"},
            "annotations": {_LEFT: revision.status},
        },
        "data": {"release": failed_payload(secret["data"]["release"], revision.status)},
    }
    api.patch(path, change, _MANAGER)


def delete_record(api: ClusterApi, namespace: str, record: Iterable[Revision]) -> None:
    """Delete the record of a release, whose objects stay."""
    for revision in record:
        api.delete(f"{in_namespace(namespace, SECRETS)}/{revision.name}", revision.uid)


def failed_payload(payload: str, status: str) -> str:
    """Return the payload of a Secret of Helm's, with the status `failed` in place of another."""
    release = _unpacked(payload)
    release["info"] |= {
        "status": "failed",
        "description": f"left {status} by an update that was killed",
    }
    packed = gzip.compress(json.dumps(release).encode())
    return base64.b64encode(base64.b64encode(packed)).decode()


def _unpacked(payload: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(base64.b64decode(payload))))


def release_description(
    api: ClusterApi,
    namespace: str,
    release: str,
    values: Mapping[str, Any],
    version: str | None = None,
) -> str | None:
    """Return the description with which an update changes a release; None where nothing is wrong.

    It is an input of the release, so that the update changes the release even where the state
    believes that nothing has changed: after a repair, and where the settings are taken back that
    the plugin of a killed engine has deployed. It stays the same after that: Helm keeps the
    description of its newest revision, and drops annotations of the one before.

    Args:
        api: the cluster.
        namespace: namespace of the release.
        release: name of the release.
        values: Helm values of the settings.
        version: version of the chart; None for a chart that is a folder.

    Raises:
        ClusterError: the cluster does not answer, or refuses.
    """
    record = revisions_of(api, namespace, release)
    if not record:
        return None
    *older, newest = record
    left = newest.left
    if newest.is_pending and newest.number > 1:
        left = left or newest.status
    if left:
        return f"{_REPAIRS} {newest.number}, which was left {left}"

    def is_as_wanted(payload: Any) -> bool:
        chart = payload.get("chart", {}).get("metadata", {}).get("version")
        return _without_empty(payload.get("config")) == _without_empty(values) and version in (
            None,
            chart,
        )

    payload = _payload(api, namespace, newest)
    if not is_as_wanted(payload):
        for revision in reversed(older):
            if is_as_wanted(_payload(api, namespace, revision)):
                return f"{_REPLACES} {newest.number}"
    description = str(payload.get("info", {}).get("description"))
    return description if description.startswith((_REPAIRS, _REPLACES)) else None


def _payload(api: ClusterApi, namespace: str, revision: Revision) -> Any:
    """Return what Helm has recorded of a revision; empty where it is gone."""
    secret = api.get(f"{in_namespace(namespace, SECRETS)}/{revision.name}")
    return _unpacked(secret["data"]["release"]) if secret else {}


def _without_empty(values: Any) -> Any:
    """Return Helm values without what says nothing: nulls and empty mappings."""
    if not isinstance(values, Mapping):
        return values
    plain = {key: _without_empty(value) for key, value in values.items()}
    return {key: value for key, value in plain.items() if value is not None and value != {}}
