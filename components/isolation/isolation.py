"""Isolation of one berth: the objects of its namespace and the security fields of its pods."""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from berth.components.core.manifest import Manifest
from berth.components.isolation import pod_security, quota, rbac, traffic
from berth.components.isolation.admission import (
    AUTOSCALER,
    POD_RULES,
    POOLS,
    PRIORITY,
    RAY_AUTH,
    RUNTIME_CLASS,
)
from berth.components.isolation.inputs import IsolationInputs
from berth.components.isolation.pod_parts import PARTS, pod_parts
from berth.components.isolation.pod_templates import (
    Object,
    autoscales,
    cluster_spec,
    pod_templates,
    pods_of,
    pools_of,
)
from berth.components.isolation.settings import PodSecurity


@dataclass(frozen=True)
class Isolation:
    """Isolation of a namespace."""

    namespace_labels: dict[str, str]
    """Labels of the namespace that set the Pod Security level, which the API server enforces."""
    namespace_annotations: dict[str, str]
    """Annotations of the namespace: facts for the admission policies."""
    objects: list[Manifest]
    """Objects of the namespace that must exist before the first pod."""


def isolate(inputs: IsolationInputs, manifests: Iterable[Manifest]) -> Isolation:
    """Return the isolation of a namespace; its first manifest is the RayCluster, job or service."""
    contents = list(manifests)
    settings = inputs.settings
    namespace = contents[0]["metadata"]["namespace"]
    level = pod_security.pod_security_level(contents, settings.pod_security)
    objects: list[Manifest] = []
    if settings.network_policies:
        objects += traffic.network_policies(namespace, contents, inputs)
    if settings.quotas:
        objects.append(quota.resource_quota(namespace, contents, inputs))
        objects.append(quota.limit_range(namespace, settings.ephemeral_storage or inputs.disk))
    else:
        objects += quota.without_limits(namespace, contents)
    if inputs.access.anyone:
        role = rbac.user_role(contents, level)
        objects += [role, rbac.access_binding(role, inputs.access)]
    annotations = _annotations_for_policies(inputs, contents, level)
    return Isolation({pod_security.ENFORCE: level}, annotations, objects)


def _annotations_for_policies(
    inputs: IsolationInputs, contents: Sequence[Manifest], level: PodSecurity
) -> dict[str, str]:
    """Return the annotations of the namespace by which the admission policies judge."""
    settings = inputs.settings
    annotations = {
        POOLS: ",".join(pools_of(contents)),
        PARTS: "\n".join(pod_parts(contents)),
        RAY_AUTH: _auth_mode(contents[0]),
    }
    if settings.quotas and inputs.priority:
        annotations[PRIORITY] = inputs.priority
    if any(autoscales(manifest) for manifest in contents):
        annotations[AUTOSCALER] = "true"
    runtime_classes = [pod.get("runtimeClassName") for pod in pods_of(contents)]
    runtime_class = next(filter(None, runtime_classes), None)
    if runtime_class:
        annotations[RUNTIME_CLASS] = runtime_class
    if level == "privileged" and settings.pod_security == "restricted":
        rules = _pod_rules(contents)
        if rules:
            annotations[POD_RULES] = rules
    return annotations


def _auth_mode(main: Manifest) -> str:
    options = (cluster_spec(main) or {}).get("authOptions") or {}
    return options.get("mode") or "disabled"


def _pod_rules(contents: Iterable[Manifest]) -> str:
    """Return the rules of pods whose namespace has the level `privileged` for a few fields."""
    specs = [pod_security.without_folders(pod) for pod in pods_of(contents)]
    if _all_restricted(specs):
        return "restricted"
    if _all_restricted(pod_security.without_profiles(spec) for spec in specs):
        return "nested"
    return ""


def _all_restricted(specs: Iterable[Object]) -> bool:
    return all(pod_security.needed_by(spec) == "restricted" for spec in specs)


def harden(manifest: Manifest, strictest: PodSecurity, priority: str | None) -> Manifest:
    """Return a manifest whose pods meet a Pod Security level, if they can, and have a priority.

    A pod that mounts folders of its node meets the rest of the level, which the API server does not
    enforce then.
    """
    hardened = copy.deepcopy(manifest)
    for kind, template, _ in pod_templates(hardened):
        spec = template["spec"]
        if priority:
            spec.setdefault("priorityClassName", priority)
        by_autoscaler = kind == "head" and autoscales(hardened)
        if "serviceAccountName" not in spec and not by_autoscaler:
            # Only Ray's autoscaler talks to the API server; KubeRay makes its service account.
            spec.setdefault("automountServiceAccountToken", False)
        if strictest == "restricted" and _all_restricted([pod_security.without_folders(spec)]):
            template["spec"] = pod_security.with_restricted_contexts(spec)
    if strictest == "restricted" and autoscales(hardened):
        # KubeRay takes the security context of the autoscaler's container from the RayCluster.
        options = (cluster_spec(hardened) or {}).setdefault("autoscalerOptions", {})
        options.setdefault("securityContext", copy.deepcopy(pod_security.RESTRICTED_CONTAINER))
    return hardened
