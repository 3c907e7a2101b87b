"""Operators that are on an existing cluster already, found before an update writes anything.

Helm refuses to install over objects of another release, after berth has made the namespace, and two
operators of one kind work against each other.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from berth.components.cluster.api import ClusterApi, Object
from berth.components.core.manifest import MANAGED_BY
from berth.components.core.problems import Problem, SettingPath
from berth.components.operators.existing_gpu_operator import CLUSTER_POLICIES, shortcomings
from berth.components.operators.gpu_operator import GpuOperator
from berth.components.operators.operator import Operator, OtherInstallation
from berth.components.operators.settings import OperatedSettings
from berth.components.operators.site import Site
from berth.components.sharing import offered_pools

_WORKLOADS = {"Deployment": "/apis/apps/v1/deployments", "DaemonSet": "/apis/apps/v1/daemonsets"}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_HELM_RELEASE = "meta.helm.sh/release-name"
_HELM_NAMESPACE = "meta.helm.sh/release-namespace"
_SYSTEM = "kube-system"

_DEVICE_PLUGIN = OtherInstallation(
    conflict=(
        "it offers the GPUs that the GPU Operator's plugin would offer too, each to two pods"
    ),
    images=("k8s-device-plugin",),
)
_FEATURE_DISCOVERY = OtherInstallation(
    conflict="two of them would label the same nodes",
    remedy="write `nodeFeatureDiscovery: false`",
    images=("node-feature-discovery",),
)

_Workload = tuple[str, Object]
"""Kind of an object, and the object."""


def problems_of_existing_operators(api: ClusterApi, settings: OperatedSettings) -> list[Problem]:
    """Return what is on the cluster already and would stop, or fight, what the settings install.

    Raises:
        ClusterError: the cluster does not answer, or refuses.
    """
    pools = offered_pools(settings.pools, settings.sharing)
    workloads = _workloads(api)
    problems: list[Problem] = []
    for operator in settings.operators.on(Site(pools)):
        other_installations = list(_other_installations(operator, settings, workloads))
        problems += other_installations or _leftovers(api, operator, settings)
    served = GpuOperator.served(pools)
    if settings.operators.gpu.source == "present" and served:
        problems += shortcomings(api, served)
    return problems


def _workloads(api: ClusterApi) -> list[_Workload]:
    workloads: list[_Workload] = []
    for kind, path in _WORKLOADS.items():
        items, _ = api.list(path)
        workloads += [(kind, item) for item in items]
    return workloads


def _other_installations(
    operator: Operator[Any], settings: OperatedSettings, workloads: Iterable[_Workload]
) -> Iterator[Problem]:
    """Yield the workloads of other installations that an operator must not run beside."""
    for place, other in _conflicting_installations(operator, settings):
        for kind, item in workloads:
            if _belongs_to(item, other) and not _is_ours(item, operator):
                removal = f"remove it: {_removal(kind, item)}"
                remedy = f"{other.remedy}, or {removal}" if other.remedy else removal
                yield Problem(
                    place,
                    f"the cluster has {_shown(kind, item)} already: {other.conflict}; {remedy}",
                )


def _conflicting_installations(
    operator: Operator[Any], settings: OperatedSettings
) -> Iterator[tuple[SettingPath, OtherInstallation]]:
    """Yield what an operator must not run beside, each with the setting that is wrong then."""
    place = _place_of(operator, settings)
    if operator.other_installation:
        yield place, operator.other_installation
    if isinstance(operator, GpuOperator):
        yield place, _DEVICE_PLUGIN
        if operator.settings.node_feature_discovery:
            yield place, _FEATURE_DISCOVERY


def _place_of(operator: Operator[Any], settings: OperatedSettings) -> SettingPath:
    """Return the settings of an operator; without any, the driver of the first pool it serves."""
    if operator.setting:
        return ("environment", "operators", settings.operators.key_of(operator))
    return ("environment", "pools", next(iter(operator.pools)), "driver")


def _belongs_to(item: Object, other: OtherInstallation) -> bool:
    """Return whether a workload is an operator; those that an operator itself has made are not."""
    metadata = item["metadata"]
    if any(owner.get("kind") == "ClusterPolicy" for owner in metadata.get("ownerReferences") or ()):
        return False
    if other.name:
        return bool((metadata.get("namespace"), metadata["name"]) == (_SYSTEM, other.name))
    pod = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
    used = [str(container.get("image")) for container in pod.get("containers") or ()]
    return any(_has_image(used, name) for name in other.images)


def _has_image(images: Iterable[str], name: str) -> bool:
    """Return whether one of some images has a name, whatever its registry and its tag."""
    pattern = re.compile(rf"(^|/){re.escape(name)}([:@]|$)")
    return any(map(pattern.search, images))


def _is_ours(item: Object, operator: Operator[Any]) -> bool:
    metadata = item["metadata"]
    annotations = metadata.get("annotations") or {}
    if not annotations.get(_HELM_RELEASE):
        return MANAGED_BY.items() <= (metadata.get("labels") or {}).items()
    if annotations[_HELM_RELEASE] != operator.release:
        return False
    # In another namespace it is this stack's if Pulumi installed it: its setting changes.
    managers = [str(entry.get("manager")) for entry in metadata.get("managedFields") or ()]
    if any(manager.startswith("pulumi-") for manager in managers):
        return True
    return bool(annotations.get(_HELM_NAMESPACE) == getattr(operator.settings, "namespace", ""))


def _leftovers(
    api: ClusterApi, operator: Operator[Any], settings: OperatedSettings
) -> Iterator[Problem]:
    """Yield what an operator that was removed has left, over which Helm would not install."""
    if not hasattr(operator.settings, "chart"):
        return
    names = {
        f"{_RBAC}/clusterroles": operator.release,
        f"{_RBAC}/clusterrolebindings": operator.release,
    }
    if isinstance(operator, GpuOperator):
        names[CLUSTER_POLICIES] = "cluster-policy"
    for path, name in names.items():
        kind = path.rpartition("/")[2]
        for item in api.list(path, fieldSelector=f"metadata.name={name}")[0]:
            if not _is_ours(item, operator):
                yield Problem(
                    _place_of(operator, settings),
                    f"the cluster has {_shown(kind, item)} of another installation, over which"
                    " Helm installs nothing; if that one is gone, remove what it has left:"
                    f" kubectl delete {kind} {name}",
                )


def _shown(kind: str, item: Object) -> str:
    metadata = item["metadata"]
    shown = f"{kind} {metadata['name']}"
    if metadata.get("namespace"):
        shown += f" in namespace {metadata['namespace']}"
    release = (metadata.get("annotations") or {}).get(_HELM_RELEASE)
    return f"{shown} (Helm release {release})" if release else shown


def _removal(kind: str, item: Object) -> str:
    """Return the command that removes a workload."""
    metadata = item["metadata"]
    annotations = metadata.get("annotations") or {}
    if release := annotations.get(_HELM_RELEASE):
        # Whoever made the object wrote these texts.
        namespace = shlex.quote(str(annotations.get(_HELM_NAMESPACE)))
        return f"helm uninstall {shlex.quote(release)} --namespace={namespace}"
    return f"kubectl delete {kind.lower()} {metadata['name']} --namespace={metadata['namespace']}"
