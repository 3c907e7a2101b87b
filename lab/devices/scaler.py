"""The cluster autoscaler at work: looks at pods and nodes, and resizes pools of the simulated cloud.

The texts of its events are those of the cluster autoscaler, and GKE's own for failed scale-ups.

Answers to (read): kubernetes-sigs/cluster-autoscaler at 33c3f97b, pkg/core/static_autoscaler.go (RunOnce: what stops it, growth
    before shrinking), pkg/processors/status/eventing_scale_up_processor.go (TriggeredScaleUp, NotTriggerScaleUp) and
    pkg/core/scaleup/orchestrator/skippedreasons.go:
    https://github.com/kubernetes-sigs/cluster-autoscaler/blob/33c3f97bf2749b1385d9223f1f8856fe345011f7/pkg/core/static_autoscaler.go
Answers to (read): "About GKE cluster autoscaling" for the ten minutes that a node is idle before it goes, of which the lab makes
    one: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler
Answers to (believed): the emptiest zone grows first, and the newest node goes first; the real order follows an expander and
    estimates, and berth does not depend on it.
Answers to (believed): the text of GKE's own event FailedScaleUp, as users of GKE quote it in public; no source or
    page of Google's has it. A GKE pool without machines would settle it.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Iterable
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
from berth.lab.plugins.gcp.pools import Pool
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


def autoscaled(store: Store) -> list[Record]:
    """Pools that the autoscaler resizes; queued pools grow for provisioning requests only."""
    pools = [(record, Pool(record.inputs)) for record in store.list("nodePools")]
    return [record for record, pool in pools if pool.bounds is not None and not pool.queued]


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
        """Look once, and act.

        Raises:
            ClusterError: the API server does not answer.
        """
        for pool in short(self._store):
            self._fill(pool.id)
        pools = autoscaled(self._store)
        if not pools:
            return
        pending = [pod for pod in self._api.list(PODS, fieldSelector="status.phase=Pending") if unschedulable(pod)]
        above = [pool for pool in pools if sum(sizes_of(pool).values()) > _least(pool)]
        waiting = {str(pod["metadata"]["uid"]) for pod in pending}
        self._events = {uid: event for uid, event in self._events.items() if uid in waiting}
        if not pending and not above:
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
        further, dry = self._further_and_dry(pools)
        needed = growth(pending, places(nodes, pods), further)
        for (path, zone), count in needed.added.items():
            message = self._grow(path, zone, count)
            for pod in needed.triggers[path, zone] if message else ():
                self._event(pod, "Normal", "TriggeredScaleUp", message)
        for pod in needed.unplaced:
            self._explain(pod, further, dry)
        self._idle.update(idle((node["metadata"]["name"] for node in nodes), pods) - needed.awaited)
        self._shrink(above)

    def _further_and_dry(self, pools: list[Record]) -> tuple[list[Place], list[tuple[Place, str]]]:
        """Return one more node of each pool and zone that has machines, and of those without, with the shortage."""
        conditions, records = of_cloud(self._store.folder), self._store.list("nodePools")
        further: list[Place] = []
        dry = []
        for pool in pools:
            for place in self._further(pool):
                machines = room(conditions, records, pool, place.zone)
                if machines.left == 0:
                    dry.append((place, machines.short_of))
                    continue
                if machines.left is not None:
                    place.rooms.append(Room(machines.left))
                further.append(place)
        return further, dry

    def _further(self, pool: Record) -> list[Place]:
        """Return one more node of a pool in each zone; the emptiest zone first."""
        bounds, sizes = Pool(pool.inputs).bounds, sizes_of(pool)
        if bounds is None:
            return []
        together = Room(bounds.most - sum(sizes.values()))
        found = []
        for zone in sorted(sizes, key=lambda zone: sizes[zone]):
            template = self._templates.of(pool, zone)
            limit = Room(bounds.most - sizes[zone]) if bounds.per_zone else together
            found.append(Place(pool.id, template.labels, taints(pool), amounts(template.allocatable), zone, [limit]))
        return found

    def _available(self, pool: Record, zone: str, count: int) -> int:
        """Return how many of `count` machines the cloud has for a pool in a zone."""
        left = room(of_cloud(self._store.folder), self._store.list("nodePools"), pool, zone).left
        return count if left is None else min(count, left)

    def _fill(self, path: str) -> None:
        """Give a pool the machines that it waits for, as far as there are any by now."""
        with self._store.locked():
            pool = self._store.get(path)
            if pool is None:
                return
            total = 0
            for zone, count in missing_of(pool).items():
                added = self._available(pool, zone, count)
                sizes = sizes_of(pool)
                resize(pool, {**sizes, zone: sizes.get(zone, 0) + added})
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
            added = self._available(pool, zone, count) if pool is not None else 0
            if pool is None or not added:
                return ""
            sizes = sizes_of(pool)
            before = sizes.get(zone, 0)
            resize(pool, {**sizes, zone: before + added})
            self._store.put(pool)
            self._fleet.reconcile(pool)
        _log.info("pool %s: %d more in %s, for pods that fit no node", pool.name, added, zone)
        return scale_up(pool, zone, before, before + added)

    def _stops(self, nodes: list[Object]) -> bool:
        """Whether too many nodes are unready for the autoscaler to do anything; the log says so once."""
        before, self._stopped = self._stopped, node_templates.stopped(nodes, datetime.now(UTC))
        if self._stopped and not before:
            _log.warning("not ready for autoscaling: too many nodes have an accelerator and no nvidia.com/gpu")
        return self._stopped

    def _shrink(self, pools: list[Record]) -> None:
        ripe = self._idle.longer_than(self._idle_seconds)
        for pool in pools:
            spare = sum(sizes_of(pool).values()) - _least(pool)
            # The newest first, as when a pool is made smaller by hand.
            for name in [name for name in reversed(list(expected(pool))) if name in ripe][:spare]:
                self._remove(pool.id, name)

    def _remove(self, path: str, name: str) -> None:
        with self._store.locked():
            pool = self._store.get(path)
            place = expected(pool).get(name) if pool is not None else None
            bounds = Pool(pool.inputs).bounds if pool is not None else None
            if pool is None or place is None or bounds is None:
                return
            zone, number = place
            if bounds.per_zone and sizes_of(pool)[zone] <= bounds.least:
                return
            pool.state["instances"][zone].remove(number)
            self._store.put(pool)
            self._fleet.remove([name])
        _log.info("pool %s: node %s was idle and is gone", pool.name, name)

    def _explain(self, pod: Object, further: list[Place], dry: list[tuple[Place, str]]) -> None:
        """Write an event that says why no node comes for a pod."""
        failed = [(place.zone, shortage) for place, shortage in dry if fits(pod, place)]
        if failed:
            self._event(pod, "Warning", "FailedScaleUp", failure(failed))
            return
        reasons = [why_not(pod, place) for place in [*further, *(place for place, _ in dry)]]
        self._event(pod, "Normal", "NotTriggerScaleUp", no_scale_up(filter(None, reasons)))

    def _event(self, pod: Object, kind: str, reason: str, message: str) -> None:
        """Write an event, unless it is the pod's last one and still new."""
        uid, now = str(pod["metadata"]["uid"]), time.monotonic()
        *last, when = self._events.get(uid, ("", "", 0.0))
        if last != [reason, message] or now - when >= _REPEAT_SECONDS:
            self._events[uid] = (reason, message, now)
            self._api.event(pod, _SOURCE, kind, reason, message)


