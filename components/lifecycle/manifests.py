"""Manifests of the keeper: its namespace with a CronJob, and its rights in berths."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from berth.components import programs
from berth.components.core import fast_yaml
from berth.components.core.manifest import MANAGED_BY, Manifest, manifest_of, unawaited
from berth.components.core.owner import ENVIRONMENT_LABEL
from berth.components.gke import PoolSettings, on_pools, tolerations
from berth.components.isolation import (
    DASHBOARD,
    binding_to_role,
    pods_of_namespace,
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
_SUBJECT = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": KEEPER_NAME}

_MODULES = ("beside", "decision", "keeper", "jobs", "lifetimes", "logins", "servers")
_PACKAGES = ("berth", "berth/components", "berth/components/programs")
_EMPTY = "__init__.py"


def keeper_peers(lifecycle: Lifecycle) -> list[dict[str, Any]]:
    """Return the peers of a berth's NetworkPolicy for the keeper; none without a lifecycle."""
    return [pods_of_namespace(NAMESPACE, **_POD)] if lifecycle.any else []


def keeper_access(cluster: Manifest, lifecycle: Lifecycle) -> list[Manifest]:
    """Return what lets the keeper into a berth; nothing without a lifecycle.

    A Role with its RoleBinding, and a quota without a limit: the keeper may not create one.
    """
    if not lifecycle.any:
        return []
    name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
    token = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": [name]}
    has_token = cluster["spec"]["authOptions"]["mode"] == "token"
    values = {"namespace": namespace, "labels": MANAGED_BY, "closing": CLOSING}
    role = manifest_of(__file__, "role", token=[token] if has_token else [], **values)
    keepers = binding_to_role("RoleBinding", role["metadata"], "Role", [_SUBJECT])
    return [role, keepers, unawaited(manifest_of(__file__, "quota", **values))]


def keeper_manifests(
    environment: str,
    image: str,
    schedule: str,
    pools: Mapping[str, PoolSettings],
    labels: dict[str, str],
) -> list[Manifest]:
    """Return the keeper's objects: namespace, program, account, rights, limits, and the CronJob.

    The image has Python 3.11 or newer; the keeper may run on any of the pools.
    """
    objects: list[Manifest] = fast_yaml.load_beside(__file__, "keeper.yaml")
    for manifest in objects:
        manifest["metadata"]["labels"] = {**labels, **manifest["metadata"].get("labels", {})}
    by_kind = {manifest["kind"]: manifest for manifest in objects}
    by_kind["ConfigMap"]["data"], items = _program()
    heads = {
        "namespaceSelector": {"matchLabels": {ENVIRONMENT_LABEL: environment}},
        "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
    }
    by_kind["NetworkPolicy"]["spec"]["egress"] = [
        {"to": [heads], "ports": tcp_ports(DASHBOARD)},
        to_api_server(),
    ]
    cron_job = by_kind["CronJob"]["spec"]
    cron_job["schedule"] = schedule
    pod = cron_job["jobTemplate"]["spec"]["template"]["spec"]
    pod["affinity"] = on_pools(pools)
    if tolerated := [
        toleration for name in sorted(pools) for toleration in tolerations(pools[name])
    ]:
        pod["tolerations"] = [
            one for number, one in enumerate(tolerated) if one not in tolerated[:number]
        ]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    container |= {"image": image, "args": ["--selector", f"{ENVIRONMENT_LABEL}={environment}"]}
    volume["configMap"]["items"] = items
    return objects


def _program() -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return the files of the program by key of the ConfigMap, which has no `/`, and their paths.

    Empty `__init__.py` files hide the image's packages.
    """
    folder = Path(programs.__file__).parent
    files = {
        f"{_PACKAGES[-1]}/{name}.py": (folder / f"{name}.py").read_text(encoding="utf-8")
        for name in _MODULES
    }
    data = {path.replace("/", "."): text for path, text in files.items()}
    items = [{"key": path.replace("/", "."), "path": path} for path in files]
    empty = [{"key": _EMPTY, "path": f"{package}/{_EMPTY}"} for package in _PACKAGES]
    return data | {_EMPTY: ""}, [*items, *empty]
