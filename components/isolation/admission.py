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
from berth.components.hardware.names import POOL_LABEL

PODS = "berth-pods"
"""Name of the admission policy on pods of berths."""

POOLS = "berth/pools"
"""Annotation of a berth's namespace: node pools of the berth's pods, with commas between them."""

PRIORITY = "berth/priority"
"""Annotation of a berth's namespace: the only PriorityClass of its pods."""

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
    # An update of a pod itself cannot change what the rules are about.
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
