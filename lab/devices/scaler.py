"""The autoscaler's hands: looks at pods and nodes, and resizes pools of the simulated cloud.

Answers to (read): kubernetes-sigs/cluster-autoscaler at 33c3f97b, pkg/core/static_autoscaler.go (RunOnce: what stops it, growth
    before shrinking); what a further node has is in node_templates.py:
    https://github.com/kubernetes-sigs/cluster-autoscaler/blob/33c3f97bf2749b1385d9223f1f8856fe345011f7/pkg/core/static_autoscaler.go
Answers to (read): "About GKE cluster autoscaling" for the ten minutes that a node is idle before it goes, of which the lab makes
    one: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler
Answers to (believed): the emptiest zone grows first, and the newest node goes first; the real order follows an expander and
    estimates, and berth does not depend on it.
"""

from __future__ import annotations

import logging
import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from berth.components.hardware.names import POOL_LABEL
from berth.lab.devices import claimed
from berth.lab.devices.autoscaler import Object, Place, Room, amounts, growth, idle, places, unschedulable
from berth.lab.devices.claimed import by_name, with_devices
from berth.lab.devices.node_templates import Published, Templates, stopped
from berth.lab.devices.scale_events import Grown, ScaleEvents
from berth.lab.plugins.gcp.conditions import of_cloud
from berth.lab.plugins.gcp.nodes import expected, resize, sizes_of, taints
from berth.lab.plugins.gcp.pools import Pool
from berth.lab.plugins.gcp.supply import missing_of, room

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.fleet import Fleet
    from berth.lab.plugins.gcp.store import Record, Store

IDLE_VARIABLE = "BERTH_LAB_SCALE_DOWN_SECONDS"

# GKE takes an idle node away after ten minutes; nobody watches a lab for that long.
_IDLE_SECONDS = 60.0

_log = logging.getLogger("berth.lab.devices.autoscaler")


def short(store: Store) -> list[Record]:
    """The pools that wait for machines: their instance groups try again until they have them."""
    return [record for record in store.list("nodePools") if missing_of(record)]


def autoscaled(store: Store) -> list[Record]:
    """The pools whose size is the autoscaler's; queued ones grow for provisioning requests only."""
    pools = [(record, Pool(record.inputs)) for record in store.list("nodePools")]
    return [record for record, pool in pools if pool.bounds is not None and not pool.queued]


