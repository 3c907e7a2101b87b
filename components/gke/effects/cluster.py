"""Effects of a change of a GKE cluster.

Which changes recreate nodes is a fact about each field of Google's provider
(components/gke/provider_fields). Paths are those of the resource's inputs.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from berth.components.gke.provider_fields import CLUSTER, resource_fields
from berth.components.plan.effect import (
    Effect,
    GpusAway,
    Level,
    gpus_away,
    sitting_on,
    where_somebody_works,
)
from berth.components.plan.fleet import PlannedFleet, is_zone
from berth.components.plan.paths import below
from berth.components.plan.plan import Property, Step

UNNOTICED_FIELDS = (
    "resourceLabels",
    "loggingConfig",
    "monitoringConfig",
    "maintenancePolicy",
    "notificationConfig",
    "costManagementConfig",
    "removeDefaultNodePool",
)
"""Fields that nothing that runs notices."""

RECREATING_FIELDS = {
    "enableShieldedNodes": "shielded nodes",
    "networkPolicy": "network policy enforcement",
    "addonsConfig.networkPolicyConfig": "network policy enforcement",
    "addonsConfig.dnsCacheConfig": "NodeLocal DNSCache",
    "enableIntranodeVisibility": "intranode visibility",
}
"""Fields whose change recreates the nodes of all pools, in words."""

_DRIVER = (
    "GKE installs the driver beside running pods, or removes it: without it no pod with such a"
    " volume starts"
)

CONTROL_PLANE_FIELDS = {
    "authenticatorGroupsConfig": (
        "Kubernetes knows the members of other Google groups: Roles for groups begin or cease to"
        " apply"
    ),
    "databaseEncryption": (
        "GKE encrypts all Secrets with another key; while that key is disabled or destroyed, the"
        " API server cannot read them"
    ),
    "addonsConfig.gcsFuseCsiDriverConfig": _DRIVER,
    "addonsConfig.gcpFilestoreCsiDriverConfig": _DRIVER,
    "enableMultiNetworking": (
        "nodes can have further networks from now on, or no longer; Google does not say that it"
        " recreates any for that"
    ),
    "secretSyncConfig": (
        "GKE's synchronization with Secret Manager begins or ends: Secrets that exist stay"
    ),
}
"""Fields of the control plane and of services beside the pods, with the effects of a change.

The provider's source does not say what GKE does to the nodes; Google's pages do. Under
https://docs.cloud.google.com: kubernetes-engine/docs/how-to/google-groups-rbac,
kubernetes-engine/docs/how-to/encrypting-secrets,
kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-setup, filestore/docs/csi-driver, and
secret-manager/docs/sync-k8-secrets. Of multi-networking on a cluster that runs they say nothing.
"""

DISTURBING_FIELDS = {
    "releaseChannel": (
        "the release channel changes: GKE upgrades control plane and nodes by the new one's"
        " schedule"
    ),
    "masterAuthorizedNetworksConfig": (
        "the networks that reach the control plane change: kubectl, CI and Ray jobs submitted from"
        " outside may lose access"
    ),
    "privateClusterConfig": "the addresses of nodes and control plane change",
    "controlPlaneEndpointsConfig": "the addresses of the control plane change",
    "addonsConfig.rayOperatorConfigs": (
        "GKE's Ray operator changes: RayClusters keep running, but while it is off no operator"
        " manages them"
    ),
    "workloadIdentityConfig": "pods get their Google identities from another pool",
    **CONTROL_PLANE_FIELDS,
}
"""Fields that recreate no nodes, and whose change something else notices, with the effects."""

_NETWORKS = "masterAuthorizedNetworksConfig"
_ENDPOINTS = (
    "controlPlaneEndpointsConfig",
    "privateClusterConfig.enablePrivateEndpoint",
)
"""Fields that the provider sends together with the authorized networks."""

ZONES_FIELD = "nodeLocations"
"""Field with the zones of the cluster's nodes."""

_KNOWN_FIELDS = (*UNNOTICED_FIELDS, *DISTURBING_FIELDS, *RECREATING_FIELDS)


