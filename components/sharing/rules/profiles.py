"""Rules of sharing profiles, and of pools that one GPU Operator serves together."""

from collections.abc import Iterator, Mapping

from berth.components.core.rules import Breach, Rules
from berth.components.gke import PoolSettings
from berth.components.hardware.names import WHOLE_KEY
from berth.components.sharing.pools import offered_pools
from berth.components.sharing.settings import SharingSettings

PROFILES = Rules[SharingSettings](SharingSettings)
"""Rules of an environment's sharing profiles and of its pools together."""


@PROFILES.problem("pools.*.sharing")
def modes_that_do_not_go_together(settings: SharingSettings) -> Iterator[Breach]:
    """One GPU Operator serves the modes of all its pools."""
    pools = offered_pools(settings.pools, settings.sharing)
    served = {name: pool.profile for name, pool in pools.items() if pool.settings.by_operator}
    facts_by_pool = {name: mode.facts for name, mode in served.items()}
    for name, mode in served.items():
        conflict = mode.conflict(name, facts_by_pool)
        if conflict:
            yield Breach(conflict, at=("pools", name, "sharing"))


@PROFILES.problem("sharing.*")
def shared_profile_named_whole(settings: SharingSettings) -> Iterator[Breach]:
    """The device plugin's config has an entry of its own for whole GPUs."""
    profile = settings.sharing.get(WHOLE_KEY)
    if profile and profile.facts.shared:
        yield Breach(
            "the device plugin's entry of this name has whole GPUs, so that this one would never"
            f" reach a node; give the {profile.kind} profile another name",
            at=("sharing", WHOLE_KEY),
        )


@PROFILES.problem("pools.*.driver")
def two_sources_of_the_driver(settings: SharingSettings) -> Iterator[Breach]:
    """Whether the GPU Operator installs the driver is one switch for the cluster."""
    by_driver = _first_pools_by_driver(settings)
    if len(by_driver) > 1:
        first, second = sorted(by_driver)
        yield Breach(
            f"pools {first} and {second} differ in whether the GPU Operator installs the driver,"
            " which is one switch for the cluster; give both the same `driver`, or leave one to"
            " GKE (gpuManagement: gke)",
            at=("pools", by_driver[-1], "driver"),
        )


@PROFILES.problem("pools.*.nodeImage")
def two_node_images_of_the_operator(settings: SharingSettings) -> Iterator[Breach]:
    """The GPU Operator looks for the driver in one folder on all nodes."""
    by_image = _first_pools(
        {name: pool.node_image for name, pool in _pools_of_the_operator(settings).items()}
    )
    # A pool whose driver differs too is reported for that: another driver has another image.
    if len(by_image) > 1 and by_image[-1] != _first_pools_by_driver(settings)[-1]:
        first, second = sorted(by_image)
        yield Breach(
            f"pools {first} and {second} differ in their node image, and the GPU Operator looks"
            " for the driver in one folder on all nodes; give both the same `nodeImage`, or leave"
            " one to GKE (gpuManagement: gke)",
            at=("pools", by_image[-1], "nodeImage"),
        )


def _first_pools_by_driver(settings: SharingSettings) -> list[str]:
    return _first_pools(
        {name: pool.driver == "operator" for name, pool in _pools_of_the_operator(settings).items()}
    )


def _pools_of_the_operator(settings: SharingSettings) -> Mapping[str, PoolSettings]:
    return {name: pool for name, pool in settings.pools.items() if pool.by_operator}


def _first_pools(choices: Mapping[str, object]) -> list[str]:
    """Return the first pool of each choice, in the order of the pools."""
    first: dict[object, str] = {}
    for name, choice in choices.items():
        first.setdefault(choice, name)
    return list(first.values())
