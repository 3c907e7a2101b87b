"""Losses by the removal of a berth, as far as its cluster can be asked."""

from collections import Counter
from collections.abc import Sequence

from berth.cli.reach.berths import LiveBerth, live_berth
from berth.cli.reach.homes import HomeDisk, disks_of
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.owner import namespace_of
from berth.components.core.words import counted, names_in_words
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.ray.live import condition_of, live_groups
from berth.components.sharing import offered_pools


def losses_in_words(stack: str, name: str) -> str:
    """Return what the next update deletes of a berth that is taken out of the settings."""
    text = (
        f"the next `berth up -s {stack}` removes namespace {namespace_of(name)} with everything"
        " in it"
    )
    try:
        berth = live_berth(name, stack)
        disks = _disks(stack, disks_of(berth.api, name))
        return f"{text}{disks}: {ray_cluster_in_words(berth)}"
    except BadInputError:
        return f"{text}; it is not up"
    except BerthError as error:
        return f"{text}; whether it is up could not be asked: {error}"


def losses_with_home(stack: str, berth: LiveBerth, disks: Sequence[HomeDisk]) -> str:
    """Return what the next update deletes of a berth whose home is to be deleted too."""
    name = berth.name
    return (
        f"the next `berth up -s {stack}` removes everything in namespace {namespace_of(name)}, also"
        f" {names_in_words(disks, 'and')}, which nothing undoes: {ray_cluster_in_words(berth)};"
        f" the empty namespace stays, until berth home remove {name} -s {stack}"
    )


def ray_cluster_in_words(berth: LiveBerth) -> str:
    """Return the state of a RayCluster that is removed, and what is lost with it."""
    ray_cluster = f"RayCluster {berth.key[1]}"
    pods = len(berth.pods())
    if not pods:
        return f"{ray_cluster}, {condition_of(berth.cluster).state}, without pods"
    count = f"{counted(pods, 'pod')} and {_requested_gpus(berth)}"
    return f"{ray_cluster} is up now, with {count}, and what runs there is lost"


def _disks(stack: str, disks: Sequence[HomeDisk]) -> str:
    """Return what the next update does with home and Filestore volumes."""
    if not disks:
        return ""
    words = names_in_words(disks, "and")
    if not disks[0].retained:
        return f", also {words}"
    stay = "stays" if len(disks) == 1 else "stay"
    return (
        f", but {words} {stay}; to delete that later: berth home remove {disks[0].name} -s {stack}"
    )


def _requested_gpus(berth: LiveBerth) -> str:
    """Return what a berth's workers request: `8 × B200 and 1 share (1/4 of an L4, …)`."""
    contract = berth.environment.contract
    pools = offered_pools(contract.pools, contract.sharing)
    by_unit: Counter[GpuUnit] = Counter()
    for group in live_groups(berth.cluster, (), suspended=False):
        unit = pools[group.pool].gpu_unit if group.pool in pools else GpuUnit()
        by_unit[unit] += group.gpus
    requested = {unit: gpus for unit, gpus in by_unit.items() if gpus}
    if not requested:
        requested = {next(iter(by_unit)): 0}
    return " and ".join(unit.amount(gpus) for unit, gpus in requested.items())
