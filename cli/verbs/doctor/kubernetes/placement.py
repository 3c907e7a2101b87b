"""Checks that an existing cluster has what the pods of berths select and request on their nodes.

For clusters of berth's own, rules of the settings know it before there are nodes
(components/ray/rules/containers.py and pod_templates.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from berth.cli.verbs.doctor.findings import CLUSTER, DoctorFinding
from berth.components.berth import BerthInputs
from berth.components.cluster.api import ClusterApi, Object, RefusedError
from berth.components.core.types import parse_quantity
from berth.components.core.words import first_names
from berth.components.hardware.allocatable import GIB
from berth.components.hardware.names import POOL_LABEL
from berth.components.isolation import cluster_spec

_SIZES = ("ephemeral-storage", "hugepages-")
"""Beginnings of resources of a node that berth's other checks do not compare."""

_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses/"
_SHOWN = 5


@dataclass(frozen=True)
class _Lack:
    """Shortcoming of nodes for the pods of a berth, and the command that helps."""

    text: str
    remedy: str


def check_placement(
    nodes: Sequence[Object], berths: Iterable[BerthInputs], api: ClusterApi
) -> Iterable[DoctorFinding]:
    """Check labels, disks and huge pages of nodes, and RuntimeClasses, for the pods of berths.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    lacking: dict[_Lack, list[str]] = {}
    classes: dict[str, list[str]] = {}
    for berth in berths:
        name = berth.settings.name
        made = any(pool.settings.by_operator for pool in berth.pools.values())
        for template in _templates(berth):
            for lack in _lacks(template["spec"], nodes):
                lacking.setdefault(lack, []).append(name)
            runtime_class = template["spec"].get("runtimeClassName")
            # The GPU Operator, which berth installs then, makes the classes of this name.
            if runtime_class and not (made and runtime_class.startswith("nvidia")):
                classes.setdefault(runtime_class, []).append(name)
    for lack, names in lacking.items():
        yield CLUSTER.missing(f"{lack.text} ({_names(names)})", lack.remedy)
    for runtime_class, names in classes.items():
        if not _exists(api, runtime_class):
            yield CLUSTER.missing(
                f"there is no RuntimeClass {runtime_class}: the API server refuses pods that name"
                f" it ({_names(names)})",
                "kubectl get runtimeclasses",
            )


def _templates(berth: BerthInputs) -> Iterator[Object]:
    spec = cluster_spec(berth.manifests.main)
    if spec:
        for group in (spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or [])):
            yield group["template"]


def _lacks(pod: Object, nodes: Sequence[Object]) -> Iterator[_Lack]:
    """Yield what nodes lack of the labels and sizes of a pod; nothing of a pool without nodes."""
    selector: Mapping[str, str] = pod.get("nodeSelector") or {}
    pool = selector.get(POOL_LABEL)
    of_pool = [node for node in nodes if _labels(node).get(POOL_LABEL) == pool]
    if not of_pool:
        return
    selected = [node for node in of_pool if selector.items() <= _labels(node).items()]
    if not selected:
        labels = " ".join(f"{key}={value}" for key, value in selector.items() if key != POOL_LABEL)
        yield _Lack(
            f"pool {pool}: no node has the labels {labels}, which pods select: they would wait"
            " forever",
            f"kubectl label nodes --selector={POOL_LABEL}={pool} {labels}",
        )
        return
    for resource, amount in _requests(pod).items():
        most = max(_allocatable(node, resource) for node in selected)
        if amount > most:
            yield _Lack(
                f"pool {pool}: a pod requests {_gib(amount)} of {resource}, and its nodes have"
                f" {_gib(most)}: the pod would wait forever",
                f"kubectl describe nodes --selector={POOL_LABEL}={pool}",
            )


def _gib(amount: Decimal) -> str:
    return f"{amount / GIB:.1f}Gi"


def _requests(pod: Object) -> dict[str, Decimal]:
    """Return the requests of sizes of a pod: of all containers, or the largest init container."""
    running: dict[str, Decimal] = {}
    for container in pod["containers"]:
        for resource, amount in _sizes(container):
            running[resource] = running.get(resource, Decimal(0)) + amount
    for container in pod.get("initContainers") or []:
        for resource, amount in _sizes(container):
            running[resource] = max(running.get(resource, Decimal(0)), amount)
    return running


def _sizes(container: Object) -> Iterator[tuple[str, Decimal]]:
    resources = container.get("resources") or {}
    amounts = (resources.get("limits") or {}) | (resources.get("requests") or {})
    for resource, quantity in amounts.items():
        if resource.startswith(_SIZES):
            yield resource, parse_quantity(str(quantity))


def _allocatable(node: Object, resource: str) -> Decimal:
    amounts = (node.get("status") or {}).get("allocatable") or {}
    return parse_quantity(str(amounts.get(resource) or 0))


def _exists(api: ClusterApi, runtime_class: str) -> bool:
    """Return whether there is a RuntimeClass, or nobody may say."""
    try:
        return api.get(f"{_CLASSES}{runtime_class}") is not None
    except RefusedError:
        return True


def _labels(node: Object) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _names(names: Iterable[str]) -> str:
    return first_names(list(dict.fromkeys(names)), _SHOWN)
