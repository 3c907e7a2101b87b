"""Rules of nodes: disks, Local SSDs, kernel settings, labels, taints, upgrades."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path as File

from berth.components.core import fast_yaml
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Path, Problem
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.settings import GkeSettings

_SYSCTLS = frozenset(
    f"{group}.{name}"
    for group, names in fast_yaml.read(File(__file__).with_name("sysctls.yaml")).items()
    for name in names
)

# Kubernetes: "Labels and selectors", syntax
# (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/).
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

# Kubernetes keeps kubernetes.io and k8s.io for itself (same page), and GKE its own ("Create and
# manage cluster and node pool labels",
# https://docs.cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools).
_RESERVED = ("kubernetes.io", "k8s.io", "cloud.google.com", "gke.io")

# "Node pool upgrade strategies", surge: at most 20 nodes at once, and at least one of the two above
# 0 (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies).
_MOST_AT_ONCE = 20

_POOL_NAME_LIMIT = 40


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Return what GKE refuses of nodes."""
    for name, pool in settings.pools.items():
        path: Path = ("environment", "pools", name)
        if len(name) > _POOL_NAME_LIMIT:
            yield Problem(
                path, f"{name!r} has {len(name)} characters; GKE allows a node pool's name {_POOL_NAME_LIMIT}"
            )
        yield from _labels_and_taints(pool, path, existing=settings.cluster.existing is not None)
        if settings.cluster.existing:
            continue
        yield from _sysctls(pool, path)
    if not settings.cluster.existing:
        yield from _no_room_for_operators(settings)


def _no_room_for_operators(settings: GkeSettings) -> Iterable[Problem]:
    """Refuse taints on every pool that could take the operators' own pods, and GKE's.

    Neither the charts' Deployments (KubeRay 1.6.2; GPU Operator v26.7.0) nor GKE's cluster DNS
    tolerates a taint of a pool's own, and GKE taints nodes with GPUs itself.
    """
    plain = {name: pool for name, pool in settings.pools.items() if not pool.machine.gpus} or settings.pools
    tainted = [name for name, pool in plain.items() if any(taint.effect != "PreferNoSchedule" for taint in pool.taints)]
    if len(tainted) == len(plain):
        yield Problem(
            ("environment", "pools", tainted[0], "taints"),
            "no pool without GPUs is without taints, and the pods of KubeRay and of GKE itself, such as the cluster's"
            " DNS, would wait for a node for ever; leave one such pool untainted",
            rests_on=(("environment", "pools"),),
        )


def _sysctls(pool: PoolSettings, path: Path) -> Iterable[Problem]:
    for key, value in pool.sysctls.items():
        if key not in _SYSCTLS:
            yield Problem(
                (*path, "sysctls", key),
                f"GKE does not set {key} on nodes, which a DaemonSet can{did_you_mean(key, _SYSCTLS)}",
            )
        elif not value.strip():
            yield Problem((*path, "sysctls", key), "has no value; write one in quotes, or take the line out")


def _labels_and_taints(pool: PoolSettings, path: Path, *, existing: bool) -> Iterable[Problem]:
    """Refuse labels and taints; on an existing cluster taints describe the nodes."""
    for key, value in pool.labels.items():
        yield from _key_and_value(key, value, (*path, "labels", key), "label")
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(pool.taints):
        where = (*path, "taints", index)
        yield from _key_and_value(taint.key, taint.value, where, "taint", reserved=() if existing else _RESERVED)
        if (taint.key, taint.effect) in seen:
            yield Problem(where, f"taint {taint.key} with {taint.effect} is listed twice; GKE takes each once")
        seen.add((taint.key, taint.effect))


def _key_and_value(
    key: str, value: str, path: Path, what: str, reserved: Sequence[str] = _RESERVED
) -> Iterable[Problem]:
    prefix, _, name = key.rpartition("/")
    owner = next((own for own in reserved if prefix == own or prefix.endswith(f".{own}")), None)
    if not _LABEL_NAME.fullmatch(name) or ("/" in key and not _LABEL_PREFIX.fullmatch(prefix)):
        yield Problem(
            path,
            f"{key!r} is not a key that Kubernetes takes for a {what}: up to 63 letters, digits, '-', '_' and '.',"
            " with a domain and '/' before it or none, for example example.com/team",
        )
    elif owner:
        yield Problem(
            path,
            f"{key}: {owner} is reserved for GKE's and Kubernetes' own, which other settings of the pool set; take"
            " another domain, for example example.com/team",
        )
    if value and not _LABEL_NAME.fullmatch(value):
        yield Problem(
            path,
            f"{value!r} is not a value that Kubernetes takes for a {what}: up to 63 letters, digits, '-', '_' and '.'",
        )
