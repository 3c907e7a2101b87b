"""What the keeper needs in a cluster: its own namespace with a CronJob, and in each berth that has a lifecycle what lets it in. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from berth.components import programs
from berth.components.core.manifest import Manifest
from berth.components.gke import on_pools, tolerations
from berth.components.isolation.network_policy import DASHBOARD
from berth.components.isolation.pod_security import ENFORCE, RESTRICTED_CONTAINER, RESTRICTED_POD
from berth.components.isolation.settings import PRODUCTION
from berth.components.ray.settings import RayClusterSettings
from berth.components.sharing import Pools

NAMESPACE = "berth-keeper"
"""Where the keeper runs; no berth can be named `keeper`."""

NAME = "keeper"
"""Name of its CronJob, its ServiceAccount and all else that is its."""

_RBAC = "rbac.authorization.k8s.io"
_POD = {"app.kubernetes.io/name": NAME}
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_FOLDER = "/opt/berth/keeper"
_RAY = {"apiGroups": ["ray.io"], "resources": ["rayclusters"]}

# A look at a hundred berths takes seconds; heads that do not answer cost 15 s each, sixteen at once.
_DEADLINE_SECONDS = 240

_MODULES = ("decision", "keeper", "jobs", "lifetimes")
_PACKAGES = ("berth", "berth/components", "berth/components/programs")
_PROGRAM = {f"{_PACKAGES[-1]}/{name}.py": Path(programs.__file__).with_name(f"{name}.py") for name in _MODULES}


def kept(cluster: Manifest, settings: RayClusterSettings) -> Manifest:
    """A RayCluster that tells the keeper its lifecycle.

    Args:
        cluster: the RayCluster.
        settings: its complete settings.
    """
    annotations = settings.lifecycle.annotations()
    if not annotations:
        return cluster
    metadata = cluster["metadata"]
    return {**cluster, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}


def in_berth(
    settings: RayClusterSettings, namespace: str, labels: dict[str, str], *, network_policies: bool
) -> list[Manifest]:
    """What is in a berth's namespace so that the keeper can do its work: nothing where the berth has no lifecycle.

    Args:
        settings: the berth's complete settings.
        namespace: the berth's.
        labels: labels of the objects.
        network_policies: whom pods are reached by is governed.
    """
    if not settings.lifecycle.any:
        return []
    metadata = {"name": NAME, "namespace": namespace, "labels": labels}
    its_own = [settings.name]
    rules: list[dict[str, Any]] = [
        # Of a RayCluster it may patch no more than `limits` leaves it.
        {**_RAY, "resourceNames": its_own, "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]
    if settings.auth == "token":
        rules.append({"apiGroups": [""], "resources": ["secrets"], "resourceNames": its_own, "verbs": ["get"]})
    made: list[Manifest] = [
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": NAME},
            "subjects": [_SUBJECT],
        },
    ]
    if network_policies:
        peer = {
            "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: NAMESPACE}},
            "podSelector": {"matchLabels": _POD},
        }
        spec = {
            "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [peer], "ports": [{"protocol": "TCP", "port": DASHBOARD}]}],
        }
        made.append(_policy(metadata, spec))
    return made


_SUBJECT = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": NAME}


def namespace(labels: dict[str, str]) -> Manifest:
    """The keeper's namespace.

    Args:
        labels: labels of the object.
    """
    metadata = {"name": NAMESPACE, "labels": {**labels, ENFORCE: "restricted"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def keeper(
    environment: str, image: str, schedule: str, heads: Iterable[str], pools: Pools, labels: dict[str, str]
) -> list[Manifest]:
    """The keeper: its program, its account and rights, what limits both, and the CronJob, in this order.

    Args:
        environment: whose berths it keeps.
        image: with Python 3.11 or newer.
        schedule: how often it looks, as a CronJob writes it.
        heads: names of the pools that it may run on: those of heads.
        pools: all pools by name.
        labels: labels of the objects.
    """
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": labels}
    of_cluster = {"name": NAMESPACE, "labels": labels}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": _program()},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": of_cluster,
            "rules": [{**_RAY, "verbs": ["list"]}],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": of_cluster,
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAMESPACE},
            "subjects": [_SUBJECT],
        },
        *limits(labels),
        _policy(metadata, _reaches(environment)),
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": metadata,
            "spec": {
                "schedule": schedule,
                "concurrencyPolicy": "Forbid",
                "successfulJobsHistoryLimit": 1,
                "failedJobsHistoryLimit": 3,
                "jobTemplate": {
                    "spec": {
                        "backoffLimit": 0,
                        "activeDeadlineSeconds": _DEADLINE_SECONDS,
                        "template": _pod(environment, image, heads, pools),
                    }
                },
            },
        },
    ]


def limits(labels: dict[str, str]) -> list[Manifest]:
    """What the API server refuses the keeper though it may patch RayClusters: all but to suspend and wake them, and to annotate.

    Rights are for whole objects; whoever could change a RayCluster's pods would have all that they have.

    Args:
        labels: labels of the objects.
    """
    group = "admissionregistration.k8s.io"
    match = {
        "apiGroups": ["ray.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["rayclusters"],
    }
    account = f"system:serviceaccount:{NAMESPACE}:{NAME}"
    untouched = [
        "request.operation == 'UPDATE'",
        "object.spec.all(key, key == 'suspend' || (key in oldObject.spec && object.spec[key] == oldObject.spec[key]))",
        "oldObject.spec.all(key, key == 'suspend' || key in object.spec)",
        *(
            f"(has(object.metadata.{key}) ? object.metadata.{key} : {none}) =="
            f" (has(oldObject.metadata.{key}) ? oldObject.metadata.{key} : {none})"
            for key, none in (("labels", "{}"), ("finalizers", "[]"), ("ownerReferences", "[]"))
        ),
    ]
    metadata = {"name": NAMESPACE, "labels": labels}
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [match]},
                "matchConditions": [
                    {"name": NAME, "expression": f"request.userInfo.username == {json.dumps(account)}"}
                ],
                "validations": [
                    {
                        "expression": " && ".join(f"({each})" for each in untouched),
                        "message": "the keeper may suspend, wake and annotate RayClusters, and nothing else",
                    }
                ],
            },
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": NAMESPACE, "validationActions": ["Deny"]},
        },
    ]


def _policy(metadata: dict[str, Any], spec: dict[str, Any]) -> Manifest:
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _reaches(environment: str) -> dict[str, Any]:
    """The API server, whose address no selector could name, and heads; nobody reaches the keeper."""
    heads = {
        "namespaceSelector": {"matchLabels": {"berth/environment": environment}},
        "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
    }
    return {
        "podSelector": {"matchLabels": _POD},
        # No rule for what comes in lets nothing in. The API server keeps no empty lists, which would be found to differ for ever.
        "policyTypes": ["Ingress", "Egress"],
        "egress": [
            {"to": [heads], "ports": [{"protocol": "TCP", "port": DASHBOARD}]},
            {
                "to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}}],
                "ports": [{"protocol": "TCP", "port": port} for port in (443, 6443)],
            },
        ],
    }


def _pod(environment: str, image: str, heads: Iterable[str], pools: Pools) -> dict[str, Any]:
    names = sorted(heads)
    tolerated = [each for name in names for each in tolerations(pools[name].settings)]
    unlike = [each for index, each in enumerate(tolerated) if each not in tolerated[:index]]
    return {
        "metadata": {"labels": _POD},
        "spec": {
            "serviceAccountName": NAME,
            "automountServiceAccountToken": True,
            "restartPolicy": "Never",
            # Where it finds no room it would suspend nobody, and there would never be any.
            "priorityClassName": PRODUCTION,
            "affinity": on_pools(names),
            **({"tolerations": unlike} if unlike else {}),
            "securityContext": dict(RESTRICTED_POD),
            "containers": [
                {
                    "name": NAME,
                    "image": image,
                    "command": ["python", "-m", "berth.components.programs.keeper"],
                    "args": ["--selector", f"berth/environment={environment}"],
                    "workingDir": _FOLDER,
                    "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
                    "resources": {
                        "requests": {"cpu": "50m", "memory": "128Mi"},
                        "limits": {"cpu": "500m", "memory": "256Mi"},
                    },
                    "securityContext": {**RESTRICTED_CONTAINER, "readOnlyRootFilesystem": True},
                    "volumeMounts": [{"name": NAME, "mountPath": _FOLDER, "readOnly": True}],
                }
            ],
            "volumes": [{"name": NAME, "configMap": {"name": NAME, "items": _items()}}],
        },
    }


@cache
def _program() -> dict[str, str]:
    """The files by their keys: a key has no `/`."""
    return {path.replace("/", "."): file.read_text(encoding="utf-8") for path, file in _PROGRAM.items()} | {_EMPTY: ""}


_EMPTY = "__init__.py"


def _items() -> list[dict[str, str]]:
    """Where the files are, as they import each other; the packages' own files are empty, and hide any others of that name."""
    return [
        *({"key": path.replace("/", "."), "path": path} for path in _PROGRAM),
        *({"key": _EMPTY, "path": f"{package}/{_EMPTY}"} for package in _PACKAGES),
    ]
