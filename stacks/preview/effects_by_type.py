"""Effects of a change of a resource whose type has no function of its own, by the type. Pure.

A type that no table has counts as one that holds something that would be lost.
"""

from berth.components.plan.effect import Effect, Level, Sitting, sitting_on
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.plan import Step

NAMESPACE = "kubernetes:core/v1:Namespace"

_RIGHTS_LOST = "subjects lose the rights that it gives"
_CLIENTS_LOST = "clients that reach pods through it no longer do"
_CLASS_LOST = "pods that claim such devices cannot start without it"
_TEMPLATE_LOST = "pods that claim devices with it cannot start without it"
_INTERNET_LOST = "nodes without public addresses reach nothing outside, no image registry either"
_REFUSALS_LOST = "refused requests are admitted"
_DATA_LOST = "the data on the volume may be lost with it"
_NICS_LOST = "pods lose the NICs that they get from it"
_NODES_LOST = "every node with a NIC in it is deleted too"

_HOLDS_NOTHING = {
    "kubernetes:core/v1:ConfigMap",
    "kubernetes:batch/v1:Job",
    "kubernetes:batch/v1:CronJob",
    "kubernetes:core/v1:LimitRange",
    "kubernetes:policy/v1:PodDisruptionBudget",
    "random:index/randomString:RandomString",
    "random:index/randomId:RandomId",
}
"""Types that are deleted or recreated without any effect: readers have read them, or read the new
one by its name."""

_DISTURBS_WHEN_GONE = {
    "kubernetes:core/v1:ResourceQuota": "system-priority pods can't start here any more",
    "kubernetes:core/v1:Secret": "pods that read it cannot start without it",
    "kubernetes:core/v1:ServiceAccount": "tokens of pods that run under it end",
    "kubernetes:core/v1:Service": _CLIENTS_LOST,
    "kubernetes:networking.k8s.io/v1:Ingress": _CLIENTS_LOST,
    "kubernetes:networking.k8s.io/v1:NetworkPolicy": "this network restriction goes away",
    "kubernetes:rbac.authorization.k8s.io/v1:Role": _RIGHTS_LOST,
    "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding": _RIGHTS_LOST,
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole": _RIGHTS_LOST,
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": _RIGHTS_LOST,
    "kubernetes:apps/v1:DaemonSet": "its pods stop on every node",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy": _REFUSALS_LOST,
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding": _REFUSALS_LOST,
    "kubernetes:resource.k8s.io/v1:DeviceClass": _CLASS_LOST,
    "kubernetes:resource.k8s.io/v1beta2:DeviceClass": _CLASS_LOST,
    "kubernetes:resource.k8s.io/v1beta1:DeviceClass": _CLASS_LOST,
    "kubernetes:resource.k8s.io/v1:ResourceClaimTemplate": _TEMPLATE_LOST,
    "kubernetes:resource.k8s.io/v1beta2:ResourceClaimTemplate": _TEMPLATE_LOST,
    "kubernetes:resource.k8s.io/v1beta1:ResourceClaimTemplate": _TEMPLATE_LOST,
    "kubernetes:resource.nvidia.com/v1beta1:ComputeDomain": (
        "pods that are joined by NVLink cannot start without it"
    ),
    "kubernetes:storage.k8s.io/v1:StorageClass": (
        "new claims that name it wait; volumes that exist stay"
    ),
    "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass": (
        "its values are no longer read from Secret Manager"
    ),
    "kubernetes:secret-sync.gke.io/v1:SecretSync": (
        "its Secret goes with it, and pods that read that cannot start"
    ),
    "kubernetes:scheduling.k8s.io/v1:PriorityClass": "pods that name it cannot start without it",
    "gcp:compute/firewall:Firewall": "traffic that it allows is refused, and the reverse",
    "gcp:compute/router:Router": _INTERNET_LOST,
    "gcp:compute/routerNat:RouterNat": _INTERNET_LOST,
    "gcp:compute/resourcePolicy:ResourcePolicy": "nodes created later are placed anywhere",
    "gcp:compute/address:Address": "the address changes",
}
"""Effect of a replacement, for its duration, and of a deletion, for good."""

_DESTROYS_WHEN_GONE = {
    NAMESPACE: "everything in the namespace is deleted with it",
    "kubernetes:core/v1:PersistentVolumeClaim": _DATA_LOST,
    "kubernetes:core/v1:PersistentVolume": _DATA_LOST,
    "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition": (
        "every object of that kind is deleted with it"
    ),
    "kubernetes:networking.gke.io/v1:Network": _NICS_LOST,
    "kubernetes:networking.gke.io/v1:GKENetworkParamSet": _NICS_LOST,
    "gcp:compute/network:Network": _NODES_LOST,
    "gcp:compute/subnetwork:Subnetwork": _NODES_LOST,
}
"""Effect of a replacement or deletion, for good."""

_DISTURBS_IN_PLACE = {
    "kubernetes:apps/v1:DaemonSet": "its pods restart, node by node",
    "kubernetes:apps/v1:Deployment": "its pods restart, some after the others",
    "kubernetes:apps/v1:StatefulSet": "its pods restart, one after the other",
}
"""Effect of an edit in place; an edit of another type in these tables has none."""

_HARMLESS_IN_PLACE = (
    _HOLDS_NOTHING | _DISTURBS_WHEN_GONE.keys() | _DESTROYS_WHEN_GONE.keys()
) - _DISTURBS_IN_PLACE.keys()


def effects_by_type(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a type without a function of its own."""
    if step.operation == "delete" and is_retained(step):
        text = f"{name_of(step)} stays, with what is in it, and no stack has it any more"
        return [Effect(Level.HARMLESS, text)]
    if step.operation == "update":
        return _effects_in_place(step)
    return _effects_when_gone(step, fleet)


def is_retained(step: Step) -> bool:
    """Return whether the resource stays when it goes from the stack."""
    return step.old is not None and step.old.retained


def name_of(step: Step) -> str:
    """Return a resource's name in the cluster or in Google Cloud; else Pulumi's."""
    metadata = step.before.get("metadata") or {}
    name = str(metadata.get("name") or step.before.get("name") or step.name)
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name


def _effects_in_place(step: Step) -> list[Effect]:
    if step.type in _HARMLESS_IN_PLACE:
        return []
    text = _DISTURBS_IN_PLACE.get(
        step.type, "changes in place; berth does not know the effect on what runs"
    )
    return [Effect(Level.DISTURBS, f"{name_of(step)}: {text}")]


def _effects_when_gone(step: Step, fleet: PlannedFleet) -> list[Effect]:
    if step.type in _HOLDS_NOTHING:
        return []
    if step.type in _DISTURBS_WHEN_GONE:
        meanwhile = " meanwhile" if step.operation == "replace" else ""
        text = f"{name_of(step)}: {_DISTURBS_WHEN_GONE[step.type]}{meanwhile}"
        return [Effect(Level.DISTURBS, text)]
    if step.type not in _DESTROYS_WHEN_GONE:
        text = f"{name_of(step)}: berth does not know what it holds, and assumes the worst"
        return [Effect(Level.DESTROYS, text)]
    sitting: list[Sitting] = []
    if step.type.startswith("gcp:compute/"):
        sitting = sitting_on(fleet, fleet.everywhere)
    return [Effect(Level.DESTROYS, f"{name_of(step)}: {_DESTROYS_WHEN_GONE[step.type]}", sitting)]
