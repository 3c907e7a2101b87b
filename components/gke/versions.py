"""GKE versions, and the oldest one that each feature of an environment needs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.settings import GkeSettings
from berth.components.hardware.facts import Source

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:-gke\.(\d+))?(?:[+].*)?")


@dataclass(frozen=True)
class GkeVersion:
    """GKE version, or the beginning of one: 1.35, 1.34.1, 1.34.1-gke.1829001.

    Attributes:
        text: text of the version, which `str` returns.
        parts: major, minor, patch and GKE's build, as far as the text has them.
    """

    text: str
    parts: tuple[int, ...]

    def __str__(self) -> str:
        return self.text

    def at_least(self, oldest: GkeVersion) -> bool:
        """Whether it is not older; a missing part is the newest here, and the first in `oldest`."""
        return _padded(self.parts, math.inf) >= _padded(oldest.parts, 0)


def parse(text: str) -> GkeVersion:
    """Return the version of a text.

    Raises:
        ValueError: the text is not a GKE version.
    """
    match = _VERSION.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a GKE version; write for example 1.35 or 1.34.1-gke.1829001")
    return GkeVersion(text, tuple(int(part) for part in match.groups() if part is not None))


def _padded(parts: tuple[int, ...], by: float) -> tuple[float, ...]:
    return (*parts, *[by] * (4 - len(parts)))


@dataclass(frozen=True)
class Feature:
    """Feature of newer versions.

    Attributes:
        name: name for people.
        since: the first version that has it.
        source: page that says so.
    """

    name: str
    since: GkeVersion
    source: Source


@dataclass(frozen=True)
class Need:
    """Feature that an environment uses.

    Attributes:
        feature: the feature.
        who: its users, for people: `pool 'train'`, `operators.kuberay.source: addon`.
    """

    feature: Feature
    who: str


_DOCS = "https://docs.cloud.google.com/kubernetes-engine/docs"
_FLEX_START = Source(
    "Run a large-scale workload with flex-start with queued provisioning, Before you begin",
    f"{_DOCS}/how-to/provisioningrequest",
)
_DRANET = Source(
    "Allocate network resources by using GKE managed DRANET",
    f"{_DOCS}/how-to/allocate-network-resources-dra",
)
_KUBERNETES_DRA = Source(
    "Kubernetes v1.34: DRA has graduated to GA", "https://kubernetes.io/blog/2025/09/01/kubernetes-v1-34-dra-updates/"
)
_GPU_DRA = Source(
    "DRA Driver for NVIDIA GPUs, Prerequisites", "https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu"
)
_RAY = Source("Enable the Ray Operator on GKE", f"{_DOCS}/add-on/ray-on-gke/how-to/enable-ray-on-gke")
_SECRETS = Source(
    "Synchronize secrets to Kubernetes Secrets, Before you begin",
    "https://docs.cloud.google.com/secret-manager/docs/sync-k8-secrets",
)
_DCGM = Source("Collect and view DCGM metrics", f"{_DOCS}/how-to/dcgm-metrics")

FLEX_START = Feature("flex-start", parse("1.32.2-gke.1652000"), _FLEX_START)
MANAGED_DRANET = Feature("managed DRANET", parse("1.34.1-gke.1829001"), _DRANET)
DRA = Feature(
    "dynamic resource allocation (resource.k8s.io/v1), with which DraNet assigns NICs", parse("1.34"), _KUBERNETES_DRA
)
GPU_DRA = Feature("NVIDIA's DRA driver for GPUs", parse("1.34.2"), _GPU_DRA)
DCGM = Feature("managed DCGM", parse("1.30.1-gke.1204000"), _DCGM)
RAY_ADDON = Feature("the Ray operator add-on", parse("1.30.0-gke.1747000"), _RAY)
SECRET_SYNC = Feature("synchronization with Secret Manager", parse("1.34"), _SECRETS)

_BY_POOL: dict[Feature, Callable[[PoolSettings], bool]] = {
    FLEX_START: lambda pool: pool.capacity.kind == "flex-start",
    MANAGED_DRANET: lambda pool: pool.rdma == "managed",
    DRA: lambda pool: pool.rdma == "networks",
    GPU_DRA: lambda pool: pool.by_dra,
}


def needed(settings: GkeSettings) -> list[Need]:
    """Return the features that an environment uses and older versions lack, the newest first."""
    return sorted(_needs(settings), key=lambda need: _padded(need.feature.since.parts, 0), reverse=True)


def _needs(settings: GkeSettings) -> Iterator[Need]:
    users: dict[Feature, list[str]] = {}
    for name, pool in settings.pools.items():
        for feature in (*_of_machine(pool), *(feature for feature, uses in _BY_POOL.items() if uses(pool))):
            users.setdefault(feature, []).append(repr(name))
    for feature, pools in users.items():
        yield Need(feature, f"{'pool' if len(pools) == 1 else 'pools'} {', '.join(pools)}")
    if settings.cluster.managed_dcgm and any(pool.machine.gpus for pool in settings.pools.values()):
        yield Need(DCGM, "cluster.managedDcgm")
    if settings.ray_addon:
        yield Need(RAY_ADDON, "operators.kuberay.source: addon")
    if settings.secret_sync:
        yield Need(SECRET_SYNC, "secrets with secretManager")


def _of_machine(pool: PoolSettings) -> Iterator[Feature]:
    """Features that a pool needs for its machine type."""
    series, driver = pool.machine.series, pool.machine.gpu.oldest_driver
    default_driver = pool.driver == "gke" and pool.driver_version != "latest"
    for uses, key, name in (
        (True, "gke_since", f"series {series.name} with its driver R{driver}"),
        (default_driver, "gke_driver_since", f"driver R{driver} for {series.name} as GKE's default"),
        (pool.rdma != "none", "gke_rdma_since", f"GPUDirect RDMA on {series.name}"),
    ):
        if uses and (since := getattr(series, key)):
            yield Feature(name, parse(since), series.sources[key])


def too_old(settings: GkeSettings, version: str) -> str | None:
    """Return why a version is too old for an environment, and what to write; None where it is not.

    Args:
        settings: settings of the environment.
        version: version of the control plane: the settings' own, or the release channel's.

    Raises:
        ValueError: the text is not a GKE version.
    """
    given = parse(version)
    lacking = [need for need in needed(settings) if not given.at_least(need.feature.since)]
    if not lacking:
        return None
    reasons = ", ".join(f"{need.feature.name} ({need.who}) needs {need.feature.since}" for need in lacking)
    newest = lacking[0].feature.since
    remedy = f"Upgrade the cluster to {newest}" if settings.cluster.existing else f'Set `cluster.version` to "{newest}"'
    return f"GKE {version} is too old: {reasons}. {remedy} or newer."
