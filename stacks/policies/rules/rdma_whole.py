"""Policy `rdma-whole`."""

from collections.abc import Iterator
from typing import Any

from berth.components.core.manifest import value_at
from berth.components.hardware.names import (
    CLAIMED_GPUS,
    CONFIG_LABEL,
    GPU_RESOURCE,
    POOL_LABEL,
    WHOLE_KEY,
)
from berth.components.plan.fleet import NODE_POOL
from berth.stacks.policies.planned import as_list, google_name, object_name, ray_specs
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext


def _parts_of_nodes_with_rdma(resource: Planned, context: PolicyContext) -> Iterator[Finding]:
    """Yield workers that take some GPUs of a node with RDMA, and pools that share such GPUs."""
    for spec in ray_specs(resource):
        groups = as_list(value_at(spec, "workerGroupSpecs"))
        for group in groups:
            pod = value_at(group, "template", "spec")
            pool = value_at(pod, "nodeSelector", POOL_LABEL)
            if not isinstance(pool, str) or pool not in context.rdma:
                continue
            if value_at(group, "template", "metadata", "annotations", CLAIMED_GPUS):
                continue  # Every claimed GPU comes with its own NIC, and the others keep theirs.
            gpus = _gpus(pod)
            whole = context.rdma[pool]
            if gpus != whole:
                owner = _owner(resource, group, len(groups))
                yield Finding(
                    f"a worker of {owner} takes {gpus} of the {whole} GPUs of a node of pool"
                    f" {pool!r}, whose RDMA NICs go to one pod together with all GPUs",
                    f"take {whole}, or another pool",
                )
    if resource.type == NODE_POOL and (name := google_name(resource)) in context.rdma:
        config = value_at(resource.inputs, "nodeConfig")
        shared = any(
            value_at(accelerator, "gpuSharingConfig")
            for accelerator in as_list(value_at(config, "guestAccelerators"))
        )
        if shared or value_at(config, "labels", CONFIG_LABEL) not in (None, WHOLE_KEY):
            yield Finding(
                f"pool {name!r} has RDMA and shares its GPUs, though a pod takes all GPUs and all"
                " NICs of a node",
                "share the GPUs of another pool",
            )


def _owner(resource: Planned, group: Any, groups: int) -> str:
    """Return the RayCluster of a group, with the group's name if it has several."""
    name = object_name(resource)
    return f"group {value_at(group, 'groupName')} of {name}" if groups > 1 else name


def _gpus(pod: Any) -> int:
    """Return the number of whole GPUs that a pod asks for, without shares and MIG instances."""
    counts = [
        str(value_at(part, "resources", "limits", GPU_RESOURCE) or 0)
        for part in as_list(value_at(pod, "containers"))
    ]
    return sum(int(count) for count in counts if count.isdecimal())


POLICY = Policy(
    name="rdma-whole",
    asks=(
        "A worker on a pool with RDMA takes all GPUs of its node, or claims each with its own"
        " NIC (`gpuAllocation: dra`), and such a pool's GPUs are not shared."
    ),
    why=(
        "A node's RDMA NICs go to one pod together with all its GPUs: GPUs that this pod does"
        " not use are idle, at a high price."
    ),
    remedy="take all GPUs of a node, or another pool",
    judge=_parts_of_nodes_with_rdma,
    applies_to="raycluster",
    setting=("worker", "gpus"),
    inherited=False,
)
