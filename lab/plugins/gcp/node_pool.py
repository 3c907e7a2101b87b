"""Node pools: what becomes KWOK nodes.

A change in place recreates the nodes where the facts about the field say so: all of them at once,
whatever `upgradeSettings` says.
"""

# ruff: noqa: D102 (the contract of each method is that of ResourceType)

import copy
from collections.abc import Iterable
from typing import Any

from pulumi.runtime.rpc import UNKNOWN

from berth.components.core.words import counted
from berth.components.hardware.machines import MACHINES
from berth.components.hardware.names import MANAGED_DRANET_LABEL
from berth.lab.plugins.gcp import contents, supply
from berth.lab.plugins.gcp.cluster import find_cluster, gke_version
from berth.lab.plugins.gcp.errors import GoogleApiError, ProviderError
from berth.lab.plugins.gcp.kinds import Kind
from berth.lab.plugins.gcp.locations import ZONES
from berth.lab.plugins.gcp.nodes import expected, group_name, resize, sizes_of
from berth.lab.plugins.gcp.pools import PoolInputs
from berth.lab.plugins.gcp.resource import Cloud, Edit, ResourceType
from berth.lab.plugins.gcp.store import StoredRecord

_SCOPES = tuple(
    f"https://www.googleapis.com/auth/{name}"
    for name in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
)
"""Access scopes of nodes without any (https://docs.cloud.google.com/kubernetes-engine/docs/
how-to/access-scopes)."""

_EMPTY_MAPS = ("resourceLabels", "resourceManagerTags")
_FURTHER = "additionalNodeNetworkConfigs"


def _sizes_with_missing(record: StoredRecord) -> dict[str, int]:
    """Return the target sizes of the pool's instance groups, with instances that lack machines."""
    missing = supply.missing_of(record)
    return {zone: size + missing.get(zone, 0) for zone, size in sizes_of(record).items()}


def _networks(values: dict[str, Any]) -> dict[str, Any]:
    """Return `networkConfig` of inputs, outputs or a plan; empty where there is none."""
    found = values.get("networkConfig")
    return found if isinstance(found, dict) else {}


def _check_place(pool: PoolInputs, zones: list[str]) -> None:
    """Refuse machines and zones that the hardware table and the list of zones lack."""
    for zone in zones:
        if zone not in ZONES:
            raise GoogleApiError("bad-location", zone=zone)
    if pool.machine_name not in MACHINES:
        raise GoogleApiError("bad-machine-type", name=pool.machine_name, zone=zones[0])


