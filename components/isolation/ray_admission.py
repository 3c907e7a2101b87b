"""Admission policy on Ray's kinds: parts of them that only the stack of a berth may write.

Engineers create RayJobs and RayServices and change their RayCluster, and each job on a head can use
the token of Ray's autoscaler. The policy limits all of them. It does not apply to

- users who may change the berth's namespace, as its stack does: the namespace carries the facts
  that the policy judges by;
- users who may write the status of RayClusters, as the KubeRay operator does: it creates
  RayClusters from RayJobs and RayServices that the policy has admitted.

The API server answers both questions for the authenticated user of a request. The name of a field
manager would be no proof: each client chooses its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.core.owner import STACK_LABEL
from berth.components.hardware.names import POOL_LABEL, VISIBLE_DEVICES
from berth.components.isolation.admission import (
    DEVICE_ANNOTATIONS,
    IN_BERTHS,
    POOLS,
    RUNTIME_CLASS,
    admission_policy,
)
from berth.components.isolation.pod_security import RESTRICTED_VOLUMES

RAY = "berth-ray"
"""Name of the admission policy on Ray's kinds."""

RAY_VERSIONS = "berth-ray-versions"
"""Name of the admission policy on versions of Ray's API."""

AUTOSCALER = "berth/autoscaler"
"""Annotation of a berth's namespace, `true`: Ray's autoscaler runs beside the berth's head."""

LONGEST_GRACE = 600
"""Seconds that a pod of a berth may take to end: beyond them it would outlive the berth's hours."""

RAY_AUTH = "berth/ray-auth"
"""Annotation of a berth's namespace: mode of authentication of the RayClusters."""

KINDS = ("rayclusters", "rayjobs", "rayservices", "raycronjobs")
"""Resources from which KubeRay makes pods (kuberay v1.6.2, ray-operator/apis/ray/v1)."""

_NAMESPACE = "authorizer.group('').resource('namespaces').namespace(request.namespace).name(request.namespace)"
_STATUS = "authorizer.group('ray.io').resource('rayclusters').subresource('status').namespace(request.namespace)"
_CONDITIONS = {
    "not-the-stack": f"!{_NAMESPACE}.check('patch').allowed()",
    "not-kuberay": f"!{_STATUS}.check('update').allowed()",
}


def _variables(prefix: str, thing: str) -> dict[str, str]:
    """Return the variables of a request's object, or of the object before the request."""
    spec, cluster = f"variables.{prefix}Spec", f"variables.{prefix}Cluster"
    head = f"{cluster}.?headGroupSpec"
    exposed = (
        f"{head}.?headService.orValue({{}})",
        f"{spec}.?serveService.orValue({{}})",
    )
    return {
        f"{prefix}Spec": f"{thing} == null ? dyn({{}}) : request.resource.resource == 'raycronjobs' ?"
        f" {thing}.spec.jobTemplate : {thing}.spec",
        f"{prefix}Cluster": f"request.resource.resource == 'rayclusters' ? {spec} :"
        f" {spec}.?rayClusterSpec.orValue({spec}.?rayClusterConfig.orValue(dyn({{}})))",
        f"{prefix}Templates": f"(has({cluster}.headGroupSpec) ? [{cluster}.headGroupSpec.template] : [])"
        f" + {cluster}.?workerGroupSpecs.orValue([]).map(group, group.template)",
        # KubeRay puts a group's labels over those of its template (kuberay v1.6.2,
        # ray-operator/controllers/ray/common/pod.go, mergeLabels).
        f"{prefix}GroupLabels": f"[dyn({head}.?labels.orValue({{}}))]"
        f" + {cluster}.?workerGroupSpecs.orValue([]).map(group, dyn(group.?labels.orValue({{}})))",
        f"{prefix}Submitters": f"has({spec}.submitterPodTemplate) ? [{spec}.submitterPodTemplate] : []",
        f"{prefix}Services": f"[{', '.join(f'dyn({service})' for service in exposed)}]",
        f"{prefix}Type": f"{head}.?serviceType.orValue('')",
        f"{prefix}Notes": f"{cluster}.?headServiceAnnotations.orValue({{}})",
        f"{prefix}Ways": f"[dyn({head}.?enableIngress.orValue(false)),"
        f" dyn({spec}.?upgradeStrategy.?clusterUpgradeOptions.orValue({{}}))]",
        f"{prefix}Managers": f"[{spec}.?managedBy.orValue(''), {cluster}.?managedBy.orValue('')]",
        f"{prefix}Scaled": f"dyn({cluster}.?enableInTreeAutoscaling.orValue(false))",
        f"{prefix}Holds": f"{thing} == null ? [dyn([]), dyn([])] : [dyn({thing}.metadata.?finalizers.orValue([])),"
        f" dyn({thing}.metadata.?ownerReferences.orValue([]))]",
        f"{prefix}Auth": f"{cluster}.?authOptions.orValue({{}})",
        f"{prefix}Labels": f"{thing} == null ? {{}} : {thing}.metadata.?labels.orValue({{}})",
        f"{prefix}Annotations": f"{thing} == null ? {{}} : {thing}.metadata.?annotations.orValue({{}})",
    }


