"""Evidence that the program in the cluster printed, as typed values. Pure."""

import base64
import binascii
import json
import re
import zlib
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from berth.components.programs.all_reduce import MARKER

_PIECE = re.compile(rf"{MARKER} (?P<number>\d+) (?P<count>\d+) (?P<piece>\S+)\s*$")
"""Line of a driver's log with a piece of the evidence, whatever Ray writes before it."""


class NoEvidenceError(Exception):
    """Error: the log has no evidence, or not all of it."""


class _EvidencePart(BaseModel):
    """Part of the evidence; keys that only people read are left out."""

    model_config = ConfigDict(frozen=True)


class Moved(_EvidencePart):
    """Bytes that an interface moved, or an RDMA device with its network interface."""

    sent: int
    received: int
    interface: str = ""

    @property
    def total(self) -> int:
        """Bytes in both directions."""
        return self.sent + self.received


_NOTHING = Moved(sent=0, received=0)


class Traffic(_EvidencePart):
    """Traffic of one pod while tensors were summed."""

    pod: str
    main: str
    """Name of the interface on the pods' network."""
    claimed: tuple[str, ...]
    """Names of the interfaces that a claim brought."""
    interfaces: dict[str, Moved]
    rdma: dict[str, Moved]
    """Traffic by RDMA device; no interface counts it."""

    @property
    def over_main(self) -> int:
        """Bytes over the pods' network."""
        return self.interfaces.get(self.main, _NOTHING).total

    @property
    def nics(self) -> dict[str, Moved]:
        """Traffic of each claimed NIC, with its RDMA device's; other pods' devices do not count."""
        by_interface = {moved.interface: moved for moved in self.rdma.values() if moved.interface}
        nics: dict[str, Moved] = {}
        for name, moved in self.interfaces.items():
            if name in self.claimed:
                rdma = by_interface.get(name, _NOTHING)
                nics[name] = Moved(
                    sent=moved.sent + rdma.sent, received=moved.received + rdma.received
                )
        return nics

    @property
    def over_nics(self) -> int:
        """Bytes over claimed NICs."""
        return sum(moved.total for moved in self.nics.values())


class Point(_EvidencePart):
    """Measurement of one size of the sweep."""

    size: int = Field(alias="bytes")
    """Bytes of each process's tensor."""
    seconds: float
    """Time of one all-reduce, by the slowest process."""
    algorithm: float
    """Algorithm bandwidth in GB/s (10**9 bytes)."""
    bus: float
    """Bus bandwidth in GB/s."""
    iterations: int
    operations: int
    """All-reduces in all; `iterations` counts only the timed ones."""
    wrong: tuple[int, ...]
    """Ranks with a wrong element."""


class Rank(_EvidencePart):
    """Process of the collective; a text is "" where the process has no such thing."""

    pod: str
    device: str = ""
    """Product name of the GPU."""
    torch: str | None
    """Version of torch; None where it cannot be imported."""
    cuda: str = ""
    """Version of CUDA that torch was built for."""
    driver: str
    nccl_built: str = ""
    nccl_loaded: str = ""
    nccl_file: str = ""
    """File of the loaded NCCL; "" where it is part of torch."""
    log: str = ""
    lockable: int | None = None
    """Bytes that the process may lock, -1 without a limit; None if not reported."""
    environment: dict[str, str] = {}
    """NCCL's variables as a job in the pod has them."""
    script: dict[str, str] | None = None
    """NCCL's variables as the script of the node's gIB sets them; None without gIB."""

    @property
    def overridden(self) -> dict[str, tuple[str, str]]:
        """Values in the pod and of the script, where a variable of the script has another one."""
        overridden: dict[str, tuple[str, str]] = {}
        for name, value in (self.script or {}).items():
            own = self.environment.get(name, value)
            if own != value:
                overridden[name] = (own, value)
        return overridden


class Seed(_EvidencePart):
    """First sum: the expected value of each element, and the elements of each process."""

    want: float
    got: tuple[tuple[float, ...], ...]


class RayCollective(_EvidencePart):
    """Sum by Ray's own collective library: elements of each GPU of each worker, or the error."""

    want: float
    got: tuple[tuple[tuple[float, ...], ...], ...]
    problem: str


class ProgramProblem(_EvidencePart):
    """Reason why the program did not finish; causes.py names the kinds."""

    stage: str
    kind: str
    text: str


class FabricEvidence(_EvidencePart):
    """Evidence of one run of the program."""

    backend: str
    """`nccl` or `gloo`; "" before it was known."""
    world: int
    """Number of processes; 0 before they were placed."""
    ray: str
    ranks: tuple[Rank, ...]
    seed: Seed | None
    sweep: tuple[Point, ...]
    stopped: str
    """Where the sweep ended early; "" where it did not."""
    traffic: tuple[Traffic, ...]
    ray_collective: RayCollective | None = None
    problem: ProgramProblem | None

    @model_validator(mode="before")
    @classmethod
    def _joined(cls, raw: dict[str, Any]) -> dict[str, Any]:
        """Join what the program sends apart: logs of ranks, interfaces of pods, operations."""
        logs = {log["rank"]: log for log in raw["logs"]}
        pods = {rank["pod"]: rank for rank in raw["ranks"]}
        ranks = [rank | logs.get(rank["rank"], {}) for rank in raw["ranks"]]
        sweep = []
        for point in raw["sweep"]:
            operations = raw["operations"][str(point["bytes"])]
            sweep.append(point | {"operations": operations})
        traffic = []
        for pod, moved in raw["traffic"].items():
            main = pods[pod]["main"]
            claimed = pods[pod]["interfaces"]
            traffic.append({"pod": pod, "main": main, "claimed": claimed, **moved})
        return raw | {"ranks": ranks, "sweep": sweep, "traffic": traffic}

    @property
    def by_nccl(self) -> bool:
        """Whether NCCL summed, on GPUs."""
        return self.backend == "nccl"

    @property
    def pods(self) -> set[str]:
        """Names of the pods with processes."""
        return {rank.pod for rank in self.ranks}

    @property
    def best(self) -> Point | None:
        """The size with the highest bus bandwidth."""
        return max(self.sweep, key=lambda point: point.bus, default=None)


def raw_from_log(log: str) -> dict[str, Any]:
    """Return the evidence in a driver's log, as the program sent it.

    Raises:
        NoEvidenceError: there is none, or a piece is missing.
    """
    pieces: dict[int, str] = {}
    count = 0
    for line in log.splitlines():
        if match := _PIECE.search(line):
            pieces[int(match["number"])] = match["piece"]
            count = int(match["count"])
    if not pieces:
        raise NoEvidenceError("the program printed no evidence")
    missing = set(range(1, count + 1)) - pieces.keys()
    if missing:
        raise NoEvidenceError(
            f"{len(missing)} of {count} pieces of the evidence are missing in the log"
        )
    try:
        packed = "".join(pieces[number] for number in range(1, count + 1))
        return dict(json.loads(zlib.decompress(base64.b64decode(packed, validate=True))))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise NoEvidenceError(f"the evidence in the log is damaged: {error}") from None


def progress_in(log: str) -> str:
    """Return the program's last line for people; "" before the first."""
    lines = [line for line in log.splitlines() if line.strip() and MARKER not in line]
    return lines[-1].strip() if lines else ""
