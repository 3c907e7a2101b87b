"""GKE's controller that writes values of Secret Manager into Secrets.

The values are those of the simulated projects' conditions. Left out: rights of service accounts on
secrets, disabled versions, the rotation interval (a new version arrives at once).

Answers to (read): internal/controller of
    https://github.com/kubernetes-sigs/secrets-store-sync-controller (conditions, and labels and
    owner of the Secret)
Answers to (believed): the text of Secret Manager's refusal, and that GKE's controller has the
    conditions of the one above. `kubectl get secretsyncs -o yaml` on a cluster would settle both.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from berth.components.cluster.api import SECRETS, Object, within
from berth.lab.devices.api import Api, now
from berth.lab.plugins.gcp.addons import reads_secret_manager
from berth.lab.plugins.gcp.conditions import Conditions
from berth.lab.plugins.gcp.store import Store

SYNCS = "/apis/secret-sync.gke.io/v1/secretsyncs"
_CLASSES = "/apis/secrets-store.csi.x-k8s.io/v1/secretproviderclasses"

_LATEST = "latest"


class SyncError(Exception):
    """Failure to read a value, with a reason for the condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class SecretSync:
    """Secrets of Secret Manager in the lab's cluster."""

    def __init__(self, api: Api, store: Store, conditions: Callable[[], Conditions]) -> None:
        self._api, self._store, self._conditions = api, store, conditions

    def step(self) -> None:
        """Write the Secret of each SecretSync that is new, changed, or behind Secret Manager."""
        if not any(reads_secret_manager(cluster.inputs) for cluster in self._store.list("clusters")):
            return
        for sync in self._api.list(SYNCS):
            self._play(sync)

    def _play(self, sync: Object) -> None:
        namespace, name = sync["metadata"]["namespace"], sync["metadata"]["name"]
        if "deletionTimestamp" in sync["metadata"]:
            return
        path = f"{within(namespace, SECRETS)}/{name}"
        provider = self._api.get(f"{within(namespace, _CLASSES)}/{sync['spec']['secretProviderClassName']}")
        there = self._api.get(path)
        try:
            secret = secret_of(sync, provider, self._conditions())
        except SyncError as error:
            self._report(sync, "SecretUpdated" if there else "SecretCreated", "False", error.reason, str(error))
            return
        if (there or {}).get("data") != secret["data"]:
            self._api.apply(path, secret)
        self._report(sync, "SecretCreated", "True", "CreateSuccessful", "Secret created successfully.")

    def _report(self, sync: Object, kind: str, status: str, reason: str, message: str) -> None:
        """Write a condition, if it says something new."""
        before = (sync.get("status") or {}).get("conditions") or []
        condition = {"type": kind, "status": status, "reason": reason, "message": message}
        if any(condition.items() <= one.items() for one in before):
            return
        others = [one for one in before if one["type"] != kind]
        change = {"status": {"conditions": [*others, {**condition, "lastTransitionTime": now()}]}}
        metadata = sync["metadata"]
        self._api.patch(f"{within(metadata['namespace'], SYNCS)}/{metadata['name']}/status", change)


def secret_of(sync: Mapping[str, Any], provider: Mapping[str, Any] | None, conditions: Conditions) -> Object:
    """Return the Secret of a SecretSync.

    Args:
        sync: the SecretSync.
        provider: its SecretProviderClass; None if there is none.
        conditions: conditions of the simulated projects, with the values.

    Raises:
        SyncError: the class is missing or of another provider, or Secret Manager lacks a secret.
    """
    spec, metadata = sync["spec"], sync["metadata"]
    class_name = spec["secretProviderClassName"]
    if provider is None or provider["spec"].get("provider") != "gke":
        raise SyncError("SecretProviderClassMisconfigured", f'failed to get SecretProviderClass "{class_name}"')
    listed = yaml.safe_load((provider["spec"].get("parameters") or {}).get("secrets") or "[]")
    files = {str(entry["path"]): str(entry["resourceName"]) for entry in listed}
    data = {}
    for entry in spec["secretObject"]["data"]:
        if entry["sourcePath"] not in files:
            raise SyncError("RemoteSecretStoreFetchFailed", f"file matching sourcePath {entry['sourcePath']} not found")
        value = _value(files[entry["sourcePath"]], conditions)
        data[entry["targetKey"]] = base64.b64encode(value.encode()).decode()
    owner = {"apiVersion": sync["apiVersion"], "kind": sync["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {"secrets-store.sync.x-k8s.io": "", **(spec["secretObject"].get("labels") or {})},
            "ownerReferences": [owner],
        },
        "type": spec["secretObject"].get("type") or "Opaque",
        "data": data,
    }


def _value(resource: str, conditions: Conditions) -> str:
    """Return the value of a version of a secret: `projects/p/secrets/s/versions/latest`."""
    _, project, _, secret, _, version = resource.split("/")
    entry = conditions.project(project)
    values = entry.secrets.get(secret, []) if entry else []
    number = len(values) if version == _LATEST else int(version)
    if not 1 <= number <= len(values):
        what = f"Secret [projects/{project}/secrets/{secret}] not found or has no versions."
        raise SyncError(
            "ProviderError", f"fetching secrets from the provider failed: rpc error: code = NotFound desc = {what}"
        )
    return values[number - 1]
