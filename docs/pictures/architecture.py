"""Picture of the architecture: from settings to berths, on the environment `prod` as it is set."""

from collections.abc import Sequence
from itertools import cycle

from berth.components.core.owner import namespace_of
from berth.components.gke.network_settings import ranges_of
from berth.components.operators import (
    DraNet,
    DriverInstaller,
    Gib,
    GpuDra,
    GpuOperator,
    KubeRay,
    Site,
)
from berth.components.ray import RayClusterSettings, WorkerGroup
from berth.components.sharing import Pool
from berth.stacks.load.stack import Environment, load_stack
from berth.stacks.settings.contract import has_keeper
from docs.pictures.svg import LARGE, LINE, NORMAL, SMALL, WIDTH, Area, Picture, Style

_EDGE = 14
_GAP = 12
_PAD = 12
_COLUMNS = 4
_TONES = ("green", "teal", "pink", "violet")

_FOR = {
    KubeRay: "makes pods of RayClusters, RayJobs and RayServices",
    DriverInstaller: "installs NVIDIA's driver on nodes",
    GpuOperator: "divides GPUs: time-slicing, MPS, MIG",
    DraNet: "hands RDMA NICs to the workers that claim them",
    GpuDra: "hands GPUs to the workers that claim them",
    Gib: "brings NCCL's plugin for RDMA to the nodes",
}
"""Tasks of the operators."""

_NAMESPACES = (
    "Each berth-NAME is a namespace with a RayCluster in it, and with a quota, network policies and"
    " a Pod Security level of its own. Heads and workers run on the pools that the settings name."
)


def draw() -> Picture:
    """Return the picture of environment `prod`."""
    loaded = load_stack("prod")
    assert isinstance(loaded, Environment)  # noqa: S101
    return picture_of(loaded)


def picture_of(loaded: Environment) -> Picture:
    """Return the picture of a loaded environment."""
    pools = loaded.resolved.pools.values()
    picture = Picture(
        "Architecture of berth",
        "Settings of a stack are checked, and one Pulumi program creates from them a network, a"
        f" GKE cluster with {len(pools)} node pools"
        f" ({', '.join(pool.made_of if pool.offer else pool.name for pool in pools)}), operators,"
        " and one namespace with a RayCluster for each engineer and each named cluster.",
    )
    bottom = _road(picture, loaded)
    _cloud(picture, loaded, bottom + 30)
    return picture


def _road(picture: Picture, loaded: Environment) -> float:
    """Draw the way from settings to Pulumi; return its lower edge."""
    settings = loaded.settings
    listed = [
        _counted(len(settings.pools), "pool"),
        _counted(len(settings.engineers), "engineer"),
        _counted(len(settings.clusters), "cluster"),
        _counted(len(settings.jobs), "job"),
        _counted(len(settings.services), "service"),
    ]
    steps = (
        (
            "violet",
            "Settings",
            [
                (f"stacks/Pulumi.{loaded.stack}.yaml", True),
                (f"an environment: {', '.join(text for text in listed if text)}", False),
                ("stacks/Pulumi.NAME.yaml", True),
                ("an engineer's own berth, in a stack of its own", False),
            ],
        ),
        (
            "blue",
            "berth",
            [
                ("berth check", True),
                ("finds every wrong setting and broken policy, without Pulumi", False),
                ("berth preview", True),
                ("says whose work a change would end", False),
            ],
        ),
        (
            "amber",
            "Pulumi",
            [
                ("pulumi up", True),
                ("one Python program for every stack; the state is in your backend", False),
                ("berth status", True),
                ("shows what runs, and why a berth is not ready", False),
            ],
        ),
    )
    between = 30
    width = (WIDTH - 2 * _EDGE - 2 * between) / 3
    left = float(_EDGE)
    top = 16.0
    height = 142.0
    for number, (tone, title, lines) in enumerate(steps):
        picture.box(Area(left, top, width, height), tone)
        y = picture.text(left + _PAD, top + 10, title, Style(LARGE, tone, bold=True)) + 3
        for text, code in lines:
            y = picture.paragraph(left + _PAD, y, text, width - 2 * _PAD, Style(SMALL, mono=code))
            y += 0 if code else 4
        if number:
            middle = top + height / 2
            picture.arrow([(left - between + 4, middle), (left - 4, middle)])
        left += width + between
    last = left - between - width / 2
    picture.arrow([(last, top + height + 4), (last, top + height + 28)])
    return top + height


