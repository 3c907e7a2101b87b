"""Effects of a change, by the type of its resource.

A type in no table counts as one that holds something that would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import get_args

from berth.components.core.types import parse_quantity
from berth.components.gke.effects.cluster import of_gke_cluster
from berth.components.gke.effects.node_pool import of_node_pool
from berth.components.hardware.names import ResourceApi
from berth.components.operators import of_daemon_set, of_release
from berth.components.plan.effect import Effect, Level, sitting_on
from berth.components.plan.fleet import GKE_CLUSTER, NODE_POOL, RAY_CLUSTER, RAY_JOB, RAY_SERVICE, PlannedFleet
from berth.components.plan.paths import value_at
from berth.components.plan.plan import Step
from berth.components.ray.effects import of_ray_cluster, of_ray_job, of_ray_service
from berth.components.sharing import of_node_labels

# Deleted or recreated without any effect: readers have read them, or read the new one by its name.
_HOLDS_NOTHING = {
    "kubernetes:core/v1:ConfigMap",
    "kubernetes:batch/v1:Job",
    "kubernetes:batch/v1:CronJob",
    "kubernetes:core/v1:LimitRange",
    "kubernetes:policy/v1:PodDisruptionBudget",
    "random:index/randomString:RandomString",
    "random:index/randomId:RandomId",
}

# Effect of a replacement, for its duration, and of a deletion, for good.
_DISTURBS_WHEN_GONE = {
    "kubernetes:core/v1:ResourceQuota": "without it, no pods of system priority start where it allows them",
    "kubernetes:core/v1:Secret": "pods that read it cannot start without it",
    "kubernetes:core/v1:ServiceAccount": "tokens of pods that run under it end",
    "kubernetes:core/v1:Service": "clients that reach pods through it no longer do",
    "kubernetes:networking.k8s.io/v1:Ingress": "clients that reach pods through it no longer do",
    "kubernetes:networking.k8s.io/v1:NetworkPolicy": "traffic to the pods that it refused is allowed, and the reverse",
    "kubernetes:rbac.authorization.k8s.io/v1:Role": "subjects lose the rights that it gives",
    "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding": "subjects lose the rights that it gives",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole": "subjects lose the rights that it gives",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": "subjects lose the rights that it gives",
    "kubernetes:apps/v1:DaemonSet": "its pods stop on every node",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy": "refused requests are admitted",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding": "refused requests are admitted",
    **{
        f"kubernetes:resource.k8s.io/{version}:{kind}": text
        for version in get_args(ResourceApi)
        for kind, text in {
            "DeviceClass": "pods that claim such devices cannot start without it",
            "ResourceClaimTemplate": "pods that claim devices with it cannot start without it",
        }.items()
    },
    "kubernetes:storage.k8s.io/v1:StorageClass": "new claims that name it wait; volumes that exist stay",
    "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass": "its values are no longer read from Secret Manager",
    "kubernetes:secret-sync.gke.io/v1:SecretSync": "its Secret goes with it, and pods that read that cannot start",
    "kubernetes:scheduling.k8s.io/v1:PriorityClass": "pods that name it cannot start without it",
    "gcp:compute/firewall:Firewall": "traffic that it allows is refused, and the reverse",
    "gcp:compute/router:Router": "nodes without public addresses reach nothing outside, no image registry either",
    "gcp:compute/routerNat:RouterNat": "nodes without public addresses reach nothing outside, no image registry either",
    "gcp:compute/resourcePolicy:ResourcePolicy": "nodes created later are placed anywhere",
    "gcp:compute/address:Address": "the address changes",
}

_DESTROYS_WHEN_GONE = {
    "kubernetes:core/v1:Namespace": "everything in the namespace is deleted with it",
    "kubernetes:core/v1:PersistentVolumeClaim": "the data on the volume may be lost with it",
    "kubernetes:core/v1:PersistentVolume": "the data on the volume may be lost with it",
    "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition": "every object of that kind is deleted with it",
    "kubernetes:networking.gke.io/v1:Network": "pods lose the NICs that they get from it",
    "kubernetes:networking.gke.io/v1:GKENetworkParamSet": "pods lose the NICs that they get from it",
    "gcp:compute/network:Network": "every node with a NIC in it is deleted too",
    "gcp:compute/subnetwork:Subnetwork": "every node with a NIC in it is deleted too",
}

# Effect of an edit in place.
_DISTURBS_IN_PLACE = {
    "kubernetes:apps/v1:DaemonSet": "its pods restart, node by node",
    "kubernetes:apps/v1:Deployment": "its pods restart, some after the others",
    "kubernetes:apps/v1:StatefulSet": "its pods restart, one after the other",
}
_HARMLESS_IN_PLACE = {
    *(_HOLDS_NOTHING | _DISTURBS_WHEN_GONE.keys() | _DESTROYS_WHEN_GONE.keys()) - _DISTURBS_IN_PLACE.keys()
}


def _called(step: Step) -> str:
    """Return a resource's name in the cluster or in Google Cloud; else Pulumi's."""
    inputs = step.old.inputs if step.old else {}
    metadata = inputs.get("metadata") or {}
    name = str(metadata.get("name") or inputs.get("name") or step.name)
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name


def _of_other(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a type without a function of its own."""
    if step.old is None:
        return []
    if step.operation == "delete" and step.old.retained:
        return [Effect(Level.HARMLESS, f"{_called(step)} stays, with what is in it, and no stack has it any more")]
    if step.operation == "update":
        if step.type in _HARMLESS_IN_PLACE:
            return []
        text = _DISTURBS_IN_PLACE.get(step.type, "changes in place; berth does not know the effect on what runs")
        return [Effect(Level.DISTURBS, f"{_called(step)}: {text}")]
    if step.type in _HOLDS_NOTHING:
        return []
    meanwhile = " meanwhile" if step.operation == "replace" else ""
    if text := _DISTURBS_WHEN_GONE.get(step.type, ""):
        return [Effect(Level.DISTURBS, f"{_called(step)}: {text}{meanwhile}")]
    network = step.type.startswith("gcp:compute/") and step.type in _DESTROYS_WHEN_GONE
    sitting = sitting_on(fleet, fleet.everywhere) if network else []
    text = _DESTROYS_WHEN_GONE.get(step.type, "berth does not know what it holds, and assumes the worst")
    return [Effect(Level.DESTROYS, f"{_called(step)}: {text}", sitting)]


