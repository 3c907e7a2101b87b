"""Node pools: what becomes KWOK nodes.

Replacement rules: the `ForceNew` fields of google/services/container/resource_container_node_pool.go and node_config.go
in hashicorp/terraform-provider-google (August 2026). By them a new machine type or disk changes the pool in place: GKE
makes its nodes anew, and so does this.
"""

# ruff: noqa: D102 (the contract of each method is that of ResourceType)

from __future__ import annotations

from typing import Any, ClassVar

from lab.plugins.gcp import supply
from lab.plugins.gcp.cluster import find_cluster
from lab.plugins.gcp.errors import GoogleApiError
from lab.plugins.gcp.node_pool_rules import check_pool
from lab.plugins.gcp.nodes import expected, group_name, resize, sizes_of
from lab.plugins.gcp.pools import Pool
from lab.plugins.gcp.resource import (
    Cloud,
    ResourceType,
    last_part,
    location_problems,
    name_problems,
    one_of,
)
from lab.plugins.gcp.store import Record

NAME_LENGTH = 40

DRANET_LABEL = "cloud.google.com/gke-networking-dra-driver"
"""Node label for which GKE runs DraNet itself ("Allocate network resources by using managed DRANET")."""

_NODE_CONFIG_REPLACES = (
    *("guestAccelerators", "localSsdCount", "ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"),
    *("secondaryBootDisks", "metadata", "minCpuPlatform", "oauthScopes", "preemptible", "spot", "flexStart"),
    *("maxRunDuration", "reservationAffinity", "serviceAccount", "shieldedInstanceConfig", "sandboxConfig"),
    *("bootDiskKmsKey", "nodeGroup", "advancedMachineFeatures.threadsPerCore", "soleTenantConfig"),
    *("advancedMachineFeatures.enableNestedVirtualization", "hostMaintenancePolicy.maintenanceInterval"),
    *("confidentialNodes.confidentialInstanceType", "enableConfidentialStorage", "localSsdEncryptionMode"),
    *("ephemeralStorageConfig", "taintConfig.architectureTaintBehavior"),
)

# In place, but with new nodes ("Node upgrade strategies": changes that recreate nodes).
_RECREATES = ("machineType", "diskType", "diskSizeGb", "bootDisk", "imageType")


_DISK_GIB_LEAST = 10


def _sizes_with_missing(record: Record) -> dict[str, int]:
    """The sizes that the pool's instance groups are to have; the machines for some may be missing."""
    missing = supply.missing_of(record)
    return {zone: size + missing.get(zone, 0) for zone, size in sizes_of(record).items()}


def _at_least(path: str, value: object, least: int) -> list[tuple[str, str]]:
    if not isinstance(value, int) or value >= least:
        return []
    return [(path, f"expected {path} to be at least ({least}), got {value}")]


