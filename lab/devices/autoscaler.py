"""The cluster autoscaler: it adds nodes for pods that fit none, and removes idle ones.

A new node is expected to be a copy of the oldest node of its instance group, or of the last one
that the group had. For a group that never had a node, it is derived from the machine: cores,
memory, and nvidia.com/gpu for each accelerator; by the labels of their drivers also NICs of managed
DRANET, and GPUs up to H100 80GB, to claim. A node with an accelerator and without nvidia.com/gpu
counts as unready, whatever else it advertises, and is never copied. Claimed devices are counted
like cores: berth claims whole nodes, or pairs of a GPU and its NIC.

Simplified: the emptiest zone grows first, a node goes when only pods of DaemonSets are left on it,
and a pod that a node was added for waits for half a minute before another one is.
"""

import logging
import os
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from berth.components.cluster.api import NODES, PODS, Object
from berth.components.cluster.inventory import Inventory, inventory_of_objects
from berth.components.cluster.nodes import untolerated_taint
from berth.components.cluster.pods import finds_no_node, has_a_node
from berth.components.hardware import names
from berth.components.hardware.names import (
    ACCELERATOR_LABEL,
    CLAIMED_LABEL,
    GPU_RESOURCE,
    MANAGED_DRANET_LABEL,
    POOL_LABEL,
)
from berth.lab.api import CLAIMS, SLICES, Api
from berth.lab.devices.gpu_cluster import is_of_daemonset
from berth.lab.devices.gpus import gpu_count, gpu_of
from berth.lab.devices.scheduling import Amounts, amounts, requests, selected
from berth.lab.plugins.gcp.conditions import of_cloud
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.nodes import expected, group_name, manifest, resize, sizes_of, taints
from berth.lab.plugins.gcp.pools import PoolBounds, PoolInputs
from berth.lab.plugins.gcp.store import Store, StoredRecord
from berth.lab.plugins.gcp.supply import missing_of, room

IDLE_VARIABLE = "BERTH_LAB_SCALE_DOWN_SECONDS"

# GKE takes an idle node away after ten minutes; nobody watches a lab for that long.
_IDLE_SECONDS = 60.0
# A new node shows its devices, and the scheduler sees them, well before this.
_HELPED_SECONDS = 30.0
# The autoscaler writes an event at each look; kubectl shows differences of this size.
_REPEAT_SECONDS = 60.0
_SOURCE = "cluster-autoscaler"

_NICS = names.DRANET_DRIVER
_GPUS = names.GPU
_CLASSES = {names.DRANET: _NICS, names.MANAGED_RDMA: _NICS, names.GPU: _GPUS}
_ZONE = "topology.kubernetes.io/zone"
_HOST = "kubernetes.io/hostname"

_log = logging.getLogger("berth.lab.devices.autoscaler")


@dataclass
class Place:
    """A node, or the node that a pool would add, as pods see it."""

    labels: Mapping[str, str]
    taints: list[dict[str, str]]
    free: Amounts  # resources for pods, devices to claim among them
    growth: str = (
        ""  # text of the event about the growth that brings the node; empty for one that is there
    )

    def obstacle(self, pod: Object, asked: Amounts) -> str:
        """Return why the node does not help a pod, in the autoscaler's words; empty if it would."""
        if taint := untolerated_taint(self.taints, pod["spec"].get("tolerations") or []):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
        if not selected(pod["spec"], self.labels):
            return "node(s) didn't match Pod's node affinity/selector"
        for name, amount in asked.items():
            if self.free.get(name, 0) < amount:
                return (
                    "cannot allocate all claims"
                    if name in (_NICS, _GPUS)
                    else f"Insufficient {name}"
                )
        return ""

    def take(self, asked: Amounts) -> None:
        """Count a pod's resources as used."""
        self.free = {
            name: self.free.get(name, Decimal(0)) - asked.get(name, 0)
            for name in {*self.free, *asked}
        }


