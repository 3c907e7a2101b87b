"""Isolation of one berth: the objects of its namespace and the security fields of its pods."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class PodStandard:
    """Standard that the pods of a namespace are held to."""

    level: PodSecurity
    """Pod Security level, which the API server enforces."""
    rules: str = ""
    """Value of annotation `berth/pod-rules`: what policy berth-pods holds beside the level
    `privileged`; empty for nothing."""

    def __str__(self) -> str:
        if not self.rules:
            return self.level
        return f"{self.level} with most of restricted by policy berth-pods"

    @property
    def admits(self) -> str:
        """Rights of pods that a stricter standard refuses; empty for the strictest one."""
        if self.level == "baseline":
            return "root and `sudo`"
        if self.rules:
            return "folders of NCCL on the node" + (
                ", and no profiles of seccomp and AppArmor" if self.rules == "nested" else ""
            )
        return "" if self.level == "restricted" else "all that policy berth-pods does not refuse"

    def is_looser_than(self, other: "PodStandard") -> bool:
        """Return whether pods are admitted that the other standard refuses."""
        return _place(self) > _place(other)


_STANDARDS = (
    PodStandard("restricted"),
    PodStandard("privileged", "restricted"),
    PodStandard("privileged", "nested"),
    PodStandard("baseline"),
    PodStandard("privileged"),
)
"""Standards, the strictest first: the rules refuse root and capabilities; `baseline` does not."""


def _place(standard: PodStandard) -> int:
    """Return the place of a standard among all, the last one for a standard that is unknown."""
    return _STANDARDS.index(standard) if standard in _STANDARDS else len(_STANDARDS)


def isolate(inputs: IsolationInputs, manifests: Iterable[Manifest]) -> Isolation:
    """Return the isolation of a namespace; its first manifest is the RayCluster, job or service."""
    contents = list(manifests)
    settings = inputs.settings
    namespace = contents[0]["metadata"]["namespace"]
    standard = pod_standard(pods_of(contents), settings.pod_security)
    objects: list[Manifest] = []
    if settings.network_policies:
        objects += traffic.network_policies(namespace, contents, inputs)
    if settings.quotas:
        objects.append(quota.resource_quota(namespace, contents, inputs))
        objects.append(quota.limit_range(namespace, settings.ephemeral_storage or inputs.disk))
    else:
        objects += quota.without_limits(namespace, contents)
    if inputs.access.anyone:
        role = rbac.user_role(contents, standard.level)
        objects += [role, rbac.access_binding(role, inputs.access)]
    annotations = _annotations_for_policies(inputs, contents)
    if standard.rules:
        annotations[POD_RULES] = standard.rules
    return Isolation({pod_security.ENFORCE: standard.level}, annotations, objects)


def pod_standard(pods: Iterable[Object], strictest: PodSecurity) -> PodStandard:
    """Return the strictest standard, up to a level, that all pod specs of a namespace can meet."""
    specs = list(pods)
    level = pod_security.pod_security_level(specs, strictest)
    by_policy = level == "privileged" and strictest == "restricted"
    return PodStandard(level, _pod_rules(specs) if by_policy else "")


def standard_of(namespace: Mapping[str, Any]) -> PodStandard:
    """Return the standard that pods of a namespace are held to, by its labels and annotations."""
    metadata = namespace.get("metadata") or {}
    level = (metadata.get("labels") or {}).get(pod_security.ENFORCE, "privileged")
    return PodStandard(level, (metadata.get("annotations") or {}).get(POD_RULES, ""))


def _annotations_for_policies(
    inputs: IsolationInputs, contents: Sequence[Manifest]
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
    return annotations


def _auth_mode(main: Manifest) -> str:
    options = (cluster_spec(main) or {}).get("authOptions") or {}
    return options.get("mode") or "disabled"


def _pod_rules(pods: Iterable[Object]) -> str:
    """Return the rules of pods whose namespace has the level `privileged` for a few fields."""
    specs = [pod_security.without_folders(pod) for pod in pods]
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
