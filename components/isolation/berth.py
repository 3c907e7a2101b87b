"""All that keeps one berth apart: what is in its namespace for it, and what its pods say."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass

from berth.components.core.manifest import Manifest
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.isolation import network_policy, pod_security, quota, rbac
from berth.components.isolation.settings import IsolationSettings, PodSecurity
from berth.components.isolation.templates import autoscales, cluster_spec, templates
from berth.components.operators.settings import KubeRaySettings
from berth.components.ray.settings import RayClusterSettings
from berth.components.sharing import Pools


@dataclass(frozen=True)
class Isolated:
    """A berth's isolation.

    Attributes:
        level: what the API server holds its pods to.
        namespace_labels: labels of its namespace that say so.
        objects: what is in the namespace for it, to be there before any pod.
    """

    level: PodSecurity
    namespace_labels: dict[str, str]
    objects: list[Manifest]


def isolation(
    settings: RayClusterSettings,
    environment: IsolationSettings,
    kuberay: KubeRaySettings,
    pools: Pools,
    manifests: Iterable[Manifest],
    clients: Iterable[str] = (),
) -> Isolated:
    """What keeps a berth apart.

    Args:
        settings: its RayCluster.
        environment: what its environment loosens.
        kuberay: where the operator is.
        pools: the environment's node pools by name.
        manifests: what makes its pods, and its Services, all of one namespace; the first is its RayCluster, RayJob or RayService.
        clients: namespaces whose pods may send requests to Ray Serve.
    """
    given = list(manifests)
    namespace, labels = given[0]["metadata"]["namespace"], given[0]["metadata"]["labels"]
    level = pod_security.level_of(given, environment.pod_security)
    objects: list[Manifest] = []
    if environment.network_policies:
        objects += network_policy.network_policies(namespace, labels, given, kuberay, environment.reachable, clients)
    if environment.quotas:
        # By other names too, such as that of shares, a berth gets no GPUs of pools that are not its own.
        offers = {pool.offer.resource for pool in pools.values() if pool.offer}
        objects += [
            quota.resource_quota(namespace, labels, given, withheld={GPU_RESOURCE, *offers}),
            *([quota.rank_quota(namespace, labels, settings.priority)] if settings.priority else []),
            quota.limit_range(namespace, labels),
        ]
    if settings.access.anyone:
        objects += [
            # A RayCluster that KubeRay makes has a name, and so a Secret, that nobody knows before.
            rbac.role(namespace, labels, settings.name if given[0]["kind"] == "RayCluster" else None, level),
            rbac.role_binding(namespace, labels, settings.access),
        ]
    return Isolated(level, {pod_security.ENFORCE: level}, objects)


def isolated(manifest: Manifest, level: PodSecurity, priority: str | None) -> Manifest:
    """A manifest of one of Ray's kinds whose pods say what their namespace's level asks of them, and how they rank.

    Args:
        manifest: what makes the pods.
        level: their namespace's.
        priority: their PriorityClass.
    """
    made = copy.deepcopy(manifest)
    for kind, template, _ in templates(made):
        spec = template["spec"]
        if priority:
            spec.setdefault("priorityClassName", priority)
        if "serviceAccountName" not in spec and not (kind == "head" and autoscales(made)):
            # Ray asks the API server for nothing; its autoscaler does, with an account of KubeRay's making.
            spec.setdefault("automountServiceAccountToken", False)
        if level == "restricted":
            template["spec"] = pod_security.restricted(spec)
    if level == "restricted" and autoscales(made):
        _of_autoscaler(made)
    return made


def _of_autoscaler(manifest: Manifest) -> None:
    """KubeRay puts the autoscaler beside the head; what its container says, the RayCluster says."""
    options = (cluster_spec(manifest) or {}).setdefault("autoscalerOptions", {})
    options.setdefault("securityContext", copy.deepcopy(pod_security.RESTRICTED_CONTAINER))
