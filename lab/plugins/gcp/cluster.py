"""GKE clusters: one for each lab, since there is one control plane to be it.

The service range and the number behind `-gke.` in the outputs are the lab's choice.
"""

# ruff: noqa: D102 (the contract of each method is that of ResourceType)

from collections.abc import Mapping
from typing import Any

from pulumi.runtime.rpc import UNKNOWN

from berth.lab.plugins.gcp import contents
from berth.lab.plugins.gcp.differences import MAPS_OF_BRIDGE
from berth.lab.plugins.gcp.errors import GoogleApiError, ProviderError
from berth.lab.plugins.gcp.pools import cluster_zones
from berth.lab.plugins.gcp.resource import (
    Cloud,
    Edit,
    ResourceType,
    number_of,
    whole_reference,
)
from berth.lab.plugins.gcp.store import Store, StoredRecord

ADDED_LABELS = {"goog-pulumi-provisioned": "true"}
"""Labels that Pulumi's plugin for Google adds to those of the program (its provider setting
`addPulumiAttributionLabel`)."""


_DEFAULTS = {
    "datapathProvider": "LEGACY_DATAPATH",
    "defaultMaxPodsPerNode": 110,
    "deletionProtection": True,
    "loggingService": "logging.googleapis.com/kubernetes",
    "monitoringService": "monitoring.googleapis.com/kubernetes",
}
_DEFAULT_BLOCKS: Mapping[str, Mapping[str, Any]] = {
    "addonsConfig": {
        "dnsCacheConfig": {"enabled": True},
        "gcePersistentDiskCsiDriverConfig": {"enabled": True},
        "networkPolicyConfig": {"disabled": True},
    },
    "controlPlaneEndpointsConfig": {
        "dnsEndpointConfig": {"allowExternalTraffic": False},
        "ipEndpointsConfig": {"enabled": True},
    },
    "databaseEncryption": {"state": "DECRYPTED"},
    "loggingConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]},
    "monitoringConfig": {
        "enableComponents": ["SYSTEM_COMPONENTS"],
        "managedPrometheus": {"enabled": True},
    },
    "privateClusterConfig": {"enablePrivateNodes": False},
    "releaseChannel": {"channel": "REGULAR"},
    "secretSyncConfig": {"enabled": False},
}
"""Values that GKE gives a cluster whose inputs leave them out, as far as berth sets them."""


def _over(defaults: Mapping[str, Any], given: Any) -> Any:
    """Return defaults with the given values laid over them, block by block."""
    if not isinstance(given, Mapping):
        return dict(defaults) if given is None else given
    merged = {**defaults, **given}
    for name, value in defaults.items():
        if isinstance(value, Mapping):
            merged[name] = _over(value, given.get(name))
    return merged


def find_cluster(store: Store, reference: str, project: str, location: str) -> StoredRecord:
    """The cluster that a node pool names, by name or path."""
    path = (
        reference
        if "/" in reference
        else f"projects/{project}/locations/{location}/clusters/{reference}"
    )
    cluster = store.get(path)
    if cluster is None:
        raise GoogleApiError("no-cluster", path=path)
    return cluster


def pools_of(store: Store, cluster: StoredRecord) -> list[StoredRecord]:
    """The cluster's node pools."""
    return [
        pool
        for pool in store.list("nodePools", cluster.project)
        if pool.id.startswith(f"{cluster.id}/")
    ]


def gke_version(version: str) -> str:
    """A Kubernetes version as GKE would call it."""
    return f"{version.removeprefix('v')}-gke.1000"


def _beta_apis(inputs: dict[str, Any]) -> set[str]:
    return set((inputs.get("enableK8sBetaApis") or {}).get("enabledApis") or [])