def _cloud(picture: Picture, loaded: Environment, top: float) -> None:
    """Draw the project: networks, the cluster with its operators and pools, the engineers."""
    settings = loaded.settings
    below = picture.mark()
    left = _EDGE + _PAD
    right = WIDTH - _EDGE - _PAD
    picture.text(left, top + 10, "Google Cloud", Style(LARGE, bold=True))
    where = f"project {settings.project}, {settings.zone or settings.in_region}"
    picture.text(right, top + 13, where, Style(SMALL, "muted"), anchor="end")
    y = _row(picture, _networks(loaded), Area(left, top + 38, right - left, 0), "muted")
    y = _cluster(picture, loaded, Area(left, y + _GAP, right - left, 0)) + _PAD
    picture.box(Area(_EDGE, top, WIDTH - 2 * _EDGE, y - top), "plain", below=below)
    picture.arrow([(WIDTH / 2, y + 30), (WIDTH / 2, y + 4)])
    people = Area(_EDGE, y + 32, WIDTH - 2 * _EDGE, 46)
    picture.box(people, "violet")
    picture.text(people.x + _PAD, people.y + 14, "Engineers", Style(LARGE, "violet", bold=True))
    ways = "berth connect · ray job submit · Ray's dashboard · kubectl in their own namespace"
    picture.text(
        people.x + people.width - _PAD, people.y + 17, ways, Style(SMALL), anchor="end", room=620
    )


def _networks(loaded: Environment) -> list[tuple[str, str]]:
    """Return the networks, each with what it is for."""
    settings = loaded.settings
    if settings.network.existing:
        return [("VPC network", f"{settings.network.existing.network}, which exists already")]
    nat = settings.cluster.private_nodes and settings.network.nat
    found = [("VPC network", f"nodes, pods{', Cloud NAT to the internet' if nat else ''}")]
    zones = settings.rdma_zones
    if zones:
        number = len(ranges_of(settings.network).rdma_subnetworks)
        found.append(("Second network", "the other gVNIC of nodes with RDMA"))
        found.append(
            (
                "RDMA network",
                f"{number} subnetworks in {', '.join(zones)}, one for each NIC of a node",
            )
        )
    return found


def _cluster(picture: Picture, loaded: Environment, area: Area) -> float:
    """Draw the cluster; return its lower edge."""
    below = picture.mark()
    inner = area.width - 2 * _PAD
    x = area.x + _PAD
    name = loaded.settings.cluster.name or loaded.stack
    picture.text(x, area.y + 10, f"GKE cluster {name}", Style(LARGE, "blue", bold=True))
    operators = [
        (operator.title, _FOR.get(type(operator), ""))
        for operator in loaded.settings.operators.on(_site(loaded))
    ]
    if has_keeper(loaded.settings, loaded.resolved.every):
        operators.append(("Keeper", "suspends and wakes berths by their lifecycle"))
    y = _row(picture, operators, Area(x, area.y + 38, inner, 0), "amber")
    tones = {
        ray.name: tone for ray, tone in zip(loaded.resolved.every, cycle(_TONES), strict=False)
    }
    pools = list(loaded.resolved.pools.values())
    for first in range(0, len(pools), _COLUMNS):
        row = pools[first : first + _COLUMNS]
        width = (inner - _GAP * (len(row) - 1)) / len(row)
        marks = []
        ends = []
        for number, pool in enumerate(row):
            marks.append(picture.mark())
            place = Area(x + number * (width + _GAP), y + _GAP, width, 0)
            ends.append(_pool(picture, pool, loaded.resolved.every, tones, place))
        for number, mark in reversed(list(enumerate(marks))):
            box = Area(x + number * (width + _GAP), y + _GAP, width, max(ends) - y - _GAP)
            picture.box(box, "page", below=mark)
        y = max(ends)
    y = picture.paragraph(x, y + _GAP, _NAMESPACES, inner, Style(SMALL, "blue")) + 6
    picture.box(Area(area.x, area.y, area.width, y - area.y), "blue", below=below)
    return y