_OF_THE_NAMESPACE = {
    "labels": "namespaceObject.metadata.?labels.orValue({})",
    "annotations": "namespaceObject.metadata.?annotations.orValue({})",
    "pools": f"variables.annotations[?'{POOLS}'].orValue('').split(',')",
    "mode": f"variables.annotations[?'{RAY_AUTH}'].orValue('token')",
}
# A template of the stack may stay as it is, and a further group may have the same one.
_CHANGED = {
    "templates": "variables.newTemplates.filter(template, !(template in variables.oldTemplates))",
    "submitters": "variables.newSubmitters.filter(template, !(template in variables.oldSubmitters))",
    "all": "variables.templates + variables.submitters",
    "containers": "variables.all.map(template, template.?spec.?containers.orValue([])"
    " + template.?spec.?initContainers.orValue([]))",
    "notes": "variables.all.map(template, template.?metadata.?annotations.orValue({}))",
}


def _unchanged(*names: str) -> str:
    return "(" + " && ".join(f"variables.new{name} == variables.old{name}" for name in names) + ")"


def _marks(kind: str) -> str:
    """Return the rule on labels or annotations: berth's stay, or are the namespace's."""
    new, old, of_namespace = f"variables.new{kind}", f"variables.old{kind}", f"variables.{kind.lower()}"
    same = " || ".join(f"(key in {where} && {new}[key] == {where}[key])" for where in (old, of_namespace))
    own_stack = f"(key == '{STACK_LABEL}' && request.operation == 'CREATE')"
    return (
        f"{new}.all(key, !key.startsWith('berth/') || {own_stack} || {same})"
        f" && {old}.all(key, !key.startsWith('berth/') || key in {new})"
    )


