"""Manifests of the keeper: its namespace with a CronJob, and its rights in berths."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from berth.components import programs
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.core.owner import ENVIRONMENT_LABEL
from berth.components.gke import PoolSettings, on_pools, tolerations
from berth.components.isolation import (
    DASHBOARD,
    ENFORCE,
    PRODUCTION,
    RESTRICTED_CONTAINER,
    RESTRICTED_POD,
    admission_policy,
    binding,
    network_policy,
    peer,
    tcp,
    to_api_server,
)
from berth.components.lifecycle.settings import Lifecycle

NAMESPACE = "berth-keeper"
"""Namespace of the keeper; the berth name `keeper` is reserved."""

NAME = "keeper"
"""Name of the CronJob, the ServiceAccount and the other objects of the keeper."""

KEEPER_USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
"""Name of the keeper for the API server."""

_RBAC = "rbac.authorization.k8s.io"
_POD = {"app.kubernetes.io/name": NAME}
_FOLDER = "/opt/berth/keeper"
_RAY = {"apiGroups": ["ray.io"], "resources": ["rayclusters"]}
_SUBJECT = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": NAME}

# A run over a hundred berths takes seconds; heads that do not answer cost 15 s each, sixteen at
# once.
_DEADLINE_SECONDS = 240

_MODULES = ("decision", "keeper", "jobs", "lifetimes", "logins", "servers")
_PACKAGES = ("berth", "berth/components", "berth/components/programs")
_PROGRAM = {f"{_PACKAGES[-1]}/{name}.py": Path(programs.__file__).with_name(f"{name}.py") for name in _MODULES}
_EMPTY = "__init__.py"


def with_lifecycle(cluster: Manifest, lifecycle: Lifecycle) -> Manifest:
    """Return a RayCluster with the annotations that tell the keeper its lifecycle."""
    annotations = lifecycle.annotations()
    if not annotations:
        return cluster
    metadata = cluster["metadata"]
    return {**cluster, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}


def keeper_peers(lifecycle: Lifecycle) -> list[dict[str, Any]]:
    """Return the peers of a berth's NetworkPolicy for the keeper; none without a lifecycle."""
    return [peer(NAMESPACE, **_POD)] if lifecycle.any else []