def _devices_in_words(pool: Pool) -> str:
    machine = pool.settings.machine
    capacity = pool.settings.capacity
    words = [f"{machine.gpus} {machine.gpu.product} GPUs a node" if machine.gpus else "no GPUs"]
    if pool.settings.nics:
        words.append(f"{pool.settings.nics} RDMA NICs")
    if pool.shared:
        words.append(f"each GPU {pool.profile.facts.divided} {pool.per_node // machine.gpus}")
    words.append(f"reservation {capacity.reservation}" if capacity.reservation else capacity.kind)
    return ", ".join(words)


def _row_of_boxes(
    picture: Picture, x: float, y: float, count: int, height: float, tone: str
) -> None:
    for index in range(count):
        picture.box(Area(x + index * 17, y, 13, height), tone, radius=2)


def _pool(
    picture: Picture,
    pool: Pool,
    rays: Sequence[RayClusterSettings],
    tones: dict[str, str],
    area: Area,
) -> float:
    """Draw the content of a pool; return its lower edge."""
    x = area.x + _PAD
    room = area.width - 2 * _PAD
    machine = pool.settings.machine
    y = picture.text(x, area.y + 9, f"pool {pool.name}", Style(bold=True), room=room)
    least = pool.settings.nodes_at_least
    most = pool.settings.nodes_at_most
    count = str(most) if least == most else f"{least}–{most}"
    y = picture.text(x, y, f"{count} × {machine.name}", Style(SMALL, mono=True), room=room)
    y = picture.paragraph(x, y, _devices_in_words(pool), room, Style(SMALL, "muted")) + 2
    if machine.gpus:
        _row_of_boxes(picture, x, y, machine.gpus, 13, "amber")
        y += 17
    if pool.settings.nics:
        _row_of_boxes(picture, x, y, pool.settings.nics, 6, "muted")
        y += 10
    y += 4
    for ray in rays:
        parts = ["head"] if ray.head.pool == pool.name else []
        parts += [_workers(group, pool) for group in ray.groups if group.pool == pool.name]
        if parts:
            chip = Area(x, y, room, 26 + 16 * len(parts))
            tone = tones[ray.name]
            picture.box(chip, tone, radius=6)
            line = picture.text(
                x + 9, y + 6, namespace_of(ray.name), Style(SMALL, tone, bold=True), room=room - 18
            )
            for part in parts:
                line = picture.text(x + 9, line, part, Style(SMALL, tone), room=room - 18)
            y += chip.height + 6
    return y + 6


def _workers(group: WorkerGroup, pool: Pool) -> str:
    number = (
        group.workers
        if isinstance(group.workers, int)
        else f"{group.workers.min}–{group.workers.max}"
    )
    has = [pool.counted(group.gpus)] if group.gpus else []
    has += [f"{group.nics} NICs"] if group.nics else []
    return (
        f"{number} {'worker' if number == 1 else 'workers'}{' × ' if has else ''}{' + '.join(has)}"
    )


def _row(picture: Picture, items: Sequence[tuple[str, str]], area: Area, tone: str) -> float:
    """Draw boxes of one height beside each other; return their lower edge."""
    width = (area.width - _GAP * (len(items) - 1)) / len(items)
    room = width - 20
    lines = max(len(Style(SMALL).wrapped(text, room)) for _, text in items)
    height = 14 + (NORMAL + lines * SMALL) * LINE
    for number, (title, text) in enumerate(items):
        x = area.x + number * (width + _GAP)
        picture.box(Area(x, area.y, width, height), tone, radius=6)
        y = picture.text(x + 10, area.y + 7, title, Style(tone=tone, bold=True), room=room)
        picture.paragraph(x + 10, y, text, room, Style(SMALL))
    return area.y + height


def _site(loaded: Environment) -> Site:
    return Site(pools=loaded.resolved.pools)


def _counted(count: int, noun: str) -> str:
    return "" if not count else f"1 {noun}" if count == 1 else f"{count} {noun}s"
