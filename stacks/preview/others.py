"""What a change of anything else does, by its type. A type that is in no table counts as one that holds something."""

from __future__ import annotations

from typing import get_args

from berth.components.hardware.names import ResourceApi
from berth.components.plan.effect import Effect, Level, sitting_on
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.plan import Step

# Gone or made anew without anything that runs noticing: what reads them has done so, or reads the new one by its name.
_HOLDS_NOTHING = {
    "kubernetes:core/v1:ConfigMap",
    "kubernetes:batch/v1:Job",
    "kubernetes:batch/v1:CronJob",
    "kubernetes:core/v1:LimitRange",
    "kubernetes:policy/v1:PodDisruptionBudget",
    "random:index/randomString:RandomString",
    "random:index/randomId:RandomId",
}

# What is away while one of them is replaced, or for good where it is deleted.
_DISTURBS_WHEN_GONE = {
    "kubernetes:core/v1:ResourceQuota": "the quota goes; where it let pods of system priority in, none starts any more",
    "kubernetes:core/v1:Secret": "pods that read it can't start without it",
    "kubernetes:core/v1:ServiceAccount": "tokens of pods that run under it end",
    "kubernetes:core/v1:Service": "what reaches pods by it no longer does",
    "kubernetes:networking.k8s.io/v1:Ingress": "what reaches pods by it no longer does",
    "kubernetes:networking.k8s.io/v1:NetworkPolicy": "what it kept from the pods, or let through to them, no longer is",
    "kubernetes:rbac.authorization.k8s.io/v1:Role": "who had rights by it loses them",
    "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding": "who had rights by it loses them",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole": "who had rights by it loses them",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": "who had rights by it loses them",
    "kubernetes:apps/v1:DaemonSet": "its pods stop on every node",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy": "what it refused is admitted",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding": "what it refused is admitted",
    **{
        f"kubernetes:resource.k8s.io/{version}:{kind}": text
        for version in get_args(ResourceApi)
        for kind, text in {
            "DeviceClass": "pods that claim such devices can't start without it",
            "ResourceClaimTemplate": "pods that claim devices by it can't start without it",
        }.items()
    },
    "kubernetes:scheduling.k8s.io/v1:PriorityClass": "pods that name it can't start without it",
    "gcp:compute/firewall:Firewall": "traffic that it let through, or kept out, no longer is",
    "gcp:compute/router:Router": "nodes without public addresses reach nothing outside, no image registry either",
    "gcp:compute/routerNat:RouterNat": "nodes without public addresses reach nothing outside, no image registry either",
    "gcp:compute/resourcePolicy:ResourcePolicy": "nodes that are made later are put anywhere",
    "gcp:compute/address:Address": "the address is another one afterwards",
}

_DESTROYS_WHEN_GONE = {
    "kubernetes:core/v1:Namespace": "everything in the namespace is deleted with it",
    "kubernetes:core/v1:PersistentVolumeClaim": "the data on the volume may go with it",
    "kubernetes:core/v1:PersistentVolume": "the data on the volume may go with it",
    "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition": "every object of that kind is deleted with it",
    "kubernetes:networking.gke.io/v1:Network": "pods lose the NICs that they have by it",
    "kubernetes:networking.gke.io/v1:GKENetworkParamSet": "pods lose the NICs that they have by it",
    "gcp:compute/network:Network": "every node with a NIC in it goes too",
    "gcp:compute/subnetwork:Subnetwork": "every node with a NIC in it goes too",
}

# Edits in place that something notices.
_DISTURBS_IN_PLACE = {
    "kubernetes:apps/v1:DaemonSet": "its pods restart, node by node",
    "kubernetes:apps/v1:Deployment": "its pods restart, some after the others",
    "kubernetes:apps/v1:StatefulSet": "its pods restart, one after the other",
}
_HARMLESS_IN_PLACE = {
    *(_HOLDS_NOTHING | _DISTURBS_WHEN_GONE.keys() | _DESTROYS_WHEN_GONE.keys()) - _DISTURBS_IN_PLACE.keys()
}


def _called(step: Step) -> str:
    """Its name in the cluster, with its namespace, or in Google Cloud; else Pulumi's."""
    inputs = step.old.inputs if step.old else {}
    metadata = inputs.get("metadata") or {}
    name = str(metadata.get("name") or inputs.get("name") or step.name)
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name


def of_other(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """The effects of a change of what has no table of its own."""
    if step.old is None:
        return []
    if step.operation == "update":
        if step.type in _HARMLESS_IN_PLACE:
            return []
        text = _DISTURBS_IN_PLACE.get(step.type, "changes in place; berth does not know what that does to what runs")
        return [Effect(Level.DISTURBS, f"{_called(step)}: {text}")]
    if step.type in _HOLDS_NOTHING:
        return []
    meanwhile = " meanwhile" if step.operation == "replace" else ""
    if text := _DISTURBS_WHEN_GONE.get(step.type, ""):
        return [Effect(Level.DISTURBS, f"{_called(step)}: {text}{meanwhile}")]
    network = step.type.startswith("gcp:compute/") and step.type in _DESTROYS_WHEN_GONE
    sitting = sitting_on(fleet, fleet.everywhere) if network else []
    text = _DESTROYS_WHEN_GONE.get(step.type, "berth does not know what it holds, and says the worst")
    return [Effect(Level.DESTROYS, f"{_called(step)}: {text}", sitting)]
