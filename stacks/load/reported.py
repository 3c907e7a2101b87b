"""Machine types that berth does not know, on an existing cluster: what their nodes report."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from berth.components.cluster.api import NODES, ClusterApi, ClusterError, Object
from berth.components.core.errors import BadInputError
from berth.components.core.problems import Problem
from berth.components.core.project import path_of_setting
from berth.components.core.types import parse_quantity
from berth.components.gke import ExistingCluster
from berth.components.hardware.machines import GPUS, MACHINES
from berth.components.hardware.names import ACCELERATOR_LABEL, GPU_RESOURCE, POOL_LABEL
from berth.stacks.program.login import one_context

_COUNT = f"{ACCELERATOR_LABEL}-count"


def with_reported(value: Any) -> tuple[Any, list[Problem]]:
    """Return an environment's values with the `gpus` and `allocatable` that nodes report.

    A cluster is asked only where it exists, and a pool has an unknown machine type without `gpus`.
    The problems say why nothing could be learned of a pool.
    """
    cluster, pools = (_mapping(value, key) for key in ("cluster", "pools"))
    existing, unknown = (
        cluster.get("existing"),
        [name for name, pool in pools.items() if _unknown(pool)],
    )
    if not existing or not unknown:
        return value, []
    try:
        settings = ExistingCluster.model_validate(existing, by_alias=True, by_name=False)
        kubeconfig, _ = one_context(path_of_setting(settings.kubeconfig), settings.context)
        nodes, _ = ClusterApi(kubeconfig).list(NODES, labelSelector=POOL_LABEL)
    except ValidationError:
        return value, []
    except (BadInputError, ClusterError) as error:
        return value, [_unasked(name, f"its nodes could not be asked: {error}") for name in unknown]
    of_pools = {
        name: [node for node in nodes if node["metadata"]["labels"][POOL_LABEL] == name]
        for name in unknown
    }
    known = {name: {**reported(found), **pools[name]} for name, found in of_pools.items() if found}
    none = f"no node has the label {POOL_LABEL} of this pool now, so that none could be asked"
    return {**value, "pools": {**pools, **known}}, [
        _unasked(name, none) for name in unknown if name not in known
    ]


def reported(nodes: Iterable[Object]) -> dict[str, Any]:
    """Return the settings of a pool that its nodes report: the least that one of them has."""
    cpu, memory, node = min(
        ((*_allocatable(node), node) for node in nodes), key=lambda found: found[:2]
    )
    labels, capacity = node["metadata"]["labels"], node["status"].get("capacity") or {}
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
    amounts: Mapping[str, str] = node["status"].get("allocatable") or {}
    return parse_quantity(amounts.get("cpu", "0")), parse_quantity(amounts.get("memory", "0"))


def _mapping(value: Any, key: str) -> dict[str, Any]:
    """Return the mapping at a key; an empty one where the settings have something else."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _unknown(pool: Any) -> bool:
    given = pool.get("machineType") if isinstance(pool, dict) else None
    return isinstance(given, str) and "-" in given and given not in MACHINES and "gpus" not in pool


def _unasked(name: str, reason: str) -> Problem:
    return Problem(("environment", "pools", name, "machineType"), reason)
