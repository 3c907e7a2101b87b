"""Remarks on a fleet that is not as the settings have it."""

from collections.abc import Iterable
from datetime import datetime

from berth.cli.reach.lifecycle import lifecycle_remarks
from berth.cli.reach.moments import age_in_words
from berth.cli.reach.unknown_namespaces import not_in_state_note
from berth.components.cluster.devices import NETWORK_PODS
from berth.components.core.words import counted
from berth.components.ray.live import Fleet, LiveJob, LivePool, MissingOwner, Node, Restart


def reasons_on(fleet: Fleet) -> Iterable[str]:
    """Yield why workloads are not ready: `bob is not ready: …`."""
    for workload in fleet.workloads:
        state = "is not ready"
        if isinstance(workload, LiveJob):
            state = "failed" if workload.ended else "does not run"
        if not workload.ready:
            yield f"{workload.name} {state}: {'; '.join(workload.reasons)}"


def restarts_on(fleet: Fleet, now: datetime) -> Iterable[str]:
    """Yield what restarted lately, when and why: heads, and workers by reason."""
    for ray in (*fleet.berths, *fleet.clusters):
        heads = [restart for restart in ray.restarts if restart.role == "head"]
        if heads:
            yield f"{ray.name}: {head_restart(heads[0], now)}"
        workers: dict[str, list[Restart]] = {}
        for restart in ray.restarts:
            if restart.role != "head":
                workers.setdefault(restart.reason, []).append(restart)
        for reason, restarts in workers.items():
            ago = age_in_words(restarts[0].at, now)
            yield f"{ray.name}: {counted(len(restarts), 'worker')} restarted, {ago} ago: {reason}"


def head_restart(restart: Restart, now: datetime) -> str:
    """Return what the restart of a head means: its jobs are gone."""
    ago = age_in_words(restart.at, now)
    return f"its head restarted {ago} ago, and jobs from before are lost: {restart.reason}"


def lifecycles_on(fleet: Fleet) -> Iterable[str]:
    """Yield remarks on the lifecycles of berths and clusters."""
    for ray in (*fleet.berths, *fleet.clusters):
        yield from lifecycle_remarks(ray.name, ray.life)


def notes_on(fleet: Fleet) -> Iterable[str]:
    """Yield notes on namespaces that no state knows, and on missing berths, nodes and NICs."""
    if fleet.not_in_state:
        yield ": ".join(not_in_state_note(fleet.not_in_state, fleet.stack))
    for missing in fleet.missing:
        yield _missing_note(missing, fleet.stack)
    for pool in fleet.pools:
        if pool.nodes < pool.nodes_at_least:
            yield _missing_nodes_note(pool)
        if pool.nics < pool.nics_of_machines:
            yield _missing_nics_note(pool)
    for node in fleet.nodes:
        if node.maintenance_at:
            yield _maintenance_note(node)


def _missing_note(missing: MissingOwner, stack: str) -> str:
    return (
        f"{missing.kind} {missing.name} is missing: the last update made it, and it was deleted"
        f" outside of Pulumi; back with: pulumi refresh -s {stack} --yes, then berth up -s {stack}"
    )


def _missing_nodes_note(pool: LivePool) -> str:
    return (
        f"{pool.name} has {pool.nodes} of its {pool.nodes_at_least} nodes: GKE is creating them, or"
        " cannot get machines and tries again (why: gcloud container node-pools describe"
        f" {pool.name} --cluster=CLUSTER --location=LOCATION)"
    )


def _missing_nics_note(pool: LivePool) -> str:
    return (
        f"{pool.name} has {pool.nics_of_machines} NICs, and its nodes publish {pool.nics} of them"
        " for claims: DraNet does not run on each node, or the nodes lack RDMA networks (kubectl"
        f" get resourceslices; kubectl get pods -A -l {NETWORK_PODS} -o wide)"
    )


def _maintenance_note(node: Node) -> str:
    return (
        f"node {node.name} of pool {node.pool} goes down for maintenance of its host at"
        f" {node.maintenance_at}, and its pods with it; to have it now, at a time of your choice:"
        f" kubectl label node {node.name} cloud.google.com/perform-maintenance=true"
    )
