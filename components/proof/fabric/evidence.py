"""What the program in the cluster printed, as typed values: pure."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from dataclasses import dataclass
from typing import Any

from berth.components.programs.all_reduce import MARKER


class NoEvidenceError(Exception):
    """The log has no evidence, or not all of it; the text says which."""


@dataclass(frozen=True)
class Moved:
    """Bytes that one interface or RDMA device moved between two readings.

    Attributes:
        name: the interface's or the device's.
        sent: bytes sent.
        received: bytes received.
        interface: of an RDMA device, the network interface that it belongs to; "" where the pod has none.
    """

    name: str
    sent: int
    received: int
    interface: str = ""

    @property
    def total(self) -> int:
        """Bytes in both directions."""
        return self.sent + self.received


@dataclass(frozen=True)
class Traffic:
    """What one pod moved while tensors were summed.

    Attributes:
        pod: the pod.
        main: name of its interface on the pods' own network.
        claimed: names of those that a claim brought.
        interfaces: all its interfaces.
        rdma: its RDMA devices, whose traffic no interface counts.
    """

    pod: str
    main: str
    claimed: tuple[str, ...]
    interfaces: tuple[Moved, ...]
    rdma: tuple[Moved, ...]

    @property
    def over_main(self) -> int:
        """Bytes over the pods' own network."""
        return sum(each.total for each in self.interfaces if each.name == self.main)

    @property
    def nics(self) -> tuple[Moved, ...]:
        """What each claimed NIC moved, by RDMA and otherwise. RDMA devices of other pods, which sysfs may show too, are not among them."""
        by_rdma = {each.interface: each for each in self.rdma if each.interface}
        none = Moved("", 0, 0)
        return tuple(
            Moved(each.name, each.sent + rdma.sent, each.received + rdma.received)
            for each in self.interfaces
            if each.name in self.claimed
            for rdma in [by_rdma.get(each.name, none)]
        )

    @property
    def over_nics(self) -> int:
        """Bytes over claimed NICs."""
        return sum(each.total for each in self.nics)


@dataclass(frozen=True)
class Point:
    """One size of the sweep.

    Attributes:
        size: bytes of each process's tensor.
        seconds: of one all-reduce, by the slowest process.
        algorithm: algorithm bandwidth in GB/s (10**9 bytes).
        bus: bus bandwidth in GB/s.
        iterations: how many were timed.
        operations: all-reduces of that size, those for checking and warming up among them.
        wrong: ranks where an element was wrong.
    """

    size: int
    seconds: float
    algorithm: float
    bus: float
    iterations: int
    operations: int
    wrong: tuple[int, ...]


@dataclass(frozen=True)
class Rank:
    """One process of the collective.

    Attributes:
        rank: its number.
        pod: its pod.
        device: its GPU's product name, "" without.
        torch: torch's version, "" without.
        cuda: CUDA that torch was built for, "" for none.
        driver: version of NVIDIA's kernel driver, "" without.
        nccl_built: NCCL that torch was built with, "" for none.
        nccl_loaded: NCCL that is loaded, "" for none.
        nccl_file: its file, "" where it is part of torch or not loaded.
        log: NCCL's own log.
        lockable: bytes of memory that it may lock, -1 without a limit; None where it did not say.
    """

    rank: int
    pod: str
    device: str
    torch: str
    cuda: str
    driver: str
    nccl_built: str
    nccl_loaded: str
    nccl_file: str
    log: str
    lockable: int | None = None


@dataclass(frozen=True)
class Problem:
    """Why the program did not do all.

    Attributes:
        stage: what it was at.
        kind: `busy`, `missing`, `no-torch`, `died`, `timeout` or `error`.
        text: for people.
    """

    stage: str
    kind: str
    text: str


