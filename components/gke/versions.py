"""GKE versions, and the oldest one that each feature of an environment needs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from berth.components.core import fast_yaml
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.settings import GkeSettings
from berth.components.hardware.machines import Source

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:-gke\.(\d+))?(?:[+].*)?")


@dataclass(frozen=True)
class GkeVersion:
    """GKE version, or the beginning of one: 1.35, 1.34.1, 1.34.1-gke.1829001."""

    text: str
    """Text of the version, which `str` returns."""
    parts: tuple[int, ...]
    """Major, minor, patch and GKE's build, as far as the text has them."""

    def __str__(self) -> str:
        return self.text

    def at_least(self, oldest: GkeVersion) -> bool:
        """Whether it is not older; a missing part is the newest here, and the first in `oldest`."""
        return _padded(self.parts, math.inf) >= _padded(oldest.parts, 0)


def parse_gke_version(text: str) -> GkeVersion:
    """Return the version of a text.

    Raises:
        ValueError: the text is not a GKE version.
    """
    match = _VERSION.fullmatch(text)
    if not match:
        raise ValueError(
            f"{text!r} is not a GKE version; write for example 1.35 or 1.34.1-gke.1829001"
        )
    return GkeVersion(text, tuple(int(part) for part in match.groups() if part is not None))


def _padded(parts: tuple[int, ...], by: float) -> tuple[float, ...]:
    return (*parts, *[by] * (4 - len(parts)))


@dataclass(frozen=True)
class Feature:
    """Feature of newer versions."""

    name: str
    since: GkeVersion
    source: Source


@dataclass(frozen=True)
class Need:
    """Feature that an environment uses."""

    feature: Feature
    who: str
    """Users of the feature, for people: `pool 'train'`, `operators.kuberay.source: addon`."""


FEATURES: Mapping[str, Feature] = {
    key: Feature(row["name"], parse_gke_version(row["since"]), Source(row["title"], row["url"]))
    for key, row in fast_yaml.load_beside(__file__, "features.yaml").items()
}
"""Features that an environment may use, and that older versions lack."""

_BY_POOL: Mapping[str, Callable[[PoolSettings], bool]] = {
    "flex-start": lambda pool: pool.capacity.kind == "flex-start",
    "managed-dranet": lambda pool: pool.rdma == "managed",
    "dra": lambda pool: pool.rdma == "networks",
    "gpu-dra": lambda pool: pool.by_dra or pool.nvlink,
    "image-disks": lambda pool: bool(pool.image_disks),
    "streaming-on-ubuntu": lambda pool: bool(pool.streams_images) and pool.node_image == "ubuntu",
}


def needed_features(settings: GkeSettings) -> list[Need]:
    """Return the features that an environment uses and older versions lack, the newest first."""
    return sorted(
        _needs(settings), key=lambda need: _padded(need.feature.since.parts, 0), reverse=True
    )


def _needs(settings: GkeSettings) -> Iterator[Need]:
    users: dict[Feature, list[str]] = {}
    for name, pool in settings.pools.items():
        for feature in _features_of(pool):
            users.setdefault(feature, []).append(repr(name))
    for feature, pools in users.items():
        noun = "pool" if len(pools) == 1 else "pools"
        yield Need(feature, f"{noun} {', '.join(pools)}")
    has_gpus = any(pool.machine.gpus for pool in settings.pools.values())
    if settings.cluster.managed_dcgm and has_gpus:
        yield Need(FEATURES["managed-dcgm"], "cluster.managedDcgm")
    if settings.ray_addon:
        yield Need(FEATURES["ray-addon"], "operators.kuberay.source: addon")
    if settings.addon("secret_sync"):
        yield Need(FEATURES["secret-sync"], "secrets with secretManager")


def _features_of(pool: PoolSettings) -> Iterator[Feature]:
    """Yield the features that a pool needs."""
    yield from _machine_features(pool)
    for key, uses in _BY_POOL.items():
        if uses(pool):
            yield FEATURES[key]


def _machine_features(pool: PoolSettings) -> Iterator[Feature]:
    """Yield the features that a pool needs for its machine type."""
    series = pool.machine.series
    driver = pool.machine.gpu.oldest_driver
    if series.gke_since:
        with_driver = f" with its driver R{driver}" if driver else ""
        name = f"series {series.name}{with_driver}"
        yield Feature(name, parse_gke_version(series.gke_since), series.sources["gke_since"])
    has_default_driver = pool.driver == "gke" and pool.driver_version in (None, "default")
    if series.gke_driver_since and has_default_driver:
        name = f"driver R{driver} for {series.name} as GKE's default"
        since = parse_gke_version(series.gke_driver_since)
        yield Feature(name, since, series.sources["gke_driver_since"])
    if series.gke_rdma_since and pool.rdma != "none":
        name = f"GPUDirect RDMA on {series.name}"
        since = parse_gke_version(series.gke_rdma_since)
        yield Feature(name, since, series.sources["gke_rdma_since"])


def why_too_old(settings: GkeSettings, version: str) -> str | None:
    """Return why a version is too old for an environment, and what to write; None if it is not.

    Raises:
        ValueError: the text is not a GKE version.
    """
    parsed = parse_gke_version(version)
    lacking = [
        need for need in needed_features(settings) if not parsed.at_least(need.feature.since)
    ]
    if not lacking:
        return None
    reasons = ", ".join(
        f"{need.feature.name} ({need.who}) needs {need.feature.since}" for need in lacking
    )
    newest = lacking[0].feature.since
    if settings.cluster.existing:
        remedy = f"Upgrade the cluster to {newest}"
    else:
        remedy = f'Set `cluster.version` to "{newest}"'
    return f"GKE {version} is too old: {reasons}. {remedy} or newer."