def _of_daemon_set(step: Step, fleet: PlannedFleet) -> list[Effect]:
    effects = of_daemon_set(step, fleet)
    return _of_other(step, fleet) if effects is None else effects


def _of_claim(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a claim on a disk.

    The engine calls a change of a retained claim a replacement. It keeps the claim, and the server
    grows the disk in place, or refuses the change.
    """
    if step.operation == "delete" or not (step.old and step.new):
        return _of_other(step, fleet)
    before, after = step.old.inputs.get("spec") or {}, step.new.inputs.get("spec") or {}
    sizes = [parse_quantity(str(value_at(spec, "resources.requests.storage"))) for spec in (before, after)]
    if sizes != sorted(sizes):
        refused = "Kubernetes refuses a smaller disk, and the update would fail"
    elif before.get("storageClassName") != after.get("storageClassName"):
        refused = "Kubernetes refuses another StorageClass for a disk that exists, and the update would fail"
    else:
        return [] if step.operation == "update" or step.old.retained else _of_other(step, fleet)
    return [Effect(Level.DISTURBS, f"{_called(step)}: {refused}")]


_TABLES: Mapping[str, Callable[[Step, PlannedFleet], list[Effect]]] = {
    NODE_POOL: lambda step, fleet: [*of_node_pool(step, fleet), *of_node_labels(step, fleet)],
    GKE_CLUSTER: of_gke_cluster,
    RAY_CLUSTER: of_ray_cluster,
    RAY_JOB: of_ray_job,
    RAY_SERVICE: of_ray_service,
    "kubernetes:core/v1:PersistentVolumeClaim": _of_claim,
    "kubernetes:helm.sh/v3:Release": of_release,
    "kubernetes:apps/v1:DaemonSet": _of_daemon_set,
}


def effects_of(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change on what runs."""
    if step.operation == "create":
        return []
    return _TABLES.get(step.type, _of_other)(step, fleet)