@dataclass(frozen=True)
class Evidence:
    """All that one run of the program found.

    Attributes:
        backend: `nccl` or `gloo`; "" before it was known.
        world: processes; 0 before they were placed.
        ray: Ray's version.
        ranks: the processes.
        seed_want: what every element of the first sum should be; None where there was no sum.
        seed_got: what each process got.
        sweep: sizes in the order in which they were measured.
        stopped: where the sweep ended early, "" where it did not.
        traffic: by pod.
        problem: why not all was done.
    """

    backend: str
    world: int
    ray: str
    ranks: tuple[Rank, ...]
    seed_want: float | None
    seed_got: tuple[tuple[float, ...], ...]
    sweep: tuple[Point, ...]
    stopped: str
    traffic: tuple[Traffic, ...]
    problem: Problem | None

    @property
    def best(self) -> Point | None:
        """The size with the highest bus bandwidth."""
        return max(self.sweep, key=lambda point: point.bus, default=None)


def from_log(log: str) -> Evidence:
    """The evidence in a driver's log.

    Raises:
        NoEvidenceError: there is none, or a piece is missing.
    """
    return evidence_of(raw_from_log(log))


def raw_from_log(log: str) -> dict[str, Any]:
    """The evidence in a driver's log, as it was sent.

    Raises:
        NoEvidenceError: there is none, or a piece is missing.
    """
    found: dict[int, str] = {}
    count = 0
    for line in log.splitlines():
        _, marker, rest = line.partition(MARKER + " ")
        words = rest.split()
        if marker and len(words) == 3 and words[0].isdigit() and words[1].isdigit():  # noqa: PLR2004 - number, count, piece
            found[int(words[0])] = words[2]
            count = int(words[1])
    if not found:
        raise NoEvidenceError("the program printed no evidence")
    if missing := [number for number in range(1, count + 1) if number not in found]:
        raise NoEvidenceError(f"{len(missing)} of {count} pieces of the evidence are missing in the log")
    try:
        text = zlib.decompress(
            base64.b64decode("".join(found[number] for number in range(1, count + 1)), validate=True)
        )
        return dict(json.loads(text))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise NoEvidenceError(f"the evidence in the log is damaged: {error}") from None


def progress_in(log: str) -> str:
    """The last line that the program said for people; "" before it said any."""
    said = [line for line in log.splitlines() if line.strip() and MARKER not in line]
    return said[-1].strip() if said else ""


def evidence_of(raw: dict[str, Any]) -> Evidence:
    """Typed, from what was sent."""
    logs = {each["rank"]: each for each in raw["logs"]}
    ranks = tuple(_rank(each, logs.get(each["rank"], {})) for each in raw["ranks"])
    about = {each["pod"]: each for each in raw["ranks"]}
    seed = raw["seed"] or {"want": None, "got": []}
    return Evidence(
        backend=raw["backend"],
        world=raw["world"],
        ray=raw["ray"],
        ranks=ranks,
        seed_want=seed["want"],
        seed_got=tuple(tuple(each) for each in seed["got"]),
        sweep=tuple(_point(each, raw["operations"]) for each in raw["sweep"]),
        stopped=raw["stopped"],
        traffic=tuple(
            Traffic(
                pod=pod,
                main=about[pod]["main"],
                claimed=tuple(about[pod]["interfaces"]),
                interfaces=_moved(moved["interfaces"]),
                rdma=_moved(moved["rdma"]),
            )
            for pod, moved in raw["traffic"].items()
        ),
        problem=Problem(**raw["problem"]) if raw["problem"] else None,
    )


def _rank(about: dict[str, Any], log: dict[str, Any]) -> Rank:
    texts = {key: str(about.get(key) or "") for key in ("pod", "device", "torch", "cuda", "driver")}
    nccl = {key: str(log.get(key) or "") for key in ("nccl_built", "nccl_loaded", "nccl_file", "log")}
    return Rank(rank=about["rank"], **texts, **nccl, lockable=about.get("lockable"))


def _point(raw: dict[str, Any], operations: dict[str, int]) -> Point:
    return Point(
        size=raw["bytes"],
        seconds=raw["seconds"],
        algorithm=raw["algorithm"],
        bus=raw["bus"],
        iterations=raw["iterations"],
        operations=operations[str(raw["bytes"])],
        wrong=tuple(raw["wrong"]),
    )


def _moved(raw: dict[str, dict[str, Any]]) -> tuple[Moved, ...]:
    return tuple(
        Moved(name, each["sent"], each["received"], str(each.get("interface") or "")) for name, each in raw.items()
    )
