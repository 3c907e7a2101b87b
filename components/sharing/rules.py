"""Rules of GPU pools: driver, who advertises the GPUs, sharing, RDMA, GKE's cluster autoscaler."""

from collections.abc import Iterable

from berth.components.core.bounds import Bounds
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Path, Problem
from berth.components.core.table import beside, broken
from berth.components.gke import PoolSettings
from berth.components.hardware.machines import MACHINES
from berth.components.hardware.names import CONFIG_LABEL, GPU_RESOURCE, WHOLE_KEY
from berth.components.sharing.device_plugin import label_command, serving_labels
from berth.components.sharing.modes import MODES, WHOLE, Facts
from berth.components.sharing.pools import SharingSettings, offered

_OTHER_NETWORKS = {"tcpxo": "GPUDirect-TCPXO", "tcpx": "GPUDirect-TCPX"}

# Defaults of the cluster autoscaler's flags ok-total-unready-count and max-total-unready-percentage
# (pkg/config/flags/flags.go).
_UNREADY_NODES, _UNREADY_PERCENT = 3, 45


def problems(settings: SharingSettings) -> Iterable[Problem]:
    """Return what is wrong with the GPUs of each pool, and of pools together."""
    yield from _contradicting_labels(settings)
    yield from _conflicting_modes(settings)
    if (whole := settings.sharing.get(WHOLE_KEY)) and whole.facts.shared:
        yield from broken(
            beside(__file__)["whole"], ("environment", "sharing", WHOLE_KEY), whole=whole
        )
    drivers: dict[bool, str] = {}
    images: dict[str, str] = {}
    for name, pool in settings.pools.items():
        path: Path = ("environment", "pools", name)
        yield from _own_problems(pool, settings, path)
        if not pool.by_operator:
            continue
        first = drivers.setdefault(pool.driver == "operator", name)
        with_image = images.setdefault(pool.node_image, name)
        if drivers.keys() == {True, False} and first == name:
            yield from broken(beside(__file__)["drivers"], path, pools=sorted(drivers.values()))
        elif len(images) > 1 and with_image == name:
            yield from broken(beside(__file__)["node_images"], path, pools=sorted(images.values()))
    if not settings.cluster.existing:
        yield from _scaling("never_scaled", settings)


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
                facts = {
                    "state": f"is {labels[key]}" if key in labels else "is not there",
                    "value": value,
                }
                yield from broken(
                    beside(__file__)["labels"],
                    ("environment", "pools", name, "labels", key),
                    **facts,
                )


def _conflicting_modes(settings: SharingSettings) -> Iterable[Problem]:
    """Return the sharing modes that one GPU Operator cannot serve together."""
    pools = offered(settings.pools, settings.sharing)
    served = {name: pool.profile for name, pool in pools.items() if pool.settings.by_operator}
    facts = {name: mode.facts for name, mode in served.items()}
    for name, mode in served.items():
        if conflict := mode.conflict(name, facts):
            yield Problem(("environment", "pools", name, "sharing"), conflict)


def warnings(settings: SharingSettings) -> Iterable[Problem]:
    """Yield labels that nodes of an existing cluster need, and pools that do not always scale."""
    if settings.cluster.existing:
        yield from _missing_labels(settings)
        yield from _scaling("never_scaled", settings)
    yield from _scaling("scaled_sometimes", settings)
    yield from _stopped(settings)


def _missing_labels(settings: SharingSettings) -> Iterable[Problem]:
    pools = offered(settings.pools, settings.sharing)
    operator = any(pool.settings.by_operator for pool in pools.values())
    for name, pool in pools.items():
        labels = serving_labels(pool)
        if labels and (operator or pool.settings.by_dra):
            facts = {"pool": pool, "command": label_command(name, labels)}
            yield from broken(
                beside(__file__)["unlabeled"], ("environment", "pools", name), **facts
            )


def _scaling(table: str, settings: SharingSettings) -> Iterable[Problem]:
    """Yield what a table says of pools whose number of nodes GKE's autoscaler chooses."""
    for name, pool in _scaled(settings):
        way = f"write nodes: {{min: 1, max: {pool.nodes_at_most}}}, or a number of nodes"
        if pool.capacity.kind == "flex-start":
            without = (
                "write `rdma: none`" if pool.rdma == "networks" else "take `gpuAllocation` out"
            )
            way = (
                "take machines that can stay (a reservation or spot) with one node or more, or"
                f" {without}"
            )
        facts = {"facts": _facts(pool, settings), "unseen": _unseen(pool, settings), "way": way}
        yield from broken(
            beside(__file__)[table], ("environment", "pools", name), pool=pool, **facts
        )


def _scaled(settings: SharingSettings) -> list[tuple[str, PoolSettings]]:
    return [
        (name, pool)
        for name, pool in settings.pools.items()
        if isinstance(pool.nodes, Bounds) and pool.nodes.min < pool.nodes.max
    ]


def _facts(pool: PoolSettings, settings: SharingSettings) -> Facts:
    return (settings.sharing.get(pool.sharing or "", WHOLE) if pool.by_operator else WHOLE).facts


def _unseen(pool: PoolSettings, settings: SharingSettings) -> str:
    """Return the resource that nodes advertise instead of nvidia.com/gpu; empty for none."""
    resource = _facts(pool, settings).resource
    return "" if resource == GPU_RESOURCE else resource


def _stopped(settings: SharingSettings) -> Iterable[Problem]:
    """Return nodes that count as broken, of which some stop the autoscaling of all pools."""
    scaled = [name for name, pool in _scaled(settings) if not _unseen(pool, settings)]
    unseen = {
        name: pool.nodes_at_most for name, pool in settings.pools.items() if _unseen(pool, settings)
    }
    lost = sum(unseen.values())
    seen = sum(pool.nodes_at_least for name, pool in settings.pools.items() if name not in unseen)
    if scaled and lost > _UNREADY_NODES and lost * 100 > _UNREADY_PERCENT * (lost + seen):
        facts = {
            "unseen": list(unseen),
            "scaled": scaled,
            "nodes": _UNREADY_NODES,
            "percent": _UNREADY_PERCENT,
        }
        yield from broken(
            beside(__file__)["stopped"],
            ("environment", "pools", next(iter(unseen))),
            count=lost,
            **facts,
        )
