"""Evidence that the program in the cluster printed, as typed values. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from dataclasses import dataclass
from typing import Any

from berth.components.programs.all_reduce import MARKER


class NoEvidenceError(Exception):
    """Error: the log has no evidence, or not all of it."""


@dataclass(frozen=True)
class Moved:
    """Bytes that an interface moved, or an RDMA device with its network interface."""

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
    """Traffic of one pod while tensors were summed.

    Attributes:
        main: name of the interface on the pods' network.
        claimed: names of the interfaces that a claim brought.
        rdma: RDMA devices; no interface counts their traffic.
    """

    pod: str
    main: str
    claimed: tuple[str, ...]
    interfaces: tuple[Moved, ...]
    rdma: tuple[Moved, ...]

    @property
    def over_main(self) -> int:
        """Bytes over the pods' network."""
        return sum(moved.total for moved in self.interfaces if moved.name == self.main)

    @property
    def nics(self) -> tuple[Moved, ...]:
        """Traffic of each claimed NIC, with its RDMA device's; other pods' devices do not count."""
        by_rdma = {moved.interface: moved for moved in self.rdma if moved.interface}
        none = Moved("", 0, 0)
        return tuple(
            Moved(moved.name, moved.sent + rdma.sent, moved.received + rdma.received)
            for moved in self.interfaces
            if moved.name in self.claimed
            for rdma in [by_rdma.get(moved.name, none)]
        )

    @property
    def over_nics(self) -> int:
        """Bytes over claimed NICs."""
        return sum(moved.total for moved in self.nics)


@dataclass(frozen=True)
class Point:
    """Measurement of one size of the sweep.

    Attributes:
        size: bytes of each process's tensor.
        seconds: time of one all-reduce, by the slowest process.
        algorithm: algorithm bandwidth in GB/s (10**9 bytes).
        bus: bus bandwidth in GB/s.
        operations: all-reduces in all; `iterations` counts only the timed ones.
        wrong: ranks with a wrong element.
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
    """Process of the collective; a text is "" where the process has no such thing.

    Attributes:
        device: product name of the GPU.
        cuda: version of CUDA that torch was built for.
        nccl_file: file of the loaded NCCL; "" where it is part of torch.
        log: NCCL's log.
        lockable: bytes that the process may lock, -1 without a limit; None if not reported.
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
    """Reason why the program did not finish; causes.yaml has the kinds."""

    stage: str
    kind: str
    text: str


@dataclass(frozen=True)
class Evidence:
    """Evidence of one run of the program.

    Attributes:
        backend: `nccl` or `gloo`; "" before it was known.
        world: number of processes; 0 before they were placed.
        seed_want: expected elements of the first sum; None without a sum.
        seed_got: elements of each process.
        stopped: where the sweep ended early; "" where it did not.
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


def raw_from_log(log: str) -> dict[str, Any]:
    """Return the evidence in a driver's log, as the program sent it.

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
        pieces = "".join(found[number] for number in range(1, count + 1))
        return dict(json.loads(zlib.decompress(base64.b64decode(pieces, validate=True))))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise NoEvidenceError(f"the evidence in the log is damaged: {error}") from None


def progress_in(log: str) -> str:
    """Return the program's last line for people; "" before the first."""
    lines = [line for line in log.splitlines() if line.strip() and MARKER not in line]
    return lines[-1].strip() if lines else ""


def evidence_of(raw: dict[str, Any]) -> Evidence:
    """Return the typed evidence of what the program sent."""
    logs = {log["rank"]: log for log in raw["logs"]}
    pods = {rank["pod"]: rank for rank in raw["ranks"]}
    seed = raw["seed"] or {"want": None, "got": []}
    return Evidence(
        backend=raw["backend"],
        world=raw["world"],
        ray=raw["ray"],
        ranks=tuple(_rank(rank, logs.get(rank["rank"], {})) for rank in raw["ranks"]),
        seed_want=seed["want"],
        seed_got=tuple(tuple(values) for values in seed["got"]),
        sweep=tuple(_point(point, raw["operations"]) for point in raw["sweep"]),
        stopped=raw["stopped"],
        traffic=tuple(
            Traffic(
                pod=pod,
                main=pods[pod]["main"],
                claimed=tuple(pods[pod]["interfaces"]),
                interfaces=tuple(Moved(name, **counts) for name, counts in moved["interfaces"].items()),
                rdma=tuple(Moved(name, **counts) for name, counts in moved["rdma"].items()),
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
    values = {key: raw[key] for key in ("seconds", "algorithm", "bus", "iterations")}
    return Point(size=raw["bytes"], operations=operations[str(raw["bytes"])], wrong=tuple(raw["wrong"]), **values)
