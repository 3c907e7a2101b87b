"""Isolation of one berth: the objects of its namespace and the security fields of its pods."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.isolation import pod_security, quota, rbac, traffic
from berth.components.isolation.admission import POOLS, PRIORITY, RUNTIME_CLASS
from berth.components.isolation.pod_templates import (
    autoscales,
    cluster_spec,
    pod_templates,
    pools_of,
    runtime_classes_of,
    secrets_of,
)
from berth.components.isolation.ray_admission import AUTOSCALER, RAY_AUTH
from berth.components.isolation.settings import Access, IsolationSettings, PodSecurity
from berth.components.operators import KubeRaySettings


@dataclass(frozen=True)
class IsolationInputs:
    """Inputs of a namespace's isolation.

    Attributes:
        settings: what the environment loosens for all of its berths.
        kuberay: source and namespace of the KubeRay operator.
        access: people and service accounts that use the berth.
        priority: PriorityClass of the pods; None for no limit on classes.
        gpu_resources: resource names of GPUs and shares; the quota is 0 for those that no pod
            requests.
        clients: namespaces whose pods may send requests to Ray Serve.
        callers: peers of NetworkPolicies, beside the KubeRay operator, that may call the dashboard.
    """

    settings: IsolationSettings = field(default_factory=IsolationSettings)
    kuberay: KubeRaySettings = field(default_factory=KubeRaySettings)
    access: Access = field(default_factory=Access)
    priority: str | None = None
    gpu_resources: Collection[str] = ()
    clients: Collection[str] = ()
    callers: Collection[dict[str, Any]] = ()


@dataclass(frozen=True)
class Isolation:
    """Isolation of a namespace.

    Attributes:
        level: Pod Security level that the API server enforces in the namespace.
        namespace_labels: labels of the namespace that set the level.
        namespace_annotations: annotations of the namespace: facts for the admission policies.
        objects: objects of the namespace that must exist before the first pod.
    """

    level: PodSecurity
    namespace_labels: dict[str, str]
    namespace_annotations: dict[str, str]
    objects: list[Manifest]


def isolate(inputs: IsolationInputs, manifests: Iterable[Manifest]) -> Isolation:
    """Return the isolation of a namespace.

    Args:
        inputs: settings of the berth and its environment.
        manifests: pod-making manifests, Services, claims and SecretSyncs of the namespace; the
            first is the RayCluster, RayJob or RayService.
    """
    contents = list(manifests)
    main = contents[0]
    # The namespace says whose the objects are.
    namespace, labels = main["metadata"]["namespace"], MANAGED_BY
    settings, priority = inputs.settings, inputs.priority
    level = pod_security.level_of(contents, settings.pod_security)
    objects: list[Manifest] = []
    if settings.network_policies:
        objects += traffic.network_policies(
            namespace,
            labels,
            contents,
            inputs.kuberay,
            settings.reachable,
            inputs.clients,
            inputs.callers,
            metadata_server=bool(settings.metadata_server),
        )
    if settings.quotas:
        withheld = {GPU_RESOURCE, *inputs.gpu_resources}
        room = quota.Room(settings.storage, settings.ephemeral_storage)
        objects.append(quota.resource_quota(namespace, labels, contents, withheld, room))
        objects.append(quota.limit_range(namespace, labels, room))
    if inputs.access.anyone:
        # KubeRay chooses the name of a RayCluster that it creates, so the token's Secret is
        # unknown.
        token_secret = main["metadata"]["name"] if main["kind"] == "RayCluster" else None
        syncs = any(manifest["kind"] == "SecretSync" for manifest in contents)
        objects.append(rbac.role(namespace, labels, token_secret, level, secrets_of(contents), syncs=syncs))
        objects.append(rbac.role_binding(namespace, labels, inputs.access))
    auth = ((cluster_spec(main) or {}).get("authOptions") or {}).get("mode") or "disabled"
    annotations = {POOLS: ",".join(pools_of(contents)), RAY_AUTH: auth}
    if settings.quotas and priority:
        annotations[PRIORITY] = priority
    if any(autoscales(manifest) for manifest in contents):
        annotations[AUTOSCALER] = "true"
    if runtime_class := next(runtime_classes_of(contents), None):
        annotations[RUNTIME_CLASS] = runtime_class
    return Isolation(level, {pod_security.ENFORCE: level}, annotations, objects)


def harden(manifest: Manifest, strictest: PodSecurity, priority: str | None) -> Manifest:
    """Return a manifest whose pods meet a Pod Security level and have a priority.

    A pod that mounts folders of its node meets the rest of the level, which the API server does not
    enforce then.

    Args:
        manifest: the object that makes the pods.
        strictest: Pod Security level of pods that need no more of their node.
        priority: PriorityClass of the pods.
    """
    hardened = copy.deepcopy(manifest)
    for kind, template, _ in pod_templates(hardened):
        spec = template["spec"]
        if priority:
            spec.setdefault("priorityClassName", priority)
        if "serviceAccountName" not in spec and not (kind == "head" and autoscales(hardened)):
            # Only Ray's autoscaler talks to the API server; KubeRay makes its service account.
            spec.setdefault("automountServiceAccountToken", False)
        if strictest == "restricted" and pod_security.needed_by(pod_security.without_folders(spec)) == "restricted":
            template["spec"] = pod_security.restricted(spec)
    if strictest == "restricted" and autoscales(hardened):
        # KubeRay takes the security context of the autoscaler's container from the RayCluster.
        options = (cluster_spec(hardened) or {}).setdefault("autoscalerOptions", {})
        options.setdefault("securityContext", copy.deepcopy(pod_security.RESTRICTED_CONTAINER))
    return hardened
