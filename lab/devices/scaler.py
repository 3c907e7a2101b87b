"""The autoscaler's hands: looks at pods and nodes, and resizes pools of the simulated cloud."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

from lab.devices.autoscaler import Place, Room, amounts, growth, idle, places, unschedulable
from lab.devices.gke_device_plugin import devices
from lab.plugins.gcp.nodes import expected, manifest, resize, sizes_of
from lab.plugins.gcp.pools import Pool

if TYPE_CHECKING:
    from lab.plugins.gcp.fleet import Fleet
    from lab.plugins.gcp.store import Record, Store

IDLE_VARIABLE = "BERTH_LAB_SCALE_DOWN_SECONDS"

# GKE takes an idle node away after ten minutes; nobody watches a lab for that long.
_IDLE_SECONDS = 60.0

_log = logging.getLogger("lab.devices.autoscaler")


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
        self._idle_since: dict[str, float] = {}
        self._idle_seconds = float(os.environ.get(IDLE_VARIABLE) or _IDLE_SECONDS)

    def step(self) -> None:
        """Look once, and act.

        Raises:
            ProviderError: when the API server does not answer.
        """
        pools = autoscaled(self._store)
        pending = [pod for pod in self._fleet.listed("pods", "status.phase=Pending") if unschedulable(pod)]
        above = [pool for pool in pools if sum(sizes_of(pool).values()) > _least(pool)]
        if not pending and not above:
            self._idle_since.clear()
            return
        pods = self._fleet.listed("pods", "spec.nodeName!=")
        nodes = self._fleet.listed("nodes")
        further = [place for pool in pools for place in self._further(pool)]
        needed = growth(pending, places(nodes, pods), further)
        for (path, zone), count in needed.added.items():
            self._grow(path, zone, count)
        names = {node["metadata"]["name"] for node in nodes}
        self._shrink(above, idle(names, pods) - needed.awaited)

    def _further(self, pool: Record) -> list[Place]:
        """What one more node would be, in each zone; the emptiest zone first."""
        bounds = Pool(pool.inputs).bounds
        if bounds is None:
            return []
        sizes = sizes_of(pool)
        together = Room(bounds.most - sum(sizes.values()))
        found = []
        for zone in sorted(sizes, key=lambda each: sizes[each]):
            node = manifest(pool, zone, 0, "")
            labels = node["metadata"]["labels"]
            free = amounts(node["status"]["allocatable"]) | amounts(devices(labels))
            room = Room(bounds.most - sizes[zone]) if bounds.per_zone else together
            found.append(Place(pool.id, labels, node["spec"]["taints"], free, zone, [room]))
        return found

    def _grow(self, path: str, zone: str, count: int) -> None:
        with self._store.locked():
            pool = self._store.get(path)
            if pool is None:
                return
            sizes = sizes_of(pool)
            resize(pool, {**sizes, zone: sizes.get(zone, 0) + count})
            self._store.put(pool)
            self._fleet.reconcile(pool)
        _log.info("pool %s: %d more in %s, for pods that fit no node", pool.name, count, zone)

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


def _least(pool: Record) -> int:
    bounds = Pool(pool.inputs).bounds
    if bounds is None:
        return 0
    return bounds.least * len(sizes_of(pool)) if bounds.per_zone else bounds.least