def failure(failed: Iterable[tuple[str, str]]) -> str:
    """Return the text about zones without machines, from pairs of a zone and what is short."""
    zones, reasons = (list(dict.fromkeys(words)) for words in zip(*failed, strict=True))
    return (
        f"Node scale up in zones {', '.join(zones)} associated with this pod failed: {', '.join(reasons)}. Pod is at "
        "risk of not being scheduled."
    )


def no_scale_up(reasons: Iterable[str]) -> str:
    """Return the text about pools whose further nodes would not help, from the reasons."""
    counted = [f"{count} {reason}" for reason, count in Counter(reasons).items()]
    return f"pod didn't trigger scale-up: {', '.join(counted)}".rstrip(": ")


def scale_up(pool: Record, zone: str, before: int, after: int) -> str:
    """Return the text about a pool that grows in a zone."""
    bounds = Pool(pool.inputs).bounds
    group = (
        f"https://www.googleapis.com/compute/v1/projects/{pool.project}/zones/{zone}/instanceGroups/"
        f"{group_name(pool, zone)}-grp"
    )
    return f"pod triggered scale-up: [{{{group} {before}->{after} (max: {bounds.most if bounds else after})}}]"


def _pool_name(node: Object) -> str:
    return str((node["metadata"].get("labels") or {}).get(POOL_LABEL, ""))


def _least(pool: Record) -> int:
    bounds = Pool(pool.inputs).bounds
    if bounds is None:
        return 0
    return bounds.least * len(sizes_of(pool)) if bounds.per_zone else bounds.least
