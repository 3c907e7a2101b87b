"""The GPU Operator's controller at work: node labels, DaemonSets, runtime classes and status.

The rules are in `gpu_operator.py` and `operand_objects.py`.
"""

from collections.abc import Mapping

from berth.components.cluster.api import NODES, Object, in_namespace
from berth.lab.api import DAEMONSETS, POLICIES, Api
from berth.lab.devices import gpu_operator
from berth.lab.devices.gpu_operator import OperatorPolicy
from berth.lab.devices.operand_objects import HASH, OPERANDS, daemonset, runtime_class

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def reconcile(
    api: Api,
    policy: Object,
    namespace: str,
    labels: Mapping[str, Mapping[str, str]],
    daemonsets: Mapping[str, Object],
) -> None:
    """Make the changes of one look; where somebody else was faster, their change brings the next.

    Args:
        api: the cluster.
        policy: the ClusterPolicy.
        namespace: the operator's.
        labels: labels of all nodes, by the nodes' names.
        daemonsets: DaemonSets of the operator, by name.
    """
    settings = OperatorPolicy(policy.get("spec") or {})
    after = {}
    for name, before in labels.items():
        if change := gpu_operator.node_labels(before, settings):
            api.patch(f"{NODES}/{name}", {"metadata": {"labels": change}})
        after[name] = {
            key: value for key, value in {**before, **change}.items() if value is not None
        }
    found = gpu_operator.findings(after)
    states = []
    if not found.failure:
        _set_classes(api, policy, settings)
        for operand in OPERANDS:
            present = daemonsets.get(operand.name)
            path = in_namespace(namespace, DAEMONSETS)
            if not operand.on(settings) and present is not None:
                api.delete(f"{path}/{operand.name}")
            elif operand.on(settings) and found.gpu_nodes:
                target = daemonset(operand, settings, policy, namespace, found.system)
                states += [] if _apply(api, path, target, present) else [operand.state]
    if status := gpu_operator.status(policy.get("status") or {}, namespace, found, states):
        api.patch(f"{POLICIES}/{policy['metadata']['name']}/status", {"status": status})


def _set_classes(api: Api, policy: Object, settings: OperatorPolicy) -> None:
    present = {entry["metadata"]["name"] for entry in api.list(CLASSES)}
    wanted, gone = gpu_operator.runtime_classes(settings)
    for name in sorted(gone & present):
        api.delete(f"{CLASSES}/{name}")
    for name in sorted(wanted - present):
        api.create(CLASSES, runtime_class(name, policy))


def _apply(api: Api, path: str, target: Object, present: Object | None) -> bool:
    """Create a DaemonSet, or write it again; return whether it counts as ready."""
    if present is None:
        return api.create(path, target)
    if _hash(present) == _hash(target):
        return gpu_operator.rolled_out(present)
    api.replace(f"{path}/{target['metadata']['name']}", target)
    return False


def _hash(daemonset: Object) -> str:
    return str((daemonset["metadata"].get("annotations") or {}).get(HASH) or "")