class Scaler:
    """Grows and shrinks the pools of one lab.

    Args:
        store: the simulated cloud's records.
        fleet: the lab's API server.
    """

    def __init__(self, store: Store, fleet: Fleet) -> None:
        self._store = store
        self._fleet = fleet
        self._told = ScaleEvents(fleet)
        self._templates = Templates()
        self._stopped = False
        self._idle_since: dict[str, float] = {}
        self._idle_seconds = float(os.environ.get(IDLE_VARIABLE) or _IDLE_SECONDS)

    def step(self) -> None:
        """Look once, and act.

        Raises:
            ProviderError: when the API server does not answer.
        """
        for pool in short(self._store):
            self._fill(pool.id)
        pools = autoscaled(self._store)
        if not pools:
            return
        pending = [pod for pod in self._fleet.listed("pods", "status.phase=Pending") if unschedulable(pod)]
        above = [pool for pool in pools if sum(sizes_of(pool).values()) > _least(pool)]
        self._told.forget_all_but(pending)
        if not pending and not above:
            self._idle_since.clear()
            return
        pods = self._fleet.listed("pods", "spec.nodeName!=")
        nodes = self._fleet.listed("nodes")
        published: Published = {}
        if any(pod["spec"].get("resourceClaims") for pod in (*pending, *pods)):
            claims = by_name(self._fleet.listed("resourceclaims"))
            pending, pods = ([with_devices(pod, claims) for pod in some] for some in (pending, pods))
            published = claimed.published(self._fleet.listed("resourceslices"))
        all_pools = self._store.list("nodePools")
        self._templates.look(all_pools, nodes, published)
        if self._stops(nodes):
            return
        named = {pool.name: pool for pool in all_pools}
        nodes = [self._templates.expected(node, named.get(_pool(node)), published) for node in nodes]
        further, dry = self._further_and_dry(pools)
        needed = growth(pending, places(nodes, pods), further)
        for (path, zone), count in needed.added.items():
            grown = self._grow(path, zone, count)
            if grown is not None:
                self._told.triggered(needed.triggers[path, zone], grown)
        for pod in needed.unplaced:
            self._told.unplaced(pod, further, dry)
        names = {node["metadata"]["name"] for node in nodes}
        self._shrink(above, idle(names, pods) - needed.awaited)

    def _further_and_dry(self, pools: list[Record]) -> tuple[list[Place], list[tuple[Place, str]]]:
        """What one more node would be, where there are machines; and where there are none, with what is short."""
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

    def _fill(self, path: str) -> None:
        """Give a pool the machines that it waits for, as far as there are any by now."""
        with self._store.locked():
            pool = self._store.get(path)
            if pool is None:
                return
            missing, come = missing_of(pool), 0
            for zone, count in missing.items():
                left = self._left(pool, zone)
                grown = count if left is None else min(count, left)
                sizes = sizes_of(pool)
                resize(pool, {**sizes, zone: sizes.get(zone, 0) + grown})
                pool.state["missing"][zone] = count - grown
                self._store.put(pool)
                come += grown
            if come:
                self._fleet.reconcile(pool)
                _log.info("pool %s: %d machines that were missing have come", pool.name, come)

    def _left(self, pool: Record, zone: str) -> int | None:
        return room(of_cloud(self._store.folder), self._store.list("nodePools"), pool, zone).left

    def _further(self, pool: Record) -> list[Place]:
        """What one more node would be, in each zone; the emptiest zone first."""
        bounds = Pool(pool.inputs).bounds
        if bounds is None:
            return []
        sizes = sizes_of(pool)
        together = Room(bounds.most - sum(sizes.values()))
        found = []
        for zone in sorted(sizes, key=lambda each: sizes[each]):
            template = self._templates.of(pool, zone)
            room = Room(bounds.most - sizes[zone]) if bounds.per_zone else together
            found.append(Place(pool.id, template.labels, taints(pool), amounts(template.allocatable), zone, [room]))
        return found

    def _stops(self, nodes: list[Object]) -> bool:
        """Whether too many nodes are unready for the autoscaler to do anything; the log says so once."""
        was, self._stopped = self._stopped, stopped(nodes, datetime.now(UTC))
        if self._stopped and not was:
            _log.warning(
                "Cluster is not ready for autoscaling: too many nodes have an accelerator and no nvidia.com/gpu"
            )
        return self._stopped

    def _grow(self, path: str, zone: str, count: int) -> Grown | None:
        with self._store.locked():
            pool = self._store.get(path)
            left = None if pool is None else self._left(pool, zone)
            if pool is None or left == 0:
                return None
            sizes = sizes_of(pool)
            before = sizes.get(zone, 0)
            after = before + (count if left is None else min(count, left))
            resize(pool, {**sizes, zone: after})
            self._store.put(pool)
            self._fleet.reconcile(pool)
        _log.info("pool %s: %d more in %s, for pods that fit no node", pool.name, after - before, zone)
        return Grown(pool, zone, before, after)

    def _shrink(self, pools: list[Record], idle_now: set[str]) -> None:
        now = time.monotonic()
        self._idle_since = {name: self._idle_since.get(name, now) for name in idle_now}
        for pool in pools:
            spare = sum(sizes_of(pool).values()) - _least(pool)
            # The newest first, as when a pool is made smaller by hand.
            ripe = [
                name
                for name in reversed(list(expected(pool)))
                if name in self._idle_since and now - self._idle_since[name] >= self._idle_seconds
            ]
            for name in ripe[:spare]:
                self._remove(pool.id, name)

    def _remove(self, path: str, name: str) -> None:
        with self._store.locked():
            pool = self._store.get(path)
            place = expected(pool).get(name) if pool is not None else None
            if pool is None or place is None:
                return
            zone, number = place
            bounds = Pool(pool.inputs).bounds
            if bounds is None or (bounds.per_zone and sizes_of(pool)[zone] <= bounds.least):
                return
            pool.state["instances"][zone].remove(number)
            self._store.put(pool)
            self._fleet.remove([name])
        _log.info("pool %s: node %s was idle and is gone", pool.name, name)


def _pool(node: Object) -> str:
    return str((node["metadata"].get("labels") or {}).get(POOL_LABEL, ""))


def _least(pool: Record) -> int:
    bounds = Pool(pool.inputs).bounds
    if bounds is None:
        return 0
    return bounds.least * len(sizes_of(pool)) if bounds.per_zone else bounds.least