class SimulatedNodePool(ResourceType):
    """`gcp:container/nodePool:NodePool`."""

    token = "gcp:container/nodePool:NodePool"  # noqa: S105 (a type token)
    title = "NodePool"
    path = "projects/{project}/locations/{location}/clusters/{cluster}/nodePools/{name}"
    located = "location"
    computed = ("instanceGroupUrls", "managedInstanceGroupUrls", "version")

    def id(self, inputs: dict[str, Any]) -> str:
        cluster = str(inputs["cluster"])
        return f"{cluster}/nodePools/{inputs['name']}" if "/" in cluster else super().id(inputs)

    def differences(
        self, state: dict[str, Any], inputs: dict[str, Any], ignored: Iterable[str] = ()
    ) -> dict[str, Kind]:
        """Add the empty maps that the provider plans for a pool that was not refreshed yet."""
        found = super().differences(state, inputs, ignored)
        config = state.get("nodeConfig")
        if not found or not isinstance(config, dict) or "instanceGroupUrls" not in state:
            return found
        kind = Kind.ADD
        if any(difference.replaces for difference in found.values()):
            kind = kind.as_replace()
        maps = (f"nodeConfig.{name}" for name in _EMPTY_MAPS if config.get(name) is None)
        return {**dict.fromkeys(maps, kind), **found}

    def customize(self, edit: Edit) -> bool:
        """Empty a list of networks that the inputs leave out, unless GKE created the networks.

        Raises:
            ProviderError: the list is unknown: the real plugin ends there, since this code of the
                provider (nodePoolAcceleratorNetworkProfileCustomizeDiff) goes through it.
        """
        given, before, after = map(_networks, (edit.inputs, edit.state, edit.plan))
        if UNKNOWN in (edit.inputs.get("networkConfig"), given.get(_FURTHER)):
            raise ProviderError(
                "Bridged provider panic (method=Diff): can't use ElementIterator on unknown value"
            )
        profile = after.get("acceleratorNetworkProfile")
        made_by_gke = profile and profile == before.get("acceleratorNetworkProfile")
        if after.get(_FURTHER) and not given.get(_FURTHER) and not made_by_gke:
            edit.plan["networkConfig"] = {**after, _FURTHER: []}
        return False

    def create(self, cloud: Cloud, record: StoredRecord) -> None:
        cluster = self._cluster(cloud, record)
        pool = PoolInputs(record.inputs)
        _check_place(pool, pool.zones(cluster))
        record.state["version"] = cluster.state["version"]
        # GKE looks once, at creation, whether pods without GPUs have a pool (docs/how-to/gpus).
        others = [
            other
            for other in cloud.store.list("nodePools")
            if other.id.startswith(f"{cluster.id}/")
        ]
        record.state["gpu_taint"] = any(
            not PoolInputs(other.inputs).machine.gpus for other in others
        )
        self._supply(cloud, None, record, pool.start_sizes(pool.zones(cluster)))

    def update(self, cloud: Cloud, old: StoredRecord, record: StoredRecord) -> None:
        cluster = self._cluster(cloud, record)
        pool = PoolInputs(record.inputs)
        if pool.config.get("taints") != PoolInputs(old.inputs).config.get("taints"):
            # The provider sends the whole list, without what GKE added (node_config.go).
            record.state["gpu_taint"] = False
        if pool.bounds is not None:
            # The autoscaler's business from now on: the number that was asked for before does not
            # come back.
            record.inputs.pop("nodeCount", None)
        _check_place(pool, pool.zones(cluster))
        anew = self._recreates_nodes(cloud, old, record)
        if anew:
            record.state["generation"] = int(record.state.get("generation", 0)) + 1
        sizes = _sizes_with_missing(record)
        zones = pool.zones(cluster)
        count = record.inputs.get("nodeCount")
        kept = None if anew else old
        if count is not None and pool.bounds is None:
            if set(sizes) != set(zones) and old.inputs.get("nodeCount") != count:
                # The provider sends the number of nodes before the zones.
                self._supply(cloud, kept, record, dict.fromkeys(sizes, int(count)))
                kept = kept and copy.deepcopy(record)
            sizes = dict.fromkeys(zones, int(count))
        else:
            # The autoscaler's business, or nobody's: zones keep what they have.
            start = int(record.inputs.get("initialNodeCount") or 0)
            sizes = {zone: sizes.get(zone, start) for zone in zones}
        self._supply(cloud, kept, record, sizes)

    def _recreates_nodes(self, cloud: Cloud, old: StoredRecord, record: StoredRecord) -> bool:
        """Whether GKE recreates the nodes for a change in place; unknown effects only warn."""
        facts = {
            path: self.facts.field_at(path) for path in self.differences(old.inputs, record.inputs)
        }
        for path, fact in facts.items():
            if fact is None or fact.nodes == "unknown":
                cloud.warn(
                    f"{path}: whether GKE recreates the nodes for this change is not known; the lab"
                    " leaves them"
                )
        return any(fact is not None and fact.nodes == "yes" for fact in facts.values())

    @staticmethod
    def _supply(
        cloud: Cloud, old: StoredRecord | None, record: StoredRecord, sizes: dict[str, int]
    ) -> None:
        """Give a pool its instances as far as there are machines, and note the missing ones.

        It keeps the nodes of the old pool; without one they are all new.
        """
        conditions = cloud.conditions()
        pools = [pool for pool in cloud.store.list("nodePools") if pool.id != record.id]
        pools += [old] if old is not None else []
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

    def unfinished(self, cloud: Cloud, old: StoredRecord | None, record: StoredRecord) -> list[str]:
        """Machines that a zone has run out of.

        The real provider (resource_container_node_pool.go) records a new pool whose machines do not
        all come, and then says no more than its status; why, only GKE tells. It retries by itself.
        What the autoscaler adds is not waited for.
        """
        missing = supply.missing_of(record)
        count = record.inputs.get("nodeCount")
        if count is None and old is None:
            count = record.inputs.get("initialNodeCount")
        if not missing or not count:
            return []
        reasons = [supply.stock_out(record, zone) for zone in missing]
        if old is None:
            state = "RUNNING_WITH_ERROR" if any(sizes_of(record).values()) else "ERROR"
            for reason in reasons:
                cloud.warn(
                    f"{reason} (the real provider leaves this out:"
                    f" `gcloud container node-pools describe {record.name}` shows it)"
                )
            return [f'NodePool {record.name} was created in the error state "{state}"']
        if old.inputs.get("nodeCount") == count:
            return []
        return [f"Error waiting for updating GKE node pool size: {reason}" for reason in reasons]

    def settle(self, cloud: Cloud, record: StoredRecord) -> None:
        if (PoolInputs(record.inputs).config.get("labels") or {}).get(
            MANAGED_DRANET_LABEL
        ) == "true":
            cloud.say(
                "GKE's managed DRANET brings its device classes; the lab's controller plays the"
                " driver"
            )
            cloud.fleet.create(contents.add_on("dranet"))
        cloud.say(f"{counted(len(expected(record)), 'KWOK node')} for {record.name}")
        cloud.fleet.reconcile(record)

    def delete(self, cloud: Cloud, record: StoredRecord) -> None:
        cloud.say(f"removing the nodes of {record.name}")
        cloud.fleet.remove(list(cloud.fleet.nodes(record.name)))

    def observe(self, cloud: Cloud, record: StoredRecord) -> StoredRecord:
        """A pool has the nodes that the API server shows, and that many count."""
        there = cloud.fleet.nodes(record.name)
        names = expected(record)
        seen: dict[str, list[int]] = {zone: [] for zone in record.state.get("instances") or {}}
        for name, (zone, number) in names.items():
            if name in there:
                seen[zone].append(number)
        observed = StoredRecord(record.id, dict(record.inputs), {**record.state, "instances": seen})
        count = self._count(observed)
        if record.inputs.get("nodeCount") is not None and PoolInputs(record.inputs).bounds is None:
            observed.inputs["nodeCount"] = count
        return observed

    @staticmethod
    def _count(record: StoredRecord) -> int:
        """Return nodes per zone as the provider counts: the mean of the targets, rounded down."""
        sizes = _sizes_with_missing(record)
        return sum(sizes.values()) // len(sizes) if sizes else 0

    @staticmethod
    def _cluster(cloud: Cloud, record: StoredRecord) -> StoredRecord:
        inputs = record.inputs
        cluster = find_cluster(
            cloud.store, str(inputs["cluster"]), str(inputs["project"]), str(inputs["location"])
        )
        if inputs["location"] != cluster.inputs["location"]:
            location = f"projects/{inputs['project']}/locations/{inputs['location']}"
            path = f"{location}/clusters/{cluster.name}"
            raise GoogleApiError("no-cluster", path=path)
        return cluster

    def kept(self, inputs: dict[str, Any]) -> dict[str, Any]:
        pool = PoolInputs(inputs)
        config = {
            "machineType": pool.machine_name,
            "diskSizeGb": pool.disk_gib,
            "diskType": pool.disk_type,
            "imageType": "COS_CONTAINERD",
            "labels": {},
            "oauthScopes": list(_SCOPES),
            "serviceAccount": "default",
            "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
            "workloadMetadataConfig": {"mode": "GKE_METADATA"},
            **pool.config,
        }
        return {
            "maxPodsPerNode": pool.max_pods,
            "management": {"autoRepair": True, "autoUpgrade": True},
            "upgradeSettings": {"maxSurge": 1, "maxUnavailable": 0, "strategy": "SURGE"},
            **inputs,
            "nodeConfig": config,
        }

    def outputs(self, record: StoredRecord) -> dict[str, Any]:
        zones = list(record.state.get("instances") or {})
        groups = {zone: f"{group_name(record, zone)}-grp" for zone in zones}
        base = f"https://www.googleapis.com/compute/v1/projects/{record.project}/zones"
        return {
            **self.kept(record.inputs),
            "initialNodeCount": int(record.inputs.get("initialNodeCount") or 0),
            "instanceGroupUrls": [
                f"{base}/{zone}/instanceGroups/{name}" for zone, name in groups.items()
            ],
            "managedInstanceGroupUrls": [
                f"{base}/{zone}/instanceGroupManagers/{name}" for zone, name in groups.items()
            ],
            "nodeCount": self._count(record),
            "nodeLocations": zones,
            "version": gke_version(record.state["version"]),
        }
