"""The autoscaler's hands: looks at pods and nodes, and resizes pools of the simulated cloud."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any

from lab.devices import claimed
from lab.devices.advertised import GPU, managed
from lab.devices.autoscaler import Object, Place, Room, amounts, growth, idle, places, unschedulable
from lab.devices.claimed import by_name, with_devices
from lab.devices.gke_device_plugin import devices, gpus, kept_off
from lab.devices.scale_events import Grown, ScaleEvents
from lab.plugins.gcp.conditions import of_cloud
from lab.plugins.gcp.interfaces import interfaces
from lab.plugins.gcp.nodes import POOL_LABEL, expected, manifest, resize, sizes_of
from lab.plugins.gcp.pools import Pool
from lab.plugins.gcp.supply import missing_of, room

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lab.plugins.gcp.fleet import Fleet
    from lab.plugins.gcp.store import Record, Store

IDLE_VARIABLE = "BERTH_LAB_SCALE_DOWN_SECONDS"

# GKE takes an idle node away after ten minutes; nobody watches a lab for that long.
_IDLE_SECONDS = 60.0

_log = logging.getLogger("lab.devices.autoscaler")


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
        published: dict[str, dict[str, int]] = {}
        if any(pod["spec"].get("resourceClaims") for pod in pending):
            claims = by_name(self._fleet.listed("resourceclaims"))
            pending, pods = ([with_devices(pod, claims) for pod in some] for some in (pending, pods))
            published = claimed.published(self._fleet.listed("resourceslices"))
        nodes = [_expected(node, self._devices(node, published)) for node in nodes]
        further, dry = self._further_and_dry(pools, nodes)
        needed = growth(pending, places(nodes, pods), further)
        for (path, zone), count in needed.added.items():
            grown = self._grow(path, zone, count)
            if grown is not None:
                self._told.triggered(needed.triggers[path, zone], grown)
        for pod in needed.unplaced:
            self._told.unplaced(pod, further, dry)
        names = {node["metadata"]["name"] for node in nodes}
        self._shrink(above, idle(names, pods) - needed.awaited)

    def _further_and_dry(self, pools: list[Record], nodes: list[Object]) -> tuple[list[Place], list[tuple[Place, str]]]:
        """What one more node would be, where there are machines; and where there are none, with what is short."""
        conditions, records = of_cloud(self._store.folder), self._store.list("nodePools")
        further: list[Place] = []
        dry = []
        for pool in pools:
            for place in self._further(pool, nodes):
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

    def _further(self, pool: Record, nodes: list[Object]) -> list[Place]:
        """What one more node would be, in each zone; the emptiest zone first."""
        bounds = Pool(pool.inputs).bounds
        if bounds is None:
            return []
        sizes = sizes_of(pool)
        together = Room(bounds.most - sum(sizes.values()))
        found = []
        like = next((node for node in nodes if _pool(node) == pool.name), None)
        for zone in sorted(sizes, key=lambda each: sizes[each]):
            node = manifest(pool, zone, 0, "")
            labels = node["metadata"]["labels"]
            shown = {kind: count for kind, count in _allocatable(like).items() if kind in claimed.KINDS}
            devices = claimed.promised(labels, self._nics(pool), shown)
            free = amounts(node["status"]["allocatable"]) | amounts(_promised(labels, like)) | amounts(devices)
            room = Room(bounds.most - sizes[zone]) if bounds.per_zone else together
            found.append(Place(pool.id, labels, node["spec"]["taints"], free, zone, [room]))
        return found

    def _devices(self, node: Object, published: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
        """The devices to claim of a node that is there: those that it publishes, or is about to."""
        pool = next((each for each in self._store.list("nodePools") if each.name == _pool(node)), None)
        labels = node["metadata"].get("labels") or {}
        siblings = published.get(node["metadata"]["name"], {})
        return claimed.promised(labels, self._nics(pool) if pool else 0, siblings)

    def _nics(self, pool: Record) -> int:
        return sum(card.rdma for card in interfaces(self._store, pool))

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


def _allocatable(node: Object | None) -> dict[str, Any]:
    return ((node or {}).get("status") or {}).get("allocatable") or {}


def _expected(node: Object, devices: Mapping[str, int]) -> Object:
    """A node with the GPUs and devices that it will have: one without any yet is still on its way, no reason to add another."""
    free = {**_allocatable(node), **{kind: str(count) for kind, count in devices.items()}}
    if not any(managed(name) and str(count) != "0" for name, count in free.items()):
        free |= _promised(node["metadata"].get("labels") or {}, None)
    return node | {"status": node.get("status", {}) | {"allocatable": free}}


def _promised(labels: Mapping[str, str], like: Object | None) -> dict[str, Any]:
    """The GPUs of a further node, as the autoscaler expects them: as on a node of the pool, or those of the machine.

    It does not know what another plugin than GKE's makes of them while the pool has no node.
    """
    if labels.get(claimed.CLAIMED) == "true":
        return {}
    if not kept_off(labels):
        return devices(labels)
    shown = {name: count for name, count in _allocatable(like).items() if managed(name)}
    return shown or ({GPU: gpus(labels)} if gpus(labels) else {})


def _least(pool: Record) -> int:
    bounds = Pool(pool.inputs).bounds
    if bounds is None:
        return 0
    return bounds.least * len(sizes_of(pool)) if bounds.per_zone else bounds.least