def keeper_access(cluster: Manifest, lifecycle: Lifecycle) -> list[Manifest]:
    """Return the Role and RoleBinding that let the keeper into a berth; none without a lifecycle.

    Args:
        cluster: the RayCluster of the berth.
        lifecycle: its complete lifecycle.
    """
    if not lifecycle.any:
        return []
    name = cluster["metadata"]["name"]
    metadata = {"name": NAME, "namespace": cluster["metadata"]["namespace"], "labels": MANAGED_BY}
    rules: list[dict[str, Any]] = [
        # An admission policy narrows the patches (`_admission_policy`).
        {**_RAY, "resourceNames": [name], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]
    if cluster["spec"]["authOptions"]["mode"] == "token":
        rules.append({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get"]})
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        binding("RoleBinding", metadata, "Role", [_SUBJECT]),
    ]


def namespace(labels: dict[str, str]) -> Manifest:
    """Return the keeper's namespace."""
    metadata = {"name": NAMESPACE, "labels": {**labels, ENFORCE: "restricted"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def keeper(
    environment: str, image: str, schedule: str, pools: Mapping[str, PoolSettings], labels: dict[str, str]
) -> list[Manifest]:
    """Return the keeper's objects: program, account, rights, limits, and last the CronJob.

    Args:
        environment: environment whose berths the keeper looks after.
        image: image with Python 3.11 or newer.
        schedule: schedule of the CronJob.
        pools: node pools that the keeper may run on, by name.
        labels: labels of the objects.
    """
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": labels}
    cluster_wide = {"name": NAMESPACE, "labels": labels}
    rules = [{**_RAY, "verbs": ["list"]}, {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]
    job = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": _DEADLINE_SECONDS,
        "template": _pod(environment, image, pools),
    }
    cron_job = {
        "schedule": schedule,
        "concurrencyPolicy": "Forbid",
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {"spec": job},
    }
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": _program()},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": cluster_wide, "rules": rules},
        binding("ClusterRoleBinding", cluster_wide, "ClusterRole", [_SUBJECT]),
        *_admission_policy(labels),
        network_policy(metadata, _egress(environment)),
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": cron_job},
    ]


def _admission_policy(labels: dict[str, str]) -> list[Manifest]:
    """Return the admission policy that lets the keeper only suspend, wake and annotate.

    RBAC grants rights on whole objects, and whoever changes a RayCluster's pods gets the rights of
    those pods.
    """
    match = {
        "apiGroups": ["ray.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["rayclusters"],
    }
    unchanged = [
        "request.operation == 'UPDATE'",
        "object.spec.all(key, key == 'suspend' || (key in oldObject.spec && object.spec[key] == oldObject.spec[key]))",
        "oldObject.spec.all(key, key == 'suspend' || key in object.spec)",
        *(
            f"(has(object.metadata.{key}) ? object.metadata.{key} : {none}) =="
            f" (has(oldObject.metadata.{key}) ? oldObject.metadata.{key} : {none})"
            for key, none in (("labels", "{}"), ("finalizers", "[]"), ("ownerReferences", "[]"))
        ),
    ]
    validation = {
        "expression": " && ".join(f"({condition})" for condition in unchanged),
        "message": "the keeper may suspend, wake and annotate RayClusters, and nothing else",
    }
    policy = {
        "matchConstraints": {"resourceRules": [match]},
        "matchConditions": [{"name": NAME, "expression": f"request.userInfo.username == {json.dumps(KEEPER_USER)}"}],
        "validations": [validation],
    }
    return admission_policy(NAMESPACE, labels, policy)


def _egress(environment: str) -> dict[str, Any]:
    """Return the spec of the keeper's NetworkPolicy: only out, to heads and the API server."""
    heads = {
        "namespaceSelector": {"matchLabels": {ENVIRONMENT_LABEL: environment}},
        "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
    }
    return {
        "podSelector": {"matchLabels": _POD},
        # No ingress rule means no ingress. The API server drops empty lists, which every update
        # would then add again.
        "policyTypes": ["Ingress", "Egress"],
        "egress": [{"to": [heads], "ports": tcp(DASHBOARD)}, to_api_server()],
    }


def _pod(environment: str, image: str, pools: Mapping[str, PoolSettings]) -> dict[str, Any]:
    tolerated: list[dict[str, str]] = []
    for name in sorted(pools):
        tolerated += [toleration for toleration in tolerations(pools[name]) if toleration not in tolerated]
    container = {
        "name": NAME,
        "image": image,
        "command": ["python", "-m", "berth.components.programs.keeper"],
        "args": ["--selector", f"{ENVIRONMENT_LABEL}={environment}"],
        "workingDir": _FOLDER,
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"cpu": "500m", "memory": "256Mi"},
        },
        "securityContext": {**RESTRICTED_CONTAINER, "readOnlyRootFilesystem": True},
        "volumeMounts": [{"name": NAME, "mountPath": _FOLDER, "readOnly": True}],
    }
    return {
        "metadata": {"labels": _POD},
        "spec": {
            "serviceAccountName": NAME,
            "automountServiceAccountToken": True,
            "restartPolicy": "Never",
            # A pending keeper suspends no berth, so a full cluster would stay full.
            "priorityClassName": PRODUCTION,
            "affinity": on_pools(pools),
            **({"tolerations": tolerated} if tolerated else {}),
            "securityContext": dict(RESTRICTED_POD),
            "containers": [container],
            "volumes": [{"name": NAME, "configMap": {"name": NAME, "items": _items()}}],
        },
    }


def _key(path: str) -> str:
    """Return the ConfigMap's key of a file; a key has no `/`."""
    return path.replace("/", ".")


@cache
def _program() -> dict[str, str]:
    return {_key(path): file.read_text(encoding="utf-8") for path, file in _PROGRAM.items()} | {_EMPTY: ""}


def _items() -> list[dict[str, str]]:
    """Return the paths of the files; empty `__init__.py` files hide the image's packages."""
    return [
        *({"key": _key(path), "path": path} for path in _PROGRAM),
        *({"key": _EMPTY, "path": f"{package}/{_EMPTY}"} for package in _PACKAGES),
    ]