class NodePool(ResourceType):
    """`gcp:container/nodePool:NodePool`."""

    token = "gcp:container/nodePool:NodePool"  # noqa: S105 (a type token)
    title = "NodePool"
    permission = "container.clusters"
    part = True
    located = "location"
    replaces: ClassVar[frozenset[str]] = frozenset(
        {
            *("name", "namePrefix", "cluster", "location", "project", "initialNodeCount", "maxPodsPerNode"),
            *("placementPolicy.policyName", "queuedProvisioning"),
            *("networkConfig.acceleratorNetworkProfile", "networkConfig.createPodRange", "networkConfig.podRange"),
            *("networkConfig.podIpv4CidrBlock", "networkConfig.additionalNodeNetworkConfigs"),
            *("networkConfig.additionalPodNetworkConfigs", "networkConfig.podCidrOverprovisionConfig"),
            "networkConfig.subnetwork",
            *(f"nodeConfig.{key}" for key in _NODE_CONFIG_REPLACES),
        }
    )
    computed = ("instanceGroupUrls", "managedInstanceGroupUrls", "version")

    def id(self, inputs: dict[str, Any]) -> str:
        cluster = str(inputs["cluster"])
        if "/" in cluster:
            return f"{cluster}/nodePools/{inputs['name']}"
        return (
            f"projects/{inputs['project']}/locations/{inputs['location']}/clusters/{cluster}/nodePools/{inputs['name']}"
        )

    def problems(self, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        found = [
            *name_problems(inputs.get("name"), NAME_LENGTH),
            *location_problems("location", inputs.get("location")),
        ]
        config = inputs.get("nodeConfig") or {}
        for key in ("nodeCount", "initialNodeCount"):
            found += _at_least(key, inputs.get(key), 0)
        if isinstance(config, dict):
            found += _at_least("nodeConfig.diskSizeGb", config.get("diskSizeGb"), _DISK_GIB_LEAST)
            found += self._value_problems(config)
        return found

    @staticmethod
    def _value_problems(config: dict[str, Any]) -> list[tuple[str, str]]:
        """Values out of the provider's own lists."""
        found = []
        for index, taint in enumerate(config.get("taints") or []):
            effects = ("NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE")
            found += one_of(f"nodeConfig.taints[{index}].effect", taint.get("effect"), effects)
        affinity = config.get("reservationAffinity") or {}
        found += one_of(
            "nodeConfig.reservationAffinity.consumeReservationType",
            affinity.get("consumeReservationType"),
            ("UNSPECIFIED", "NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION"),
        )
        return found

    def create(self, cloud: Cloud, record: Record) -> None:
        cluster = self._cluster(cloud, record)
        pool = Pool(record.inputs)
        check_pool(cloud, cluster, record, pool)
        record.state["version"] = cluster.state["version"]
        if pool.queued:
            cloud.warn(
                f"pool {record.name} is queued: its nodes come by ProvisioningRequests, which this lab does not serve"
            )
        self._supply(cloud, None, record, pool.start_sizes(pool.zones(cluster)))

    def update(self, cloud: Cloud, old: Record, record: Record) -> None:
        cluster = self._cluster(cloud, record)
        pool = Pool(record.inputs)
        check_pool(cloud, cluster, record, pool)
        before, after = Pool(old.inputs).config, pool.config
        anew = any(before.get(key) != after.get(key) for key in _RECREATES)
        if anew:
            record.state["generation"] = int(record.state.get("generation", 0)) + 1
        sizes = _sizes_with_missing(record)
        zones = pool.zones(cluster)
        count = record.inputs.get("nodeCount")
        if count is not None and pool.bounds is None:
            sizes = dict.fromkeys(zones, int(count))
        else:
            # The autoscaler's business, or nobody's: zones keep what they have.
            start = int(record.inputs.get("initialNodeCount") or 0)
            sizes = {zone: sizes.get(zone, start) for zone in zones}
        self._supply(cloud, None if anew else old, record, pool.within_bounds(sizes))

    @staticmethod
    def _supply(cloud: Cloud, old: Record | None, record: Record, sizes: dict[str, int]) -> None:
        """Give a pool its instances, as far as there are machines for them; what is missing is noted.

        Args:
            cloud: where it is.
            old: the pool whose nodes it keeps; None if they are all new.
            record: the pool.
            sizes: how many it should have in each zone.

        Raises:
            GoogleApiError: a quota or a reservation does not allow them.
        """
        conditions = cloud.conditions()
        pools = [pool for pool in cloud.store.list("nodePools") if old is not None or pool.id != record.id]
        have = sizes_of(old) if old is not None else {}
        more = {zone: max(size - have.get(zone, 0), 0) for zone, size in sizes.items()}
        supply.check_quota(conditions, pools, record, sum(more.values()))
        supply.check_reservation(conditions, pools, record, more)
        granted = {}
        for zone, size in sizes.items():
            left = supply.in_stock(conditions, pools, record, zone).left
            granted[zone] = size if left is None else min(size, have.get(zone, 0) + left)
        resize(record, granted)
        record.state["missing"] = {zone: size - granted[zone] for zone, size in sizes.items()}

    def unfinished(self, cloud: Cloud, old: Record | None, record: Record) -> list[str]:
        """Machines that a zone has run out of.

        The real provider (resource_container_node_pool.go) records a new pool whose machines do not all come, and then
        says no more than its status; why, only GKE tells. It retries by itself. What the autoscaler adds is not waited
        for.
        """
        missing = supply.missing_of(record)
        count = record.inputs.get("nodeCount")
        if count is None and old is None:
            count = record.inputs.get("initialNodeCount")
        if not missing or not count:
            return []
        reasons = [supply.stock_out(record, zone, cloud.latency) for zone in missing]
        if old is None:
            state = "RUNNING_WITH_ERROR" if any(sizes_of(record).values()) else "ERROR"
            for reason in reasons:
                cloud.warn(
                    f"{reason} (the real provider leaves this out: `gcloud container node-pools describe {record.name}` "
                    "shows it)"
                )
            return [f'NodePool {record.name} was created in the error state "{state}"']
        if old.inputs.get("nodeCount") == count:
            return []
        return [f"Error waiting for updating GKE node pool size: {reason}" for reason in reasons]

    def settle(self, cloud: Cloud, record: Record) -> None:
        if (Pool(record.inputs).config.get("labels") or {}).get(DRANET_LABEL) == "true":
            cloud.say("GKE's managed DRANET brings its device classes; the lab's controller plays the driver")
            cloud.fleet.define_network_classes()
        cloud.say(f"{len(expected(record))} KWOK nodes for {record.name}")
        cloud.fleet.reconcile(record)

    def delete(self, cloud: Cloud, record: Record) -> None:
        cloud.say(f"removing the nodes of {record.name}")
        cloud.fleet.remove(list(cloud.fleet.nodes(record.name)))

    def observe(self, cloud: Cloud, record: Record) -> Record:
        """A pool has the nodes that the API server shows, and that many count."""
        there = cloud.fleet.nodes(record.name)
        wanted = expected(record)
        seen: dict[str, list[int]] = {zone: [] for zone in record.state.get("instances") or {}}
        for name, (zone, number) in wanted.items():
            if name in there:
                seen[zone].append(number)
        observed = Record(record.id, dict(record.inputs), {**record.state, "instances": seen})
        count = self._count(observed)
        if record.inputs.get("nodeCount") is not None and Pool(record.inputs).bounds is None:
            observed.inputs["nodeCount"] = count
        return observed

    @staticmethod
    def _count(record: Record) -> int:
        """Nodes for each zone, as the provider counts: the mean, rounded down, of what should be there."""
        sizes = _sizes_with_missing(record)
        return sum(sizes.values()) // len(sizes) if sizes else 0

    @staticmethod
    def _cluster(cloud: Cloud, record: Record) -> Record:
        inputs = record.inputs
        cluster = find_cluster(cloud.store, str(inputs["cluster"]), str(inputs["project"]), str(inputs["location"]))
        if inputs["location"] != cluster.inputs["location"]:
            raise GoogleApiError(
                404,
                f"Not found: projects/{inputs['project']}/locations/{inputs['location']}/clusters/{cluster.name}.",
                "notFound",
            )
        return cluster

    def outputs(self, record: Record) -> dict[str, Any]:
        pool = Pool(record.inputs)
        zones = list(record.state.get("instances") or {})
        groups = {zone: f"{group_name(record, zone)}-grp" for zone in zones}
        base = f"https://www.googleapis.com/compute/v1/projects/{record.project}/zones"
        config = {
            "machineType": pool.machine_name,
            "diskSizeGb": pool.disk_gib,
            "diskType": pool.disk_type,
            "imageType": "COS_CONTAINERD",
            **pool.config,
        }
        return {
            "maxPodsPerNode": pool.max_pods,
            "management": {"autoRepair": True, "autoUpgrade": True},
            **record.inputs,
            "cluster": last_part(record.inputs["cluster"]),
            "initialNodeCount": int(record.inputs.get("initialNodeCount") or 0),
            "instanceGroupUrls": [f"{base}/{zone}/instanceGroups/{name}" for zone, name in groups.items()],
            "managedInstanceGroupUrls": [
                f"{base}/{zone}/instanceGroupManagers/{name}" for zone, name in groups.items()
            ],
            "nodeConfig": config,
            "nodeCount": self._count(record),
            "nodeLocations": zones,
            "version": f"{str(record.state['version']).removeprefix('v')}-gke.1000",
        }
