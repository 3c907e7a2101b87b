"""Admission policies of the API server: what no pod of a berth may ask for, whoever creates it.

Pod Security has one level for a namespace, and a berth whose pods mount NCCL's folders has the
level `privileged`. Ray's autoscaler may change that berth's RayCluster, and each job on it can read
the autoscaler's token. So the rules here depend on no level and on no user.
"""

from __future__ import annotations

import json
from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.core.owner import ENVIRONMENT_LABEL
from berth.components.fabric import NODE_FOLDERS
from berth.components.hardware.names import POOL_LABEL, VISIBLE_DEVICES

PODS = "berth-pods"
"""Name of the admission policy on pods of berths."""

POD_UPDATES = "berth-pod-updates"
"""Name of the admission policy on updates of admitted pods."""

POOLS = "berth/pools"
"""Annotation of a berth's namespace: node pools of the berth's pods, with commas between them."""

PRIORITY = "berth/priority"
"""Annotation of a berth's namespace: the only PriorityClass of its pods."""

RUNTIME_CLASS = "berth/runtime-class"
"""Annotation of a berth's namespace: the only RuntimeClass of its pods. Without it they have
none."""

IN_BERTHS = {"namespaceSelector": {"matchExpressions": [{"key": ENVIRONMENT_LABEL, "operator": "Exists"}]}}
"""Constraint of a policy that holds in the namespaces of berths."""

_FOLDERS = json.dumps(list(NODE_FOLDERS))

# Annotations by which GKE and Multus add interfaces to a pod
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods).
# berth's pods get NICs by claims.
NETWORK_ANNOTATIONS = (
    "networking.gke.io/interfaces",
    "networking.gke.io/default-interface",
    "k8s.v1.cni.cncf.io/networks",
)

DEVICE_ANNOTATIONS = (
    "nvidia.cdi.k8s.io",
    "cdi.k8s.io",
    "devices.gke.io",
    "devices.nri.io",
    "devices.noderesource.dev",
)
"""Prefixes of annotations by which plugins of containerd add devices to a pod, past the device
plugin and the quota: the NRI plugin of nvidia-container-toolkit 1.19 and newer (any namespace; also
the prefix alone as a key), Google's nri_device_injector, and the samples of
https://github.com/containerd/nri."""

_DEVICES = " || ".join(f"key == '{prefix}' || key.startsWith('{prefix}/')" for prefix in DEVICE_ANNOTATIONS)

_VARIABLES = {
    "containers": "object.spec.containers + object.spec.?initContainers.orValue([])"
    " + object.spec.?ephemeralContainers.orValue([])",
    "contexts": "variables.containers.map(c, c.?securityContext)",
    "folders": "object.spec.?volumes.orValue([]).filter(v, has(v.hostPath))",
    "annotations": "namespaceObject.metadata.?annotations.orValue({})",
    "pool": f"object.spec.?nodeSelector[?'{POOL_LABEL}'].orValue('')",
    # A pod for any node, such as KubeRay's default submitter, which has no devices.
    "anywhere": "variables.pool == '' && object.spec.?resourceClaims.orValue([]).size() == 0"
    " && object.spec.?tolerations.orValue([]).all(t, t.?key.orValue('').startsWith('node.kubernetes.io/'))"
    " && variables.containers.all(c, c.?resources.?limits.orValue({}).all(name, name in"
    " ['cpu', 'memory', 'ephemeral-storage']))",
}

