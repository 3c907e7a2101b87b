"""Rules of nodes: kernel settings, labels and taints."""

from collections.abc import Iterable

from berth.components.core import fast_yaml
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Path, Problem
from berth.components.core.table import beside, broken
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.settings import GkeSettings

_SYSCTLS = frozenset(
    f"{group}.{name}" for group, names in fast_yaml.beside(__file__, "sysctls.yaml").items() for name in names
)

# Kubernetes keeps kubernetes.io and k8s.io for itself
# (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/), and GKE its own
# ("Create and manage cluster and node pool labels",
# https://docs.cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools).
_RESERVED = ("kubernetes.io", "k8s.io", "cloud.google.com", "gke.io")


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Return what GKE refuses of nodes; on an existing cluster taints describe the nodes."""
    existing = settings.cluster.existing is not None
    for name, pool in settings.pools.items():
        path: Path = ("environment", "pools", name)
        yield from broken(beside(__file__)["names"], path, name=name, length=len(name))
        for key, value in pool.labels.items():
            yield from _key_and_value(key, value, (*path, "labels", key), "label")
        seen: set[tuple[str, str]] = set()
        for index, taint in enumerate(pool.taints):
            where = (*path, "taints", index)
            yield from _key_and_value(taint.key, taint.value, where, "taint", reserved=not existing)
            if (taint.key, taint.effect) in seen:
                yield Problem(where, f"taint {taint.key} with {taint.effect} is listed twice; GKE takes each once")
            seen.add((taint.key, taint.effect))
        if not existing:
            yield from _sysctls(pool, path)


def _sysctls(pool: PoolSettings, path: Path) -> Iterable[Problem]:
    for key, value in pool.sysctls.items():
        facts = {"hint": did_you_mean(key, _SYSCTLS), "known": key in _SYSCTLS, "value": value.strip()}
        yield from broken(beside(__file__)["sysctls"], (*path, "sysctls", key), name=key, **facts)


def _key_and_value(key: str, value: str, path: Path, what: str, *, reserved: bool = True) -> Iterable[Problem]:
    prefix = key.rpartition("/")[0]
    owner = next((own for own in _RESERVED if reserved and (prefix == own or prefix.endswith(f".{own}"))), "")
    return broken(beside(__file__)["keys"], path, name=key, value=value, what=what, owner=owner)