def autoscaled(store: Store) -> list[tuple[StoredRecord, PoolBounds]]:
    """Pools that the autoscaler resizes, with their bounds."""
    pools = [(record, PoolInputs(record.inputs)) for record in store.list("nodePools")]
    return [(record, pool.bounds) for record, pool in pools if pool.bounds is not None]


def _counts_as_ready(labels: Mapping[str, str], free: Amounts) -> bool:
    """Whether the autoscaler takes a node for ready: it has its GPUs, if it should have any."""
    if ACCELERATOR_LABEL not in labels or _claimed(labels):
        return True
    return free.get(GPU_RESOURCE, 0) > 0


class Autoscaler:
    """Grows and shrinks the pools of one lab, and fills pools that wait for machines."""

    def __init__(self, store: Store, fleet: SimulatedFleet, api: Api) -> None:
        self._store = store
        self._fleet = fleet
        self._api = api
        self._copied: dict[tuple[str, str], tuple[Mapping[str, str], Amounts]] = {}
        self._helped: dict[str, float] = {}
        self._idle_since: dict[str, float] = {}
        self._idle_seconds = float(os.environ.get(IDLE_VARIABLE) or _IDLE_SECONDS)
        self._events: dict[str, tuple[str, str, float]] = {}

    def step(self) -> None:
        """Look once, and act."""
        for pool in self._store.list("nodePools"):
            for zone, count in missing_of(pool).items():
                self._enlarge(pool.id, zone, count)
        pools = autoscaled(self._store)
        pending = self._pending() if pools else []
        at_least = all(sum(sizes_of(pool).values()) <= bounds.least for pool, bounds in pools)
        if at_least and not pending:
            self._idle_since = {}
            return
        pods = self._api.list(PODS, fieldSelector="spec.nodeName!=")
        nodes = self._api.list(NODES)
        devices = self._devices_of([*pending, *pods])
        places = self._places(nodes, devices)
        pods = [pod for pod in pods if has_a_node(pod) and pod["spec"]["nodeName"] in places]
        for pod in pods:
            places[pod["spec"]["nodeName"]].take(_asked(pod, devices))
        busy = {pod["spec"]["nodeName"] for pod in pods if not is_of_daemonset(pod)}
        busy |= {self._help(pod, _asked(pod, devices), places) for pod in pending}
        self._shrink(pools, places.keys() - busy)

    def _devices_of(self, pods: list[Object]) -> Inventory:
        """Return the devices that pods can claim; none where no pod claims any."""
        if not any(pod["spec"].get("resourceClaims") for pod in pods):
            return inventory_of_objects((), (), (), ())
        return inventory_of_objects(self._api.list(SLICES), self._api.list(CLAIMS), (), ())

    def _pending(self) -> list[Object]:
        """Return the pods that wait for a node; forget those that wait no more."""
        pods = self._api.list(PODS, fieldSelector="status.phase=Pending")
        waiting = [pod for pod in pods if _waits(pod)]
        uids = {pod["metadata"]["uid"] for pod in waiting}
        since = time.monotonic() - _HELPED_SECONDS
        self._events = {uid: event for uid, event in self._events.items() if uid in uids}
        self._helped = {
            uid: then for uid, then in self._helped.items() if uid in uids and then > since
        }
        return waiting

    def _shrink(self, pools: list[tuple[StoredRecord, PoolBounds]], idle: Collection[str]) -> None:
        """Remove the nodes that have been idle for long enough."""
        now = time.monotonic()
        self._idle_since = {name: self._idle_since.get(name, now) for name in idle}
        for pool, _ in pools:
            # The newest first, as when a pool is made smaller by hand.
            for name in reversed(list(expected(pool))):
                if name in idle and now - self._idle_since[name] >= self._idle_seconds:
                    self._remove(pool.id, name)

    def _groups(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Return the instance groups, a pool's id and a zone, by the pool's name and the zone."""
        groups = {}
        for pool in self._store.list("nodePools"):
            for zone in sizes_of(pool):
                groups[pool.name, zone] = (pool.id, zone)
        return groups

    def _places(self, nodes: Iterable[Object], devices: Inventory) -> dict[str, Place]:
        """Return all open nodes by name; remember one of each instance group for later copies."""
        groups = self._groups()
        published: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for device in devices.devices:
            published[device.node][device.driver] += device.is_nic or device.is_gpu
        places: dict[str, Place] = {}
        copied: dict[tuple[str, str], tuple[Mapping[str, str], Amounts]] = {}
        for node in sorted(nodes, key=lambda node: str(node["metadata"].get("creationTimestamp"))):
            name = node["metadata"]["name"]
            labels = node["metadata"].get("labels") or {}
            if node["spec"].get("unschedulable"):
                continue
            free = amounts({**(node.get("status") or {}).get("allocatable", {}), **published[name]})
            places[name] = Place(labels, node["spec"].get("taints") or [], free)
            group = groups.get((labels.get(POOL_LABEL, ""), labels.get(_ZONE, "")))
            if group is not None and _counts_as_ready(labels, free):
                shared = {key: value for key, value in labels.items() if key != _HOST}
                copied.setdefault(group, (shared, free))
        left = {group: copy for group, copy in self._copied.items() if group in groups.values()}
        self._copied = left | copied
        return places

    def _help(self, pod: Object, asked: Amounts, places: dict[str, Place]) -> str:
        """Find a node for a pending pod, or add one; return the node's name."""
        uid = pod["metadata"]["uid"]
        for name, place in places.items():
            if not place.obstacle(pod, asked):
                place.take(asked)
                if place.growth:
                    self._help_by(pod, place)
                return name
        if uid in self._helped:
            return ""
        reasons: Counter[str] = Counter()
        short: list[tuple[str, str]] = []
        for pool, zone, place, full in self._further():
            if reason := place.obstacle(pod, asked) or (
                "max node group size reached" if full else ""
            ):
                reasons[reason] += 1
                continue
            left = room(of_cloud(self._store.folder), self._store.list("nodePools"), pool, zone)
            if left.left == 0:
                short.append((zone, left.short_of))
            elif growth := self._grow(pool, zone):
                place.growth = growth
                place.take(asked)
                places[f"{pool.id} {zone} {len(places)}"] = place
                self._help_by(pod, place)
                return ""
        if short:
            zones, words = (", ".join(dict.fromkeys(column)) for column in zip(*short, strict=True))
            message = f"Node scale up in zones {zones} associated with this pod failed: {words}."
            self._event(
                pod, "Warning", "FailedScaleUp", f"{message} Pod is at risk of not being scheduled."
            )
        else:
            counted = [f"{count} {reason}" for reason, count in reasons.items() if reason]
            message = f"pod didn't trigger scale-up: {', '.join(counted)}".rstrip(": ")
            self._event(pod, "Normal", "NotTriggerScaleUp", message)
        return ""

    def _help_by(self, pod: Object, place: Place) -> None:
        self._helped[pod["metadata"]["uid"]] = time.monotonic()
        self._event(pod, "Normal", "TriggeredScaleUp", place.growth)

    def _further(self) -> Iterator[tuple[StoredRecord, str, Place, bool]]:
        """Yield one more node of each pool and zone, and whether the bounds rule it out."""
        for pool, bounds in autoscaled(self._store):
            sizes = sizes_of(pool)
            for zone in sorted(sizes, key=sizes.__getitem__):
                labels, free = self._copied.get((pool.id, zone)) or _derived(pool, zone)
                full = (sizes[zone] if bounds.per_zone else sum(sizes.values())) >= bounds.most
                yield pool, zone, Place(labels, taints(pool), free), full

    def _grow(self, pool: StoredRecord, zone: str) -> str:
        """Add a node to a pool; return the text of the event, empty where there was no machine."""
        if not self._enlarge(pool.id, zone, 1):
            return ""
        before = sizes_of(pool)[zone]
        bounds = PoolInputs(pool.inputs).bounds
        zone_url = f"https://www.googleapis.com/compute/v1/projects/{pool.project}/zones/{zone}"
        group = f"{zone_url}/instanceGroups/{group_name(pool, zone)}-grp {before}->{before + 1}"
        return (
            f"pod triggered scale-up: [{{{group} (max: {bounds.most if bounds else before + 1})}}]"
        )

    def _enlarge(self, path: str, zone: str, count: int) -> int:
        """Give a pool more nodes, as far as there are machines; return their number."""
        with self._store.locked():
            pool = self._store.get(path)
            if pool is None:
                return 0
            left = room(
                of_cloud(self._store.folder), self._store.list("nodePools"), pool, zone
            ).left
            added = count if left is None else min(count, left)
            sizes = sizes_of(pool)
            missing = missing_of(pool)
            if added:
                resize(pool, {**sizes, zone: sizes.get(zone, 0) + added})
                if zone in missing:
                    pool.state["missing"][zone] = max(missing[zone] - added, 0)
                self._store.put(pool)
                self._fleet.reconcile(pool)
                _log.info("pool %s: %d more in %s", pool.name, added, zone)
            return added

    def _remove(self, path: str, name: str) -> None:
        """Remove an idle node of a pool that has more than it must have."""
        with self._store.locked():
            pool = self._store.get(path)
            bounds = PoolInputs(pool.inputs).bounds if pool is not None else None
            if pool is None or bounds is None or name not in expected(pool):
                return
            zone, number = expected(pool)[name]
            sizes = sizes_of(pool)
            if (sizes[zone] if bounds.per_zone else sum(sizes.values())) <= bounds.least:
                return
            pool.state["instances"][zone].remove(number)
            self._store.put(pool)
            self._fleet.remove([name])
            _log.info("pool %s: node %s was idle and is gone", pool.name, name)

    def _event(self, pod: Object, kind: str, reason: str, message: str) -> None:
        """Write an event, unless it is the pod's last one and still new."""
        uid = pod["metadata"]["uid"]
        now = time.monotonic()
        *last, when = self._events.get(uid, ("", "", 0.0))
        if last != [reason, message] or now - when >= _REPEAT_SECONDS:
            self._events[uid] = (reason, message, now)
            self._api.event(pod, _SOURCE, kind, reason, message)


def _waits(pod: Object) -> bool:
    """Whether the scheduler has tried the pod and found no node."""
    return (
        not pod["spec"].get("nodeName")
        and not pod["metadata"].get("deletionTimestamp")
        and finds_no_node(pod)
    )


def _asked(pod: Object, devices: Inventory) -> Amounts:
    """Return a pod's requests, its claims' devices by driver among them."""
    asked = requests(pod["spec"])
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or []
    generated = {status["name"]: status.get("resourceClaimName") for status in statuses}
    for entry in pod["spec"].get("resourceClaims") or []:
        name = entry.get("resourceClaimName") or generated.get(entry["name"]) or ""
        claim = devices.claim(pod["metadata"]["namespace"], name)
        for request in claim.requests if claim is not None else ():
            # No node has devices of a class that is unknown here.
            driver = _CLASSES.get(request.device_class, request.device_class)
            asked[driver] = asked.get(driver, Decimal(0)) + (request.count or 1)
    return asked


def _derived(pool: StoredRecord, zone: str) -> tuple[Mapping[str, str], Amounts]:
    """Labels and resources of a node of a group that never had one, from the pool's machine."""
    node = manifest(pool, zone, 0, "")
    labels = node["metadata"]["labels"]
    devices = (
        {_GPUS if _claimed(labels) else GPU_RESOURCE: gpu_count(labels)}
        if gpu_count(labels)
        else {}
    )
    gpu = gpu_of(labels)
    if _claimed(labels) and gpu is not None and not gpu.claims_from_zero:
        devices = {}
    if labels.get(MANAGED_DRANET_LABEL) == "true":
        devices[_NICS] = PoolInputs(pool.inputs).machine.series.gpu_nics
    return labels, amounts({**node["status"]["allocatable"], **devices})


def _claimed(labels: Mapping[str, str]) -> bool:
    """Whether the autoscaler knows from a node's labels that pods claim its GPUs."""
    return labels.get(CLAIMED_LABEL) == "true"