# Rules of `baseline` (https://kubernetes.io/docs/concepts/security/pod-security-standards/), with
# two differences: pods may mount NCCL's folders to read them, and may run without a profile of
# seccomp or AppArmor, as nested containers do. The last two rules keep pods to the berth's rank and
# to its pools: a quota counts GPUs, not which ones.
_RULES = {
    "may not use the node's network, processes or IPC": "!object.spec.?hostNetwork.orValue(false)"
    " && !object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)",
    "may not be privileged": "variables.contexts.all(c, !c.?privileged.orValue(false))",
    "may not add capabilities": "variables.contexts.all(c, c.?capabilities.?add.orValue([]).size() == 0)",
    "may not see all of /proc": "variables.contexts.all(c, c.?procMount.orValue('Default') == 'Default')",
    "may not use ports of the node": "variables.containers.all(c, c.?ports.orValue([]).all(p,"
    " p.?hostPort.orValue(0) == 0))",
    "may not set kernel parameters": "object.spec.?securityContext.?sysctls.orValue([]).size() == 0",
    f"may mount no folder of the node but {' and '.join(NODE_FOLDERS)}": "variables.folders.all(v,"
    f" v.hostPath.path in {_FOLDERS})",
    "may mount folders of the node read-only": "variables.containers.all(c, c.?volumeMounts.orValue([]).all(m,"
    " m.?readOnly.orValue(false) || !variables.folders.exists(v, v.name == m.name)))",
    "may not join networks by annotations, where no NetworkPolicy applies": "object.metadata.?annotations.orValue({})"
    f".all(key, !(key in {json.dumps(list(NETWORK_ANNOTATIONS))}))",
    "may not ask for devices by annotations, which no quota counts": "object.metadata.?annotations.orValue({})"
    f".all(key, !({_DEVICES}))",
    # `none` would not start under NVIDIA's runtime, which takes it for the name of a device.
    f"may not set {VISIBLE_DEVICES} to anything but `void`": "variables.containers.all(c,"
    " c.?env.orValue([]).all(variable,"
    f" variable.name != '{VISIBLE_DEVICES}' || variable.?value.orValue('') == 'void'))",
    "may have only the RuntimeClass of the berth": "request.operation == 'UPDATE'"
    " || object.spec.?runtimeClassName.orValue('') in"
    f" ['', variables.annotations[?'{RUNTIME_CLASS}'].orValue('')]",
    "may have only the PriorityClass of the berth": "request.operation == 'UPDATE'"
    f" || !('{PRIORITY}' in variables.annotations)"
    f" || object.spec.?priorityClassName.orValue('') == variables.annotations['{PRIORITY}']",
    "may run only on the pools of the berth": f"request.operation == 'UPDATE' || !('{POOLS}' in variables.annotations)"
    " || (object.spec.?nodeName.orValue('') == '' && (variables.anywhere"
    f" || variables.pool in variables.annotations['{POOLS}'].split(',')))",
}


def pod_policy() -> list[Manifest]:
    """Return the admission policy on pods in namespaces of berths, with its binding.

    The rules hold for pods of every environment on the cluster, and for every user.
    """
    # Updates of pods have a policy of their own: a pod that an older policy admitted must stay
    # deletable, and losing its finalizers is an update.
    requests = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}
        for operation, resource in (("CREATE", "pods"), ("UPDATE", "pods/ephemeralcontainers"))
    ]
    spec = {
        "matchConstraints": {**IN_BERTHS, "resourceRules": requests},
        "variables": [{"name": name, "expression": expression} for name, expression in _VARIABLES.items()],
        "validations": [
            {"expression": expression, "message": f"pods of a berth {rule}"} for rule, expression in _RULES.items()
        ],
    }
    return admission_policy(PODS, MANAGED_BY, spec)


# Requests of a namespace's own service accounts, and of users who may not change the namespace:
# not those of kubelets, controllers and operators, who finish and clean up pods.
_BY_TENANTS = {
    "by-a-tenant": "('system:serviceaccounts:' + request.namespace) in request.userInfo.groups"
    " || !request.userInfo.username.startsWith('system:')",
    "not-the-stack": "!authorizer.group('').resource('namespaces').namespace(request.namespace)"
    ".name(request.namespace).check('patch').allowed()",
}


def pod_update_policy() -> list[Manifest]:
    """Return the admission policy on updates of pods in namespaces of berths, with its binding.

    KubeRay gives the service account of Ray's autoscaler the right to patch pods (kuberay v1.6.2,
    ray-operator/controllers/ray/common/rbac.go), and every job on the head can read its token.
    With it a worker could leave its RayCluster and outlive it, or join a network.
    """
    request = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    parts = {
        **{f"metadata.{field}": f"metadata.?{field}" for field in _METADATA},
        "spec": "spec",
    }
    spec = {
        "matchConstraints": {**IN_BERTHS, "resourceRules": [request]},
        "matchConditions": [{"name": name, "expression": expression} for name, expression in _BY_TENANTS.items()],
        "validations": [
            {
                "expression": f"object.{path} == oldObject.{path}",
                "message": f"{name} of a berth's pod stays as it was admitted; change the RayCluster instead",
            }
            for name, path in parts.items()
        ],
    }
    return admission_policy(POD_UPDATES, MANAGED_BY, spec)


_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")


def admission_policy(name: str, labels: dict[str, str], spec: dict[str, Any]) -> list[Manifest]:
    """Return a ValidatingAdmissionPolicy that fails closed, and the binding that makes it refuse.

    Args:
        name: name of both objects.
        labels: labels of both objects.
        spec: constraints and validations of the policy.
    """
    specs = {
        "": {"failurePolicy": "Fail", **spec},
        "Binding": {"policyName": name, "validationActions": ["Deny"]},
    }
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"ValidatingAdmissionPolicy{suffix}",
            "metadata": {"name": name, "labels": labels},
            "spec": part,
        }
        for suffix, part in specs.items()
    ]
