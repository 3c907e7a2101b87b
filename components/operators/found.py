"""Operators that are on an existing cluster already: found before an update writes anything.

Helm refuses to install over objects of another release, after berth has made the namespace, and two
operators of one kind work against each other.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from berth.components.cluster.api import ClusterApi, Object
from berth.components.cluster.nodes import untolerated_taint
from berth.components.core import fast_yaml
from berth.components.core.manifest import MANAGED_BY
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.table import beside, broken
from berth.components.gke import tolerations
from berth.components.operators.gpu_operator import GpuOperator
from berth.components.operators.operator import Operator, Site
from berth.components.operators.rules import path_of
from berth.components.operators.settings import OperatedSettings
from berth.components.sharing import Pools, config_entries, offered_pools

_FOUND: Mapping[str, Any] = fast_yaml.load_beside(__file__)
_TABLES = beside(__file__)
_WORKLOADS = {"Deployment": "/apis/apps/v1/deployments", "DaemonSet": "/apis/apps/v1/daemonsets"}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
_CONFIG_MAP = "time-slicing-config-all"
_HELM = "meta.helm.sh/release-"
_SYSTEM = "kube-system"


def found_on(api: ClusterApi, settings: OperatedSettings) -> list[Problem]:
    """Return what is on the cluster already and would stop, or fight, what the settings install.

    Raises:
        ClusterError: the cluster does not answer, or refuses.
    """
    pools = offered_pools(settings.pools, settings.sharing)
    workloads = [(kind, item) for kind, path in _WORKLOADS.items() for item in api.list(path)[0]]
    problems: list[Problem] = []
    for operator in settings.operators.on(Site(pools)):
        of_operator = [
            Problem(
                path,
                f"the cluster has {_shown(kind, item)} already:"
                f" {says.format(remove=_removal(kind, item))}",
            )
            for path, says, images, name in _signs(operator, settings)
            for kind, item in workloads
            if _is_it(item, images, name) and not _is_ours(item, operator)
        ]
        problems += of_operator or _left(api, operator, settings)
    if settings.operators.gpu.source == "present" and (served := GpuOperator.served(pools)):
        problems += _used(api, served)
    return problems


def _signs(
    operator: Operator[Any], settings: OperatedSettings
) -> Iterator[tuple[SettingPath, str, list[str], str]]:
    """Yield what stands in an operator's way: setting, text, images and name of a workload."""
    path = path_of(operator, settings) if operator.setting else ()
    places = {
        operator.release: path or ("environment", "pools", next(iter(operator.pools)), "driver")
    }
    if isinstance(operator, GpuOperator):
        places["nvidia-device-plugin"] = path
        if operator.settings.node_feature_discovery:
            places["node-feature-discovery"] = path
    for release, place in places.items():
        row = _FOUND[release]
        yield place, row["says"], row.get("images", []), row.get("name", "")


def _is_it(item: Object, images: Iterable[str], name: str) -> bool:
    """Return whether a workload is an operator; those that an operator itself has made are not."""
    metadata = item["metadata"]
    if any(owner.get("kind") == "ClusterPolicy" for owner in metadata.get("ownerReferences") or ()):
        return False
    if name:
        return bool((metadata.get("namespace"), metadata["name"]) == (_SYSTEM, name))
    pod = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
    used = [str(container.get("image")) for container in pod.get("containers") or ()]
    return any(
        re.search(rf"(^|/){re.escape(part)}([:@]|$)", image) for part in images for image in used
    )


def _is_ours(item: Object, operator: Operator[Any]) -> bool:
    metadata = item["metadata"]
    labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if not notes.get(f"{_HELM}name"):
        return MANAGED_BY.items() <= labels.items()
    if notes[f"{_HELM}name"] != operator.release:
        return False
    # In another namespace it is this stack's if Pulumi installed it: its setting changes.
    managers = [str(entry.get("manager")) for entry in metadata.get("managedFields") or ()]
    by_pulumi = any(manager.startswith("pulumi-") for manager in managers)
    return by_pulumi or notes.get(f"{_HELM}namespace") == getattr(
        operator.settings, "namespace", ""
    )