_DEVICES = " || ".join(f"key == '{prefix}' || key.startsWith('{prefix}/')" for prefix in DEVICE_ANNOTATIONS)
_POOL = f"template.?spec.?nodeSelector[?'{POOL_LABEL}']"
_VOLUMES = json.dumps(["name", *sorted(RESTRICTED_VOLUMES)])
_RULES = {
    # The scheduler obeys the node selector whatever the affinity and the tolerations are.
    "use other pools than those of its settings": f"!('{POOLS}' in variables.annotations)"
    f" || (variables.templates.all(template, {_POOL}.orValue('') in variables.pools)"
    f" && variables.submitters.all(template, {_POOL}.orValue(variables.pools[0]) in variables.pools)"
    " && variables.all.all(template, template.?spec.?nodeName.orValue('') == ''))",
    "change Ray's tokens": f"({_unchanged('Auth')} && request.operation == 'UPDATE'"
    " || variables.newTemplates.size() == 0"
    " || (variables.newAuth.?mode.orValue('') == variables.mode && !has(variables.newAuth.secretName)"
    " && !variables.newAuth.?enableK8sTokenAuth.orValue(false)))"
    " && variables.containers.all(some, some.all(container, container.?env.orValue([]).all(variable,"
    " variable.name != 'RAY_AUTH_MODE' || variable.?value.orValue('') == variables.mode)))",
    "open Services to the outside": f"{_unchanged('Services', 'Type', 'Notes')}"
    " || (variables.newType in ['', 'ClusterIP'] && variables.newNotes.size() == 0"
    " && variables.newServices.all(service, service.?spec.?type.orValue('ClusterIP') == 'ClusterIP'"
    " && service.?spec.?externalIPs.orValue([]).size() == 0"
    " && service.?metadata.?annotations.orValue({}).size() == 0))",
    "open Ingresses and Gateways": f"{_unchanged('Ways')}"
    " || (variables.newWays[0] == false && variables.newWays[1].size() == 0)",
    "mount folders of nodes, or file servers": "variables.all.all(template,"
    f" template.?spec.?volumes.orValue([]).all(volume, volume.all(key, key in {_VOLUMES})))",
    "take GPUs past the quota, by a RuntimeClass, a variable or an annotation": "variables.all.all(template,"
    " template.?spec.?runtimeClassName.orValue('') in"
    f" ['', variables.annotations[?'{RUNTIME_CLASS}'].orValue('')])"
    " && variables.containers.all(some, some.all(container, container.?env.orValue([]).all(variable,"
    f" variable.name != '{VISIBLE_DEVICES}' || variable.?value.orValue('') == 'void')))"
    f" && variables.notes.all(some, some.all(key, !({_DEVICES})))",
    "hand Ray's objects to another controller": _unchanged("Managers")
    + " || (request.operation == 'CREATE' && variables.newManagers.all(manager, manager in"
    " ['', 'ray.io/kuberay-operator']))",
    # KubeRay makes a service account for the autoscaler that may patch pods.
    "turn Ray's autoscaler on": f"{_unchanged('Scaled')} && request.operation == 'UPDATE'"
    f" || variables.newScaled == false || variables.annotations[?'{AUTOSCALER}'].orValue('') == 'true'",
    "choose the service account of pods": "variables.all.all(template,"
    " template.?spec.?serviceAccountName.orValue(template.?spec.?serviceAccount.orValue('')) in ['', 'default'])",
    "keep pods from ending, by finalizers or a long grace": "variables.all.all(template,"
    f" template.?spec.?terminationGracePeriodSeconds.orValue(0) <= {LONGEST_GRACE}"
    " && template.?metadata.?finalizers.orValue([]).size() == 0)",
    "change finalizers and owner references": f"{_unchanged('Holds')} && request.operation == 'UPDATE'"
    " || request.operation == 'CREATE' && variables.newHolds[0].size() == 0",
    "give pods labels of another owner": "variables.all.all(template, template.?metadata.?labels.orValue({}).all(key,"
    f" !key.startsWith('berth/') || key == '{STACK_LABEL}' || (key in variables.labels"
    " && variables.labels[key] == template.metadata.labels[key])))"
    " && variables.newGroupLabels.all(labels, labels.all(key, !key.startsWith('berth/')))",
    "change berth's labels": _marks("Labels"),
    "change berth's annotations": _marks("Annotations"),
}


def ray_policy(trusted: Iterable[str] = ()) -> list[Manifest]:
    """Return the admission policy on Ray's kinds in namespaces of berths, with its binding.

    Args:
        trusted: further users to whom the policy does not apply, such as the keeper, whose rights
            another policy limits.
    """
    others = {"not-trusted": f"!(request.userInfo.username in {json.dumps(sorted(trusted))})"}
    variables = {
        **_variables("new", "object"),
        **_variables("old", "oldObject"),
        **_OF_THE_NAMESPACE,
        **_CHANGED,
    }
    resources = {"apiGroups": ["ray.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"]}
    spec = {
        "matchConstraints": {**IN_BERTHS, "resourceRules": [{**resources, "resources": list(KINDS)}]},
        "matchConditions": [
            {"name": name, "expression": expression} for name, expression in (others | _CONDITIONS).items()
        ],
        "variables": [{"name": name, "expression": expression} for name, expression in variables.items()],
        "validations": [
            {"expression": expression, "message": f"only the stack of a berth may {what}"}
            for what, expression in _RULES.items()
        ],
    }
    return admission_policy(RAY, MANAGED_BY, spec)


def ray_version_policy() -> list[Manifest]:
    """Return the admission policy that refuses Ray's older API version, with its binding.

    KubeRay serves `v1alpha1` too, and the API server drops there what that version lacks:
    `authOptions` and eleven more fields of a RayCluster (CRDs of kuberay v1.6.2). The policy holds
    for everybody.
    """
    resources = {"apiGroups": ["ray.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"]}
    spec = {
        "matchConstraints": {**IN_BERTHS, "resourceRules": [{**resources, "resources": list(KINDS)}]},
        "validations": [
            {
                # `object` is converted to the version of the rule, `requestKind` is as it was sent.
                "expression": "request.requestKind.version == 'v1'",
                "message": "write ray.io/v1: ray.io/v1alpha1 would drop fields such as authOptions",
            }
        ],
    }
    return admission_policy(RAY_VERSIONS, MANAGED_BY, spec)
