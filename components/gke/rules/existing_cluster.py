"""Rules of environments on an existing cluster: settings of what berth does not create there."""

from collections.abc import Iterator

from pydantic import BaseModel

from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.core.settings import written_keys
from berth.components.gke.cluster_settings import ClusterSettings
from berth.components.gke.network_settings import NetworkSettings
from berth.components.gke.settings import GkeSettings

EXISTING_CLUSTERS = Rules[GkeSettings](GkeSettings)
"""Rules of environments on an existing cluster."""

_OF_THE_ENVIRONMENT = ("project", "zone", "region", "zones")
_OF_A_POOL = (
    "zones",
    "capacity",
    "compactPlacement",
    "sysctls",
    "driverVersion",
    "diskSizeGb",
    "diskType",
    "localSsds",
    "maxPodsPerNode",
    "upgrade",
    "autoRepair",
    "secureBoot",
    "imageStreaming",
    "imageDisks",
    "arguments",
)


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


@EXISTING_CLUSTERS.problem(
    *_OF_THE_ENVIRONMENT,
    *(f"cluster.{key}" for key in _keys(ClusterSettings) if key != "existing"),
    *(f"network.{key}" for key in _keys(NetworkSettings)),
    *(f"pools.*.{key}" for key in _OF_A_POOL),
)
def ignored_settings(environment: GkeSettings) -> Iterator[Breach]:
    """On an existing cluster berth creates no network, cluster or node pool."""
    for place in _ignored_places(environment):
        yield Breach(
            "would be ignored: cluster.existing uses a cluster that is there, and berth makes"
            " neither network nor nodes; take it out",
            at=place,
        )


def _ignored_places(environment: GkeSettings) -> Iterator[SettingPath]:
    for key in written_keys(environment):
        if key in _OF_THE_ENVIRONMENT:
            yield (key,)
    for key in written_keys(environment.cluster):
        if key != "existing":
            yield ("cluster", key)
    for key in written_keys(environment.network):
        yield ("network", key)
    for name, pool in environment.pools.items():
        for key in written_keys(pool):
            if key in _OF_A_POOL:
                yield ("pools", name, key)