def _left(
    api: ClusterApi, operator: Operator[Any], settings: OperatedSettings
) -> Iterator[Problem]:
    """Yield what an operator that was removed has left, over which Helm would not install."""
    if not hasattr(operator.settings, "chart"):
        return
    names = {
        f"{_RBAC}/{kind}": operator.release for kind in ("clusterroles", "clusterrolebindings")
    }
    if isinstance(operator, GpuOperator):
        names[CLUSTER_POLICIES] = "cluster-policy"
    for path, name in names.items():
        for item in api.list(path, fieldSelector=f"metadata.name={name}")[0]:
            if _is_ours(item, operator):
                continue
            kind = path.rpartition("/")[2]
            facts = {"shown": _shown(kind, item), "kind": kind, "name": name}
            yield from broken(_TABLES["left"], path_of(operator, settings), **facts)


def _used(api: ClusterApi, pools: Pools) -> Iterator[Problem]:
    """Yield what the GPU Operator of a cluster lacks for the pools that it serves."""
    where: SettingPath = ("environment", "operators", "gpu", "source")
    policies, _ = api.list(CLUSTER_POLICIES)
    if not policies:
        yield Problem(
            where, "the cluster has no GPU Operator (no ClusterPolicy); take `source: present` out"
        )
        return
    policy, namespace = (
        policies[0]["spec"],
        str((policies[0].get("status") or {}).get("namespace") or "gpu-operator"),
    )

    def patch(**spec: Any) -> str:
        name, change = policies[0]["metadata"]["name"], json.dumps({"spec": spec})
        return f"kubectl patch clusterpolicies.nvidia.com {name} --type=merge --patch='{change}'"

    if not (policy.get("cdi") or {}).get("enabled", True):
        yield from broken(_TABLES["without_cdi"], where, command=patch(cdi={"enabled": True}))
    name = ((policy.get("devicePlugin") or {}).get("config") or {}).get("name")
    has = (
        (api.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}") or {}).get("data")
        if name
        else {}
    )
    wrong = {
        key: text
        for key, text in config_entries(pools).items()
        if _plain((has or {}).get(key)) != _plain(text)
    }
    if wrong:
        data = json.dumps({"data": wrong})
        command = (
            f"kubectl patch configmap {name} --namespace={namespace} --type=merge --patch='{data}'"
        )
        if not name:
            made = " ".join(f"--from-literal={key}='{text}'" for key, text in wrong.items())
            command = f"kubectl create configmap {_CONFIG_MAP} --namespace={namespace} {made}"
            command += f" && {patch(devicePlugin={'config': {'name': _CONFIG_MAP}})}"
        yield from broken(
            _TABLES["other_config"], where, keys=list(map(repr, wrong)), command=command
        )
    strategies = {pool.profile.facts.mig_strategy for pool in pools.values()} - {None, ""}
    strategy = (policy.get("mig") or {}).get("strategy", "single")
    if strategies and strategies != {strategy}:
        command = patch(mig={"strategy": min(map(str, strategies))})
        yield from broken(_TABLES["other_strategy"], where, strategy=strategy, command=command)
    known = (policy.get("daemonsets") or {}).get("tolerations") or []
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    for pool in pools.values():
        needed = tolerations(pool.settings)
        taints = [
            {**taint, "value": taint.get("value", "")} for taint in needed if taint.get("key")
        ]
        if missing := untolerated_taint(taints, known or [gpu]):
            command = patch(daemonsets={"tolerations": [*(known or [gpu]), *needed]})
            yield from broken(
                _TABLES["untolerated"], where, taint=missing["key"], pool=pool, command=command
            )


def _plain(text: str | None) -> Any:
    """Return the sharing of an entry of the device plugin's ConfigMap, without what is off."""
    document = yaml.safe_load(text or "{}")
    return (
        _without_off(document.get("sharing") or {})
        if isinstance(document, dict) and text is not None
        else None
    )


def _without_off(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_off(inner)
            for key, inner in value.items()
            if inner not in (None, False, {}, [])
        }
    return [_without_off(inner) for inner in value] if isinstance(value, list) else value


def _shown(kind: str, item: Object) -> str:
    metadata = item["metadata"]
    namespace = f" in namespace {metadata['namespace']}" if metadata.get("namespace") else ""
    release = (metadata.get("annotations") or {}).get(f"{_HELM}name")
    return f"{kind} {metadata['name']}{namespace}" + (
        f" (Helm release {release})" if release else ""
    )


def _removal(kind: str, item: Object) -> str:
    metadata = item["metadata"]
    notes = metadata.get("annotations") or {}
    if release := notes.get(f"{_HELM}name"):
        # Whoever made the object wrote these texts.
        namespace = shlex.quote(str(notes.get(f"{_HELM}namespace")))
        return f"helm uninstall {shlex.quote(release)} --namespace={namespace}"
    return f"kubectl delete {kind.lower()} {metadata['name']} --namespace={metadata['namespace']}"
