"""The cluster autoscaler at work: it looks at pods and nodes, and resizes simulated pools.

The texts of its events are those of the cluster autoscaler, and GKE's own for failed scale-ups.

The emptiest zone grows first, and the newest node goes first: the lab's choice. The text of the
event FailedScaleUp is the one that users of GKE quote in public.

Answers to (read): kubernetes-sigs/cluster-autoscaler at 33c3f97b, pkg/core/static_autoscaler.go
    (RunOnce: what stops it, growth before shrinking),
    pkg/processors/status/eventing_scale_up_processor.go (TriggeredScaleUp, NotTriggerScaleUp) and
    pkg/core/scaleup/orchestrator/skippedreasons.go:
    https://github.com/kubernetes-sigs/cluster-autoscaler/blob/33c3f97bf2749b1385d9223f1f8856fe345011f7/pkg/core/static_autoscaler.go
Answers to (read): "About GKE cluster autoscaling" for the ten minutes that a node is idle before it
    goes, of which the lab makes one:
    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from datetime import UTC, datetime

from berth.components.cluster.api import NODES, PODS
from berth.components.cluster.scheduling import Object, amounts
from berth.components.hardware.names import POOL_LABEL
from berth.lab.devices import node_templates
from berth.lab.devices.api import CLAIMS, SLICES, Api
from berth.lab.devices.autoscaler import IdleClock, Place, Room, fits, growth, idle, places, unschedulable, why_not
from berth.lab.devices.node_templates import Published, Templates, with_claims
from berth.lab.plugins.gcp.conditions import of_cloud
from berth.lab.plugins.gcp.fleet import Fleet
from berth.lab.plugins.gcp.nodes import expected, group_name, resize, sizes_of, taints
from berth.lab.plugins.gcp.pools import Bounds, Pool
from berth.lab.plugins.gcp.store import Record, Store
from berth.lab.plugins.gcp.supply import missing_of, room

IDLE_VARIABLE = "BERTH_LAB_SCALE_DOWN_SECONDS"

# GKE takes an idle node away after ten minutes; nobody watches a lab for that long.
_IDLE_SECONDS = 60.0
# The autoscaler writes an event at each look; kubectl shows differences of this size.
_REPEAT_SECONDS = 60.0
_SOURCE = "cluster-autoscaler"

_log = logging.getLogger("berth.lab.devices.autoscaler")


def short(store: Store) -> list[Record]:
    """Pools that wait for machines: their instance groups try again until they have them."""
    return [record for record in store.list("nodePools") if missing_of(record)]


def autoscaled(store: Store) -> list[tuple[Record, Bounds]]:
    """Pools that the autoscaler resizes, with their bounds; it leaves queued pools alone."""
    pools = [(record, Pool(record.inputs)) for record in store.list("nodePools")]
    return [(record, pool.bounds) for record, pool in pools if pool.bounds is not None and not pool.queued]


class Scaler:
    """Grows and shrinks the pools of one lab."""

    def __init__(self, store: Store, fleet: Fleet, api: Api) -> None:
        self._store = store
        self._fleet = fleet
        self._api = api
        self._templates = Templates()
        self._stopped = False
        self._idle = IdleClock()
        self._idle_seconds = float(os.environ.get(IDLE_VARIABLE) or _IDLE_SECONDS)
        self._events: dict[str, tuple[str, str, float]] = {}

    def step(self) -> None:
        """Look once, and act."""
        for pool in short(self._store):
            self._fill(pool.id)
        pools = autoscaled(self._store)
        if not pools:
            return
        pending = [pod for pod in self._api.list(PODS, fieldSelector="status.phase=Pending") if unschedulable(pod)]
        spare = {pool.id: sum(sizes_of(pool).values()) - _least(pool, bounds) for pool, bounds in pools}
        waiting = {str(pod["metadata"]["uid"]) for pod in pending}
        self._events = {uid: event for uid, event in self._events.items() if uid in waiting}
        if not pending and not any(count > 0 for count in spare.values()):
            self._idle.update(())
            return
        pods, nodes = self._api.list(PODS, fieldSelector="spec.nodeName!="), self._api.list(NODES)
        devices: Published = {}
        if any(pod["spec"].get("resourceClaims") for pod in (*pending, *pods)):
            claims = self._api.list(CLAIMS)
            pending, pods = with_claims(pending, claims), with_claims(pods, claims)
            devices = node_templates.published(self._api.list(SLICES))
        by_name = {pool.name: pool for pool in self._store.list("nodePools")}
        self._templates.look(by_name.values(), nodes, devices)
        if self._stops(nodes):
            return
        nodes = [self._templates.expected(node, by_name.get(_pool_name(node)), devices) for node in nodes]
        further, dry = self._further(pools)
        needed = growth(pending, places(nodes, pods), further)
        for (path, zone), count in needed.added.items():
            message = self._grow(path, zone, count)
            for pod in needed.triggers[path, zone] if message else ():
                self._event(pod, "Normal", "TriggeredScaleUp", message)
        for pod in needed.unplaced:
            self._explain(pod, further, dry)
        self._idle.update(idle((node["metadata"]["name"] for node in nodes), pods) - needed.awaited)
        ripe = self._idle.longer_than(self._idle_seconds)
        for pool, _ in pools:
            # The newest first, as when a pool is made smaller by hand.
            names = [name for name in reversed(list(expected(pool))) if name in ripe]
            self._remove(pool.id, names[: max(spare[pool.id], 0)])

    def _further(self, pools: list[tuple[Record, Bounds]]) -> tuple[list[Place], list[tuple[Place, str]]]:
        """Return a further node of each pool and zone with machines, and of those without."""
        conditions, records = of_cloud(self._store.folder), self._store.list("nodePools")
        further, dry = [], []
        for pool, bounds in pools:
            sizes = sizes_of(pool)
            together = Room(bounds.most - sum(sizes.values()))
            # The emptiest zone first.
            for zone in sorted(sizes, key=sizes.__getitem__):
                template, machines = self._templates.of(pool, zone), room(conditions, records, pool, zone)
                limits = [Room(bounds.most - sizes[zone]) if bounds.per_zone else together]
                limits += [] if machines.left is None else [Room(machines.left)]
                place = Place(pool.id, template.labels, taints(pool), amounts(template.allocatable), zone, limits)
                if machines.left == 0:
                    dry.append((place, machines.short_of))
                else:
                    further.append(place)
        return further, dry

    def _add(self, pool: Record, zone: str, count: int) -> int:
        """Add nodes to the record of a pool, as far as there are machines; return how many."""
        left = room(of_cloud(self._store.folder), self._store.list("nodePools"), pool, zone).left
        added, sizes = count if left is None else min(count, left), sizes_of(pool)
        resize(pool, {**sizes, zone: sizes.get(zone, 0) + added})
        self._store.put(pool)
        return added

    def _fill(self, path: str) -> None:
        """Give a pool the machines that it waits for, as far as there are any by now."""
        with self._store.locked():
            pool, total = self._store.get(path), 0
            if pool is None:
                return
            for zone, count in missing_of(pool).items():
                added = self._add(pool, zone, count)
                pool.state["missing"][zone] = count - added
                self._store.put(pool)
                total += added
            if total:
                self._fleet.reconcile(pool)
                _log.info("pool %s: %d machines that were missing have come", pool.name, total)

    def _grow(self, path: str, zone: str, count: int) -> str:
        """Add nodes to a pool; return the text of the event, empty where there was no machine."""
        with self._store.locked():
            pool = self._store.get(path)
            added = self._add(pool, zone, count) if pool is not None else 0
            if pool is None or not added:
                return ""
            self._fleet.reconcile(pool)
        _log.info("pool %s: %d more in %s, for pods that fit no node", pool.name, added, zone)
        after, bounds = sizes_of(pool)[zone], Pool(pool.inputs).bounds
        zone_url = f"https://www.googleapis.com/compute/v1/projects/{pool.project}/zones/{zone}"
        group = f"{zone_url}/instanceGroups/{group_name(pool, zone)}-grp {after - added}->{after}"
        return f"pod triggered scale-up: [{{{group} (max: {bounds.most if bounds else after})}}]"

    def _stops(self, nodes: list[Object]) -> bool:
        """Whether too many nodes are unready for the autoscaler; the log says so once."""
        before, self._stopped = self._stopped, node_templates.stopped(nodes, datetime.now(UTC))
        if self._stopped and not before:
            _log.warning("not ready for autoscaling: too many nodes have an accelerator and no nvidia.com/gpu")
        return self._stopped

    def _remove(self, path: str, names: list[str]) -> None:
        """Remove idle nodes of a pool."""
        for name in names:
            with self._store.locked():
                pool = self._store.get(path)
                bounds = Pool(pool.inputs).bounds if pool is not None else None
                zone, number = expected(pool).get(name, ("", 0)) if pool is not None else ("", 0)
                if pool is None or bounds is None or not zone:
                    continue
                if bounds.per_zone and sizes_of(pool)[zone] <= bounds.least:
                    continue
                pool.state["instances"][zone].remove(number)
                self._store.put(pool)
                self._fleet.remove([name])
            _log.info("pool %s: node %s was idle and is gone", pool.name, name)

    def _explain(self, pod: Object, further: list[Place], dry: list[tuple[Place, str]]) -> None:
        """Write an event that says why no node comes for a pod."""
        failed = [(place.zone, shortage) for place, shortage in dry if fits(pod, place)]
        if failed:
            zones, reasons = (", ".join(dict.fromkeys(words)) for words in zip(*failed, strict=True))
            message = f"Node scale up in zones {zones} associated with this pod failed: {reasons}."
            self._event(pod, "Warning", "FailedScaleUp", f"{message} Pod is at risk of not being scheduled.")
            return
        reasons_of = Counter(why_not(pod, place) for place in [*further, *(place for place, _ in dry)])
        counted = [f"{count} {reason}" for reason, count in reasons_of.items() if reason]
        message = f"pod didn't trigger scale-up: {', '.join(counted)}".rstrip(": ")
        self._event(pod, "Normal", "NotTriggerScaleUp", message)

    def _event(self, pod: Object, kind: str, reason: str, message: str) -> None:
        """Write an event, unless it is the pod's last one and still new."""
        uid, now = str(pod["metadata"]["uid"]), time.monotonic()
        *last, when = self._events.get(uid, ("", "", 0.0))
        if last != [reason, message] or now - when >= _REPEAT_SECONDS:
            self._events[uid] = (reason, message, now)
            self._api.event(pod, _SOURCE, kind, reason, message)


def _pool_name(node: Object) -> str:
    return str((node["metadata"].get("labels") or {}).get(POOL_LABEL, ""))


def _least(pool: Record, bounds: Bounds) -> int:
    return bounds.least * len(sizes_of(pool)) if bounds.per_zone else bounds.least
