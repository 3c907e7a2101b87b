"""Rules of the cluster: version, control plane, existing cluster, labels."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.core.settings import written
from berth.components.gke.settings import GkeSettings
from berth.components.gke.versions import too_old

_TOP: Path = ("environment",)
_CLUSTER: Path = (*_TOP, "cluster")
_EVERYWHERE = "0.0.0.0/0"

# "Label requirements" (https://docs.cloud.google.com/compute/docs/labeling-resources#requirements);
# goog- is Google's own.
_LABEL_KEY = re.compile(r"[a-z][-_a-z0-9]{0,62}")
_LABEL_VALUE = re.compile(r"[-_a-z0-9]{0,63}")
_LABELS_MOST = 64


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Return what a cluster cannot have."""
    yield from _existing(settings)
    yield from _labels(settings)
    if settings.cluster.existing:
        return
    if settings.cluster.version and (text := too_old(settings, settings.cluster.version)):
        yield Problem((*_CLUSTER, "version"), text)
    yield from _control_plane(settings)


def warnings(settings: GkeSettings) -> Iterable[Problem]:
    """Return settings that work, but likely not as intended."""
    for name, network in settings.cluster.authorized_networks.items():
        if network == _EVERYWHERE:
            yield Problem(
                (*_CLUSTER, "authorizedNetworks", name),
                "lets the whole internet reach the control plane, as a new cluster without a list does; name the"
                " networks of your office and your CI",
            )


_ONLY_WHEN_MADE = ("project", "zone", "region", "zones")
_POOL_WHEN_MADE = (
    *("zones", "capacity", "compactPlacement", "sysctls", "driverVersion", "diskSizeGb", "diskType", "localSsds"),
    *("maxPodsPerNode", "upgrade", "autoRepair", "secureBoot"),
)


def _existing(settings: GkeSettings) -> Iterable[Problem]:
    if not settings.cluster.existing:
        return
    because = "cluster.existing uses a cluster that is there, and berth makes neither network nor nodes"
    written_of_cluster = [key for key in written(settings.cluster) if key != "existing"]
    for path, keys in (
        (_TOP, [key for key in written(settings) if key in _ONLY_WHEN_MADE]),
        (_CLUSTER, written_of_cluster),
        ((*_TOP, "network"), written(settings.network)),
        *(
            ((*_TOP, "pools", name), [key for key in written(pool) if key in _POOL_WHEN_MADE])
            for name, pool in settings.pools.items()
        ),
    ):
        for key in keys:
            yield Problem((*path, key), f"would be ignored: {because}; take it out")


def _labels(settings: GkeSettings) -> Iterable[Problem]:
    path = (*_TOP, "labels")
    if len(settings.labels) > _LABELS_MOST:
        yield Problem(path, f"has {len(settings.labels)} labels; Google Cloud allows {_LABELS_MOST}")
    for key, value in settings.labels.items():
        if not _LABEL_KEY.fullmatch(key):
            yield Problem(
                (*path, key),
                f"{key!r} is not a label of Google Cloud: up to 63 lowercase letters, digits, '-' and '_', beginning"
                " with a letter, for example cost-center",
            )
        elif key.startswith("goog-"):
            yield Problem((*path, key), f"{key!r} begins with goog-, which is Google's own; take another")
        if not _LABEL_VALUE.fullmatch(value):
            yield Problem(
                (*path, key),
                f"{value!r} is not a label's value in Google Cloud: up to 63 lowercase letters, digits, '-' and '_'",
            )


def _control_plane(settings: GkeSettings) -> Iterable[Problem]:
    """Refuse public ranges that reach a control plane without a public address."""
    cluster = settings.cluster
    for name, network in cluster.authorized_networks.items():
        # Python calls the whole internet private, since both its first and its last address are.
        public = network == _EVERYWHERE or not ipaddress.IPv4Network(network).is_private
        if cluster.private_endpoint and public:
            yield Problem(
                (*_CLUSTER, "authorizedNetworks", name),
                f"{network} is public, and from there nobody reaches a control plane without a public address"
                " (privateEndpoint: true), which GKE refuses; name private networks, or take `privateEndpoint` out",
            )
