"""Fields that Kubernetes lets nobody change: a plan that touches one makes a new object.

The table agrees with the plans of the real plugin, which is why a few fields are here that Kubernetes would let change
(a ConfigMap's data: pods that read it restart under a new name), and one that it would refuse is not (a
ResourceClaimTemplate's spec: planned as an update, refused by the server's dry run).

Sources, in the Kubernetes repository: `ValidateServiceUpdate`, `ValidatePersistentVolumeClaimUpdate`,
`ValidatePodUpdate`, `ValidatePersistentVolumeUpdate` (pkg/apis/core/validation), `ValidateDeploymentUpdate` and its
neighbours (pkg/apis/apps/validation), `ValidateJobUpdate` (pkg/apis/batch/validation), `ValidateRoleBindingUpdate`
(pkg/apis/rbac/validation), `ValidateStorageClassUpdate` (pkg/apis/storage/validation).

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py (4-preview-update.json)
Answers to (read): kubernetes v1.36.3, the validations that are named above:
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Pattern = tuple[str, ...]

_IDENTITY: tuple[Pattern, ...] = (("metadata", "name"), ("metadata", "namespace"))

_ANY = "*"


def _fields(prefix: str, names: str) -> tuple[Pattern, ...]:
    return tuple((*prefix.split("."), name) for name in names.split())


_SELECTOR: tuple[Pattern, ...] = (("spec", "selector"),)

_POD_SPEC = _fields(
    "spec",
    "affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostNetwork hostPID"
    " hostname imagePullSecrets nodeName nodeSelector overhead preemptionPolicy priority priorityClassName readinessGates"
    " restartPolicy runtimeClassName schedulerName securityContext serviceAccount serviceAccountName"
    " shareProcessNamespace subdomain terminationGracePeriodSeconds volumes",
)

_CONTAINER = (
    "args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources securityContext stdin"
    " stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)

_VOLUME_SOURCES = _fields(
    "spec",
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk glusterfs hostPath"
    " iscsi local nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume",
)

_TABLE: dict[tuple[str, str], tuple[Pattern, ...]] = {
    ("", "PersistentVolume"): _VOLUME_SOURCES,
    ("", "PersistentVolumeClaim"): _fields("spec", "accessModes selector storageClassName volumeName"),
    ("", "Pod"): (
        *_POD_SPEC,
        *_fields(f"spec.containers.{_ANY}", _CONTAINER),
        *_fields(f"spec.initContainers.{_ANY}", _CONTAINER),
    ),
    ("", "ResourceQuota"): (("spec", "scopes"),),
    ("", "Service"): (("spec", "clusterIP"),),
    ("apps", "DaemonSet"): _SELECTOR,
    ("apps", "Deployment"): _SELECTOR,
    ("apps", "StatefulSet"): _fields(
        "spec", "podManagementPolicy revisionHistoryLimit selector serviceName volumeClaimTemplates"
    ),
    ("batch", "Job"): _fields("spec", "completions parallelism selector template"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (("roleRef",),),
    ("rbac.authorization.k8s.io", "RoleBinding"): (("roleRef",),),
    ("storage.k8s.io", "StorageClass"): (("parameters",), ("provisioner",)),
}


def immutable_fields(
    item: Mapping[str, Any],
    *,
    is_patch: bool = False,
    configmaps_mutable: bool = False,
    secrets_mutable: bool = False,
) -> tuple[Pattern, ...]:
    """The fields of an object whose change means a new object.

    Args:
        item: the wanted object: its group, kind, and whether it calls itself `immutable`.
        is_patch: a Patch resource: only which object it patches is fixed.
        configmaps_mutable: the provider's `enableConfigMapMutable`.
        secrets_mutable: the provider's `enableSecretMutable`.

    Returns:
        Paths as tuples of keys, `*` for any index of a list.
    """
    if is_patch:
        return _IDENTITY
    group = str(item.get("apiVersion", "")).rpartition("/")[0]
    kind = str(item.get("kind", ""))
    sealed = item.get("immutable") is True
    if (group, kind) == ("", "Secret"):
        return (*_IDENTITY, ("type",), *((("stringData",), ("data",)) if sealed or not secrets_mutable else ()))
    if (group, kind) == ("", "ConfigMap") and (sealed or not configmaps_mutable):
        return (*_IDENTITY, ("binaryData",), ("data",))
    return (*_IDENTITY, *_TABLE.get((group, kind), ()))


def needs_replacement(path: tuple[str | int, ...], value: Any, patterns: tuple[Pattern, ...]) -> bool:
    """Whether a change at `path` to `value` touches one of the patterns: at it, under it, or around it."""
    return any(_touches(path, value, pattern) for pattern in patterns)


def _touches(path: tuple[str | int, ...], value: Any, pattern: Pattern) -> bool:
    for index, part in enumerate(pattern):
        if index == len(path):
            return _holds(value, pattern[index:])
        if part != path[index] and not (part == _ANY and isinstance(path[index], int)):
            return False
    return True


def _holds(value: Any, rest: Pattern) -> bool:
    if not rest:
        return True
    if rest[0] == _ANY:
        return isinstance(value, list) and any(_holds(item, rest[1:]) for item in value)
    return isinstance(value, dict) and rest[0] in value and _holds(value[rest[0]], rest[1:])
