"""Machine types that berth does not know, on an existing cluster: what their nodes report."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from berth.components.cluster.api import NODES, ClusterApi, ClusterError, Object
from berth.components.cluster.kubeconfig import read_kubeconfig
from berth.components.core.errors import BadInputError
from berth.components.core.problems import Problem
from berth.components.core.project import path_of_setting
from berth.components.core.types import parse_quantity
from berth.components.gke import ExistingCluster
from berth.components.hardware.machines import GPUS, MACHINES
from berth.components.hardware.names import ACCELERATOR_LABEL, GPU_RESOURCE, POOL_LABEL

_COUNT = f"{ACCELERATOR_LABEL}-count"


def with_reported_sizes(value: Any) -> tuple[Any, list[Problem]]:
    """Return an environment's values with the `gpus` and `allocatable` that nodes report.

    A cluster is asked only where it exists, and a pool has an unknown machine type without `gpus`.

    Args:
        value: the environment as its file has it, which may be anything.

    Returns:
        The values, and problems that say why nothing could be learned of a pool.
    """
    pools = _mapping_at(value, "pools")
    unknown = [name for name, pool in pools.items() if _is_unknown(pool)]
    existing = _mapping_at(value, "cluster").get("existing")
    if not existing or not unknown:
        return value, []
    try:
        settings = ExistingCluster.model_validate(existing, by_alias=True, by_name=False)
    except ValidationError:
        return value, []
    try:
        nodes = _nodes_of(settings)
    except (BadInputError, ClusterError) as error:
        return value, [_unasked(name, f"its nodes could not be asked: {error}") for name in unknown]
    sized = dict(pools)
    problems = []
    for name in unknown:
        of_pool = [node for node in nodes if node["metadata"]["labels"][POOL_LABEL] == name]
        if of_pool:
            sized[name] = {**reported_size(of_pool), **pools[name]}
        else:
            reason = (
                f"no node has the label {POOL_LABEL} of this pool now, so that none could be asked"
            )
            problems.append(_unasked(name, reason))
    return {**value, "pools": sized}, problems


def _nodes_of(existing: ExistingCluster) -> list[Object]:
    kubeconfig = read_kubeconfig(path_of_setting(existing.kubeconfig))
    api = ClusterApi(kubeconfig.context(existing.context).as_json())
    nodes, _ = api.list(NODES, labelSelector=POOL_LABEL)
    return nodes


def reported_size(nodes: Iterable[Object]) -> dict[str, Any]:
    """Return the settings of a pool that its nodes report: the least that one of them has."""
    node = min(nodes, key=_allocatable)
    cpu, memory = _allocatable(node)
    labels = node["metadata"]["labels"]
    capacity = node["status"].get("capacity") or {}
    count = int(labels.get(_COUNT) or capacity.get(GPU_RESOURCE) or 0)
    gpus: dict[str, Any] = {"count": count}
    if count:
        gpus["type"] = labels.get(ACCELERATOR_LABEL) or "nvidia-gpu"
        mib = labels.get(f"{GPU_RESOURCE}.memory")
        if mib and gpus["type"] not in GPUS:
            gpus["memory"] = f"{mib}Mi"
    return {
        "gpus": gpus,
        "allocatable": {"cpu": f"{int(cpu * 1000)}m", "memory": f"{int(memory) >> 20}Mi"},
    }


def _allocatable(node: Object) -> tuple[Decimal, Decimal]:
    """Return the cores and the bytes of memory that pods can have on a node."""
    amounts: Mapping[str, str] = node["status"].get("allocatable") or {}
    return parse_quantity(amounts.get("cpu", "0")), parse_quantity(amounts.get("memory", "0"))


def _mapping_at(value: Any, key: str) -> dict[str, Any]:
    """Return the mapping at a key; an empty one where the settings have something else."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _is_unknown(pool: Any) -> bool:
    given = pool.get("machineType") if isinstance(pool, dict) else None
    return isinstance(given, str) and "-" in given and given not in MACHINES and "gpus" not in pool


def _unasked(name: str, reason: str) -> Problem:
    return Problem(("environment", "pools", name, "machineType"), reason)
