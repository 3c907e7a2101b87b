"""Rules of GPU pools: driver, who advertises the GPUs, how they are shared, RDMA beside them."""

from collections.abc import Iterable

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Path, Problem
from berth.components.core.table import beside, broken
from berth.components.gke import PoolSettings
from berth.components.hardware.machines import MACHINES
from berth.components.hardware.names import CONFIG_LABEL, GPU_RESOURCE, WHOLE_KEY
from berth.components.sharing.device_plugin import label_command, serving_labels
from berth.components.sharing.modes import MODES
from berth.components.sharing.pools import SharingSettings, offered

_OTHER_NETWORKS = {"tcpxo": "GPUDirect-TCPXO", "tcpx": "GPUDirect-TCPX"}


def problems(settings: SharingSettings) -> Iterable[Problem]:
    """Return what is wrong with the GPUs of each pool, and of pools together."""
    yield from _contradicting_labels(settings)
    yield from _conflicting_modes(settings)
    if (whole := settings.sharing.get(WHOLE_KEY)) and whole.facts.shared:
        yield from broken(beside(__file__)["whole"], ("environment", "sharing", WHOLE_KEY), whole=whole)
    drivers: dict[bool, str] = {}
    images: dict[str, str] = {}
    for name, pool in settings.pools.items():
        path: Path = ("environment", "pools", name)
        yield from _own_problems(pool, settings, path)
        if not pool.by_operator:
            continue
        first, with_image = (
            drivers.setdefault(pool.driver == "operator", name),
            images.setdefault(pool.node_image, name),
        )
        if drivers.keys() == {True, False} and first == name:
            yield from broken(beside(__file__)["drivers"], path, pools=sorted(drivers.values()))
        elif len(images) > 1 and with_image == name:
            yield from broken(beside(__file__)["node_images"], path, pools=sorted(images.values()))


def _own_problems(pool: PoolSettings, settings: SharingSettings, path: Path) -> Iterable[Problem]:
    profile = settings.sharing.get(pool.sharing or "")
    network = _OTHER_NETWORKS.get(pool.machine.series.gpu_network)
    claimable = bool(profile and profile.facts.claimable and settings.cluster.existing)
    claimed = [name for name, other in settings.pools.items() if other.by_dra]
    yield from broken(
        beside(__file__)["pools"],
        path,
        pool=pool,
        profile=profile,
        claimable=claimable,
        claimed=claimed,
        existing=settings.cluster.existing,
        attached=next(iter(pool.machine.series.attaches), ""),
        gpu_resource=GPU_RESOURCE,
        shared=bool(pool.machine.gpus) and (claimable or not (pool.by_dra and profile)),
        problem=profile.problem(pool.machine) if profile else "",
        known=did_you_mean(pool.sharing or "", settings.sharing) or "; `sharing:` has none",
        with_rdma=[name for name, machine in MACHINES.items() if machine.rdma],
        instead=f", its GPUs' NICs are for {network}" if network else "",
    )


def _contradicting_labels(settings: SharingSettings) -> Iterable[Problem]:
    """Return labels of a pool that contradict its settings for GPUs."""
    choosing = {CONFIG_LABEL, *(mode.label for mode in MODES)}
    for name, pool in offered(settings.pools, settings.sharing).items():
        labels = serving_labels(pool)
        for key, value in pool.settings.labels.items():
            if key in labels.keys() | choosing and labels.get(key) != value:
                facts = {"state": f"is {labels[key]}" if key in labels else "is not there", "value": value}
                yield from broken(beside(__file__)["labels"], ("environment", "pools", name, "labels", key), **facts)


def _conflicting_modes(settings: SharingSettings) -> Iterable[Problem]:
    """Return the sharing modes that one GPU Operator cannot serve together."""
    pools = offered(settings.pools, settings.sharing)
    served = {name: pool.profile for name, pool in pools.items() if pool.settings.by_operator}
    facts = {name: mode.facts for name, mode in served.items()}
    for name, mode in served.items():
        if conflict := mode.conflict(name, facts):
            yield Problem(("environment", "pools", name, "sharing"), conflict)


def warnings(settings: SharingSettings) -> Iterable[Problem]:
    """Return warnings about labels that nodes of an existing cluster need."""
    if not settings.cluster.existing:
        return
    pools = offered(settings.pools, settings.sharing)
    operator = any(pool.settings.by_operator for pool in pools.values())
    for name, pool in pools.items():
        labels = serving_labels(pool)
        if labels and (operator or pool.settings.by_dra):
            facts = {"pool": pool, "command": label_command(name, labels)}
            yield from broken(beside(__file__)["unlabeled"], ("environment", "pools", name), **facts)