def gke_cluster_effects(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of the GKE cluster itself."""
    if step.operation in ("replace", "delete"):
        return [_loss(step, fleet)]
    effects: dict[str, Effect] = {}
    for changed in step.properties:
        for part in _parts(changed):
            effect = _effect(part, step, fleet)
            if effect:
                effects.setdefault(effect.text, effect)
    return [*effects.values(), *_cleared_networks(step, fleet)]


def _cleared_networks(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effect of a change of endpoints on authorized networks that nobody wrote here.

    The provider sends all endpoints at once, with the networks that the state has
    (`desiredControlPlaneEndpointsConfig` in resource_container_cluster.go): none, where somebody
    set them in GKE after the last refresh.
    """
    if not any(below(changed.path, field) for changed in step.properties for field in _ENDPOINTS):
        return []
    endpoints = step.after.get("controlPlaneEndpointsConfig") or {}
    has_addresses = (endpoints.get("ipEndpointsConfig") or {}).get("enabled") is not False
    outputs = step.old.outputs if step.old else {}
    known = step.after.get(_NETWORKS) or (outputs.get(_NETWORKS) or {}).get("cidrBlocks")
    if known or not has_addresses:
        return []
    text = (
        "authorized networks that somebody has set in GKE, and that this stack does not know, are"
        " cleared with that: the control plane's addresses then answer every network; `pulumi"
        f" refresh -s {fleet.stack}` before keeps them, and `authorizedNetworks` names them"
    )
    return [Effect(Level.DISTURBS, text)]


def _loss(step: Step, fleet: PlannedFleet) -> Effect:
    """Return the effect of a cluster that goes with its pools, whatever is said of the pools."""
    text = "the cluster is deleted with everything on it"
    if step.operation == "replace":
        text += ", then recreated, empty"
    if step.before.get("deletionProtection"):
        text += (
            "; deletion protection refuses that until `deletionProtection: false` is brought up"
            " first"
        )
    gpus: list[GpusAway] = []
    for pool in fleet.before.values():
        gpus += gpus_away(pool, pool.nodes, back=pool.name in fleet.after)
    return Effect(Level.DESTROYS, text, sitting_on(fleet, fleet.everywhere), gpus)


def _parts(changed: Property) -> Iterator[Property]:
    """Yield the parts of a mapping that comes or goes whole, where something is known of parts."""
    old = changed.old if isinstance(changed.old, Mapping) else {}
    new = changed.new if isinstance(changed.new, Mapping) else {}
    has_known_parts = any(
        below(path, changed.path) and path != changed.path for path in _KNOWN_FIELDS
    )
    if not has_known_parts or not (old or new):
        yield changed
        return
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            path = f"{changed.path}.{key}"
            yield from _parts(replace(changed, path=path, old=old.get(key), new=new.get(key)))


def _effect(changed: Property, step: Step, fleet: PlannedFleet) -> Effect | None:
    path = changed.path
    if any(below(path, field) for field in UNNOTICED_FIELDS):
        return None
    if below(path, "deletionProtection"):
        return _end_of_protection(changed)
    if below(path, "minMasterVersion"):
        return _upgrade(changed, step)
    if below(path, ZONES_FIELD):
        return _other_zones(step, fleet)
    for field, text in DISTURBING_FIELDS.items():
        if below(path, field):
            return Effect(Level.DISTURBS, text)
    return _effect_on_nodes(path, fleet)


def _end_of_protection(changed: Property) -> Effect | None:
    if changed.new is not False:
        return None
    return Effect(
        Level.DISTURBS,
        "deletion protection is switched off: from now on nothing stops a `pulumi destroy`",
    )


def _other_zones(step: Step, fleet: PlannedFleet) -> Effect:
    """Return the effect of other zones of the cluster, which reaches the pools.

    "Changing cluster locations will update the locations of all node pools and will result in nodes
    being added and/or removed" (`desiredLocations` of
    https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/ClusterUpdate). The
    provider sends the old zones and the new ones together, then the new ones alone
    (resource_container_cluster.go), and only then come the pools' own requests.
    """
    old = _zones_of(step.before)
    new = _zones_of(step.after)
    left = sorted(old - new)
    together = f", first together with {', '.join(left)}" if left and new - old else ""
    leaving = [
        pool.name
        for pool in fleet.before.values()
        if pool.nodes.max and (set(pool.settings.get(ZONES_FIELD) or old) - new)
    ]
    text = (
        f"the zones of the cluster become {', '.join(sorted(new))}{together}: Google's API warns"
        " that all pools get them too, also those that name their own, with the number of nodes in"
        " each zone that they have before"
    )
    if not leaving:
        return Effect(Level.DISTURBS, text)
    sitting = sitting_on(fleet, leaving)
    text += f"; the nodes of {', '.join(leaving)} in other zones are deleted, with the pods there"
    return Effect(where_somebody_works(fleet, sitting), text, sitting)


def _zones_of(inputs: Mapping[str, Any]) -> set[str]:
    location = str(inputs.get("location") or "")
    own = {location} if is_zone(location) else set()
    return own | {str(zone) for zone in inputs.get(ZONES_FIELD) or []}


def _effect_on_nodes(path: str, fleet: PlannedFleet) -> Effect:
    """Return the effect of a field of which only the provider's source says something."""
    fact = resource_fields()[CLUSTER].field_at(path)
    if fact is not None and fact.nodes == "no" and not fact.replaces:
        return Effect(
            Level.DISTURBS, f"{path} changes in place; berth does not know the effect on what runs"
        )
    is_known = fact is not None and fact.nodes == "yes"
    guess = "" if is_known else " (berth does not know whether it does, and assumes the worst)"
    word = next((word for field, word in RECREATING_FIELDS.items() if below(path, field)), path)
    sitting = sitting_on(fleet, fleet.everywhere)
    text = (
        f"{word}: GKE recreates every node of the cluster{guess}, pool by pool, and evicts the pods"
        " on it"
    )
    return Effect(where_somebody_works(fleet, sitting), text, sitting)


def _upgrade(changed: Property, step: Step) -> Effect | None:
    """A minimum version is an upgrade only where the control plane is older."""
    outputs = step.old.outputs if step.old else {}
    running = str(outputs.get("masterVersion") or "")
    if changed.new is None or (running and _numbers(running) >= _numbers(str(changed.new))):
        return None
    if is_zone(str(step.before.get("location") or "")):
        meanwhile = (
            "the API server is away for minutes meanwhile, since the cluster is zonal (running work"
            " goes on, nothing new starts)"
        )
    else:
        meanwhile = "the API server stays, since the cluster is regional"
    from_running = f" from {running}" if running else ""
    text = (
        f"the control plane is upgraded{from_running} to {changed.new} or newer; {meanwhile}; GKE"
        " upgrades the nodes later, in a maintenance window"
    )
    return Effect(Level.DISTURBS, text)


def _numbers(version: str) -> list[int]:
    """`1.35.2-gke.1842000` as numbers; a shorter one is the least of those that begin with it."""
    return [int(number) for number in re.findall(r"\d+", version)]
