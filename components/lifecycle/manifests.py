"""Manifests of the keeper: its namespace with a CronJob, and its rights in berths."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from berth.components import programs
from berth.components.core import fast_yaml
from berth.components.core.manifest import MANAGED_BY, Manifest, filled, unawaited
from berth.components.core.owner import ENVIRONMENT_LABEL
from berth.components.gke import PoolSettings, pool_affinity, tolerations
from berth.components.isolation import (
    DASHBOARD,
    NetworkPeer,
    RoleSubject,
    binding_of,
    pods_of_namespace,
    role_manifest,
    role_rule,
    tcp_ports,
    to_api_server,
)
from berth.components.lifecycle.settings import Lifecycle
from berth.components.programs.keeper import CLOSING

NAMESPACE = "berth-keeper"
"""Namespace of the keeper; the berth name `keeper` is reserved."""

KEEPER_NAME = "keeper"
"""Name of the CronJob, the ServiceAccount and the other objects of the keeper."""

KEEPER_USER = f"system:serviceaccount:{NAMESPACE}:{KEEPER_NAME}"
"""Name of the keeper for the API server."""

_POD = {"app.kubernetes.io/name": KEEPER_NAME}
_SUBJECT: RoleSubject = {
    "kind": "ServiceAccount",
    "namespace": NAMESPACE,
    "name": KEEPER_NAME,
}

_MODULES = ("decision", "jobs", "keeper", "lifetimes", "logins", "servers", "workloads")
_PACKAGES = ("berth", "berth/components", "berth/components/programs")
_EMPTY = "__init__.py"


def keeper_peers(lifecycle: Lifecycle) -> list[NetworkPeer]:
    """Return the peers of a berth's NetworkPolicy for the keeper; none without a lifecycle."""
    return [pods_of_namespace(NAMESPACE, **_POD)] if lifecycle.any else []


def keeper_access(cluster: Manifest, lifecycle: Lifecycle) -> list[Manifest]:
    """Return what lets the keeper into a berth; nothing without a lifecycle.

    A Role with its RoleBinding, and a quota without a limit: the keeper may not create one. An
    admission policy narrows the patches (keeper.yaml).
    """
    if not lifecycle.any:
        return []
    name = cluster["metadata"]["name"]
    namespace = cluster["metadata"]["namespace"]
    rules = [
        role_rule("ray.io", ["rayclusters"], ["get", "patch"]),
        role_rule("ray.io", ["rayjobs", "rayservices"], ["patch"]),
        role_rule("batch", ["jobs"], ["list", "patch"]),
        role_rule("", ["resourcequotas"], ["get", "patch"], [CLOSING]),
        role_rule("", ["pods"], ["list"]),
    ]
    if cluster["spec"]["authOptions"]["mode"] == "token":
        rules.append(role_rule("", ["secrets"], ["get"], [name]))
    role = role_manifest(KEEPER_NAME, namespace, MANAGED_BY, rules)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": CLOSING, "namespace": namespace, "labels": MANAGED_BY},
    }
    return [role, binding_of(role, [_SUBJECT]), unawaited(quota)]


def keeper_manifests(
    environment: str,
    image: str,
    schedule: str,
    pools: Mapping[str, PoolSettings],
    labels: dict[str, str],
) -> list[Manifest]:
    """Return the keeper's objects: namespace, program, account, rights, limits, and the CronJob.

    Args:
        environment: the environment's stack, whose berths the keeper suspends and wakes.
        image: an image with Python 3.11 or newer.
        schedule: when the keeper runs, as cron has it.
        pools: pools that the keeper may run on.
        labels: labels of all objects.
    """
    files = _program_files()
    heads = {
        "namespaceSelector": {"matchLabels": {ENVIRONMENT_LABEL: environment}},
        "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
    }
    manifests: list[Manifest] = filled(
        fast_yaml.load_beside(__file__, "keeper.yaml"),
        labels=labels,
        namespace_labels={**labels, "pod-security.kubernetes.io/enforce": "restricted"},
        files={path.replace("/", "."): text for path, text in files.items()} | {_EMPTY: ""},
        items=_items(files),
        egress=[{"to": [heads], "ports": tcp_ports(DASHBOARD)}, to_api_server()],
        schedule=schedule,
        affinity=pool_affinity(pools),
        tolerations=_tolerations(pools) or None,
        image=image,
        selector=f"{ENVIRONMENT_LABEL}={environment}",
    )
    return manifests


def _tolerations(pools: Mapping[str, PoolSettings]) -> list[dict[str, str]]:
    """Return the tolerations of all pools, each once."""
    tolerated: list[dict[str, str]] = []
    for name in sorted(pools):
        for toleration in tolerations(pools[name]):
            if toleration not in tolerated:
                tolerated.append(toleration)
    return tolerated


def _program_files() -> dict[str, str]:
    """Return the texts of the program's modules by their path."""
    folder = Path(programs.__file__).parent
    return {
        f"{_PACKAGES[-1]}/{name}.py": (folder / f"{name}.py").read_text(encoding="utf-8")
        for name in _MODULES
    }


def _items(files: Iterable[str]) -> list[dict[str, str]]:
    """Return the path of each file by its key of the ConfigMap, which has no `/`.

    Empty `__init__.py` files hide the image's packages.
    """
    items = [{"key": path.replace("/", "."), "path": path} for path in files]
    items += [{"key": _EMPTY, "path": f"{package}/{_EMPTY}"} for package in _PACKAGES]
    return items