class SimulatedCluster(ResourceType):
    """`gcp:container/cluster:Cluster`."""

    token = "gcp:container/cluster:Cluster"  # noqa: S105 (a type token)
    title = "Cluster"
    path = "projects/{project}/locations/{location}/clusters/{name}"
    located = "location"
    computed = (
        *(
            "endpoint",
            "controlPlaneEndpointsConfig",
            "selfLink",
            "masterVersion",
            "masterAuth",
            "servicesIpv4Cidr",
        ),
        "labelFingerprint",
    )

    def customize(self, edit: Edit) -> bool:
        """Plan the outputs of the bridge that follow from the cluster's labels.

        Two features and Kubernetes beta APIs cannot be switched off on a cluster.
        """
        labels = edit.plan.get("resourceLabels") or {}
        for name in MAPS_OF_BRIDGE:
            before = edit.state.get(name)
            if before is not None:
                added = {key: before[key] for key in ADDED_LABELS if key in before}
                edit.plan[name] = labels if labels == UNKNOWN else {**added, **labels}
        switches = ("enableL4IlbSubsetting", "enableFqdnNetworkPolicy")
        return bool(_beta_apis(edit.state) - _beta_apis(edit.plan)) or any(
            edit.state.get(name) and not edit.plan.get(name) for name in switches
        )

    def create(self, cloud: Cloud, record: StoredRecord) -> None:
        inputs = record.inputs
        for other in cloud.store.list("clusters"):
            raise ProviderError(
                f"this lab has one control plane, and it is {other.id}: a second cluster has none"
                " to run on. Destroy that one first, or start another lab beside this one: berth"
                ' lab up --no-update --home FOLDER, then eval "$(berth lab env --home FOLDER)"'
            )
        if inputs.get("nodePools") or not inputs.get("removeDefaultNodePool"):
            raise GoogleApiError("no-default-pool")
        cloud.say("adopting the lab's control plane")
        endpoint, authority = cloud.fleet.endpoint()
        record.state |= {
            "endpoint": endpoint,
            "clusterCaCertificate": authority,
            "version": cloud.fleet.version(),
        }

    def settle(self, cloud: Cloud, record: StoredRecord) -> None:
        cloud.fleet.create(contents.of_storage(record.inputs))
        if contents.ray_operator(record.inputs):
            cloud.say(
                "GKE's Ray operator add-on brings the kinds of Ray; the lab's controller runs the"
                " operator"
            )
            cloud.fleet.define_ray()

    def undo(self, cloud: Cloud, record: StoredRecord) -> None:
        """Leave alone what was in the lab's API server before."""
        self._remove_pools(cloud, record)

    def delete(self, cloud: Cloud, record: StoredRecord) -> None:
        if record.inputs.get("deletionProtection", True):
            raise ProviderError(
                "Cannot destroy cluster because deletion_protection is set to true. Set it to false"
                " to proceed with cluster deletion."
            )
        self._remove_pools(cloud, record)
        cloud.say("deleting what is in the cluster")
        left = cloud.fleet.clear()
        if left:
            cloud.warn(f"still going away in the lab's API server: {', '.join(left)}")

    @staticmethod
    def _remove_pools(cloud: Cloud, record: StoredRecord) -> None:
        for pool in pools_of(cloud.store, record):
            cloud.say(f"removing the nodes of {pool.name}")
            cloud.fleet.remove(list(cloud.fleet.nodes(pool.name)))
            cloud.store.remove(pool.id)

    def kept(self, inputs: dict[str, Any]) -> dict[str, Any]:
        values = {**_DEFAULTS, **inputs}
        for name, block in _DEFAULT_BLOCKS.items():
            values[name] = _over(block, inputs.get(name))
        values.setdefault(
            "networkingMode", "VPC_NATIVE" if inputs.get("ipAllocationPolicy") else "ROUTES"
        )
        project = inputs.get("project")
        region = "-".join(str(inputs.get("location")).split("-")[:2])
        parents = {"network": "global", "subnetwork": f"regions/{region}"}
        for name, place in parents.items():
            if project and name in inputs:
                parent = f"projects/{project}/{place}/{name}s"
                values[name] = whole_reference(inputs[name], parent)
        return values

    def outputs(self, record: StoredRecord) -> dict[str, Any]:
        version = gke_version(record.state["version"])
        authority = {"clusterCaCertificate": record.state["clusterCaCertificate"]}
        kept = self.kept(record.inputs)
        endpoints = kept["controlPlaneEndpointsConfig"]
        # The lab's control plane has one address, which stands for its DNS name, too.
        by_name = {**endpoints["dnsEndpointConfig"], "endpoint": record.state["endpoint"]}
        labels = {
            str(key): str(value)
            for key, value in (record.inputs.get("resourceLabels") or {}).items()
        }
        return {
            **kept,
            **{name: {**ADDED_LABELS, **labels} for name in MAPS_OF_BRIDGE},
            "controlPlaneEndpointsConfig": {**endpoints, "dnsEndpointConfig": by_name},
            "endpoint": record.state["endpoint"],
            "labelFingerprint": number_of(repr(sorted(labels.items())))[:8],
            "masterAuth": {**(record.inputs.get("masterAuth") or {}), **authority},
            "masterVersion": version,
            "nodeVersion": version,
            "nodeLocations": [
                zone for zone in cluster_zones(record.inputs) if zone != record.inputs["location"]
            ],
            "selfLink": f"https://container.googleapis.com/v1/{record.id}",
            "servicesIpv4Cidr": "10.0.0.0/16",
        }
