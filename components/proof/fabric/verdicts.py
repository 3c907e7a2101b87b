"""What an all-reduce showed, judged against what a RayCluster should be able to do: pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from berth.components.fabric import HOST_LIBRARIES
from berth.components.hardware.facts import Machine
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.evidence import Evidence, Traffic
from berth.components.proof.fabric.nccl_log import GIB, ProcessLog, Transport, parse, transport_of
from berth.components.proof.gpu_evidence import SIMULATED, Check

AFTER_PROGRAM = (
    "all-reduce",
    "locked memory",
    "sums",
    "transport",
    "NICs used",
    "traffic",
    "algorithm",
    "bandwidth",
    "NCCL versions",
)
"""The checks that need the program to run, in order."""

NO_MEMORY = "Cannot allocate memory"
"""Text of the error ENOMEM, which registering more memory than a process may lock ends with; NCCL's log and torch quote it."""

SHARE_OF_LINE_RATE = 0.7
"""Bus bandwidth that a worker's NICs must reach, as a share of their line rates' sum, where settings say nothing.

DraNet's own measurements of an all-reduce between two nodes have 92 and 96 % where NICs are beside their GPUs and GPUDirect RDMA works,
and 50 % where it doesn't; half the NICs give 50 % at best (https://github.com/kubernetes-sigs/dranet,
examples/oci_oke_examples/BM.GPU.GB200-v3.4/README.md, Benchmark Results). This lies between, with room for tensors of 1 GiB, which do
not reach the highest bandwidth yet.
"""

LARGE_ENOUGH = 2**28
"""Bytes of a tensor from which on NICs can be expected to be busy throughout."""

# Of the traffic of a pod: what coordinates the processes goes over the pods' own network, whatever tensors do.
_SHARE_OVER_NICS = 0.9
# Tensors cross the border of a pod at least this often; counters are read a moment before and after.
_SHARE_OF_EXPECTED = 0.5
# A NIC counts as used from this share of an even one on.
_SHARE_OF_EVEN = 0.1


@dataclass(frozen=True)
class Threshold:
    """What bandwidth is held against.

    Attributes:
        bus: bus bandwidth in GB/s; None where nothing is expected.
        source: where the figure is from, or why there is none.
        always: it holds for tensors of any size.
    """

    bus: float | None
    source: str
    always: bool = False


@dataclass(frozen=True)
class Findings:
    """All that the program showed.

    Attributes:
        checks: in the order of `AFTER_PROGRAM`.
        transport: how the pods talked, where NCCL says.
        logs: NCCL's logs, read.
    """

    checks: list[Check]
    transport: Transport | None = None
    logs: tuple[ProcessLog, ...] = ()


def threshold_of(machine: Machine, nics: int, given: float | None) -> Threshold:
    """The bandwidth that is expected.

    Args:
        machine: the workers' machine type.
        nics: NICs of each worker.
        given: what settings say, in GB/s.
    """
    if given is not None:
        return Threshold(given, "nccl.minBusBandwidth", always=True)
    gbps = machine.series.gpu_nic_gbps
    if not nics or not gbps:
        return Threshold(None, "nothing is expected without RDMA NICs; nccl.minBusBandwidth sets a threshold")
    bus = nics * gbps / 8 * SHARE_OF_LINE_RATE
    return Threshold(bus, f"{SHARE_OF_LINE_RATE:.0%} of {nics} × {gbps} Gbit/s ({machine.name})")


def not_run(reason: str, *, simulated: bool = False) -> list[Check]:
    """The checks of a program that was not run.

    Args:
        reason: why not.
        simulated: its nodes run no containers, and all that can be proven on such is.
    """
    first = Check(AFTER_PROGRAM[0], "simulated", SIMULATED) if simulated else Check(AFTER_PROGRAM[0], "skipped", reason)
    return [first, *_skipped(AFTER_PROGRAM[1:], "the all-reduce was not run")]


def failed(reason: str) -> list[Check]:
    """The checks of a program that left no evidence."""
    return [Check(AFTER_PROGRAM[0], "fail", reason), *_skipped(AFTER_PROGRAM[1:], "the all-reduce left no evidence")]


def judge(evidence: Evidence, expected: Expected, threshold: Threshold) -> Findings:
    """All that the program's evidence shows.

    Args:
        evidence: what the program found.
        expected: what the RayCluster should have.
        threshold: the bandwidth that is expected.
    """
    logs: dict[str, list[ProcessLog]] = {}
    for rank in evidence.ranks:
        logs.setdefault(rank.pod, []).append(parse(rank.log))
    every = tuple(log for each in logs.values() for log in each)
    nccl = evidence.backend == "nccl"
    transport = transport_of(logs) if nccl else None
    checks = [
        _ran(evidence),
        _locked_memory(evidence, expected),
        _sums(evidence),
        _by_nccl(transport, every) if transport else _by_gloo(evidence, expected),
        _nics(evidence, expected, transport),
        _traffic(evidence),
        _algorithm(every) if nccl else Check("algorithm", "skipped", "gloo does not say"),
        _bandwidth(evidence, threshold),
        _versions(evidence, every) if nccl else Check("NCCL versions", "skipped", "NCCL is not used without GPUs"),
    ]
    return Findings(checks, transport, every)


def _ran(evidence: Evidence) -> Check:
    if evidence.problem:
        return Check("all-reduce", "fail", evidence.problem.text)
    pods = len({rank.pod for rank in evidence.ranks})
    device = next((rank.device for rank in evidence.ranks if rank.device), "") or "CPUs: torch sees no GPU"
    sizes = f", tensors up to {readable(evidence.sweep[-1].size)}" if evidence.sweep else ""
    stopped = f"; the sweep ended {evidence.stopped}" if evidence.stopped else ""
    text = f"{evidence.world} processes in {pods} pods, {evidence.backend} on {device}{sizes}{stopped}"
    return Check("all-reduce", "pass" if evidence.sweep else "fail", text)


def _locked_memory(evidence: Evidence, expected: Expected) -> Check:
    """Whether RDMA may register as much memory as it needs: a limit alone is no failure, since nobody says how much that is."""
    name = "locked memory"
    if not expected.nics:
        return Check(name, "skipped", "no NICs are claimed")
    told = [rank for rank in evidence.ranks if rank.lockable is not None]
    if not told:
        return Check(name, "skipped", "the processes did not say how much memory they may lock")
    limited = [rank for rank in told if rank.lockable != -1]
    if not limited:
        return Check(name, "pass", "no limit in any process")
    least = min(limited, key=lambda rank: rank.lockable or 0)
    text = f"a process in pod {least.pod} may lock {readable(least.lockable or 0)}"
    if NO_MEMORY in (evidence.problem.text if evidence.problem else "") or any(NO_MEMORY in rank.log for rank in told):
        return Check(name, "fail", f"{text}, and an allocation failed ({NO_MEMORY}): RDMA registers no more than that")
    if evidence.problem:
        return Check(name, "skipped", f"{text}; whether that suffices was not seen")
    return Check(name, "pass", f"{text}; no allocation failed")


def _sums(evidence: Evidence) -> Check:
    if evidence.seed_want is None:
        return Check("sums", "skipped", "nothing was summed")
    wrong = [
        number for number, got in enumerate(evidence.seed_got) if any(value != evidence.seed_want for value in got)
    ]
    if wrong:
        got = evidence.seed_got[wrong[0]]
        return Check("sums", "fail", f"rank {wrong[0]} has {list(got)}; every element should be {evidence.seed_want}")
    for point in evidence.sweep:
        if point.wrong:
            ranks = ", ".join(map(str, point.wrong))
            return Check("sums", "fail", f"elements of {readable(point.size)} are wrong in ranks {ranks}")
    sizes = f"; so is every element of {len(evidence.sweep)} larger tensors" if evidence.sweep else ""
    return Check("sums", "pass", f"every element is {evidence.seed_want}, as computed{sizes}")


def _by_nccl(transport: Transport, logs: Sequence[ProcessLog]) -> Check:
    name = "transport"
    gib = next((log.gib for log in logs if log.gib), "")
    counted = ", ".join(f"{count} × NET/{network}" for network, count in sorted(transport.networks.items()))
    missing = next((text for log in logs for text in log.no_plugin), "")
    match transport.way:
        case "fabric":
            return Check(name, "pass", f"{GIB}{f' {gib}' if gib else ''} with GPUDirect RDMA: {counted}")
        case "staged":
            return Check(name, "fail", f"{GIB} without GPUDirect RDMA, through the nodes' memory: {counted}")
        case "tcp":
            return Check(
                name, "fail", f"TCP instead of the fabric: {counted or 'NET/Socket'}{f'; {missing}' if missing else ''}"
            )
        case "other plugin":
            return Check(
                name, "fail", f"not {GIB}, but another network plugin: {counted}{f'; {missing}' if missing else ''}"
            )
        case "none":
            return Check(name, "skipped", "there is one worker: nothing goes over the fabric")
        case _:
            return Check(
                name,
                "fail",
                f"unknown: NCCL's log ends too early, or says nothing of connections{f'; {missing}' if missing else ''}",
            )


def _by_gloo(evidence: Evidence, expected: Expected) -> Check:
    name = "transport"
    if not evidence.traffic:
        return Check(name, "skipped", "no traffic was counted")
    if len(evidence.traffic) == 1:
        return Check(name, "skipped", "there is one worker: nothing goes over the fabric")
    if without := [each.pod for each in evidence.traffic if not each.nics]:
        bare = f"pod {without[0]} has no interface but {evidence.traffic[0].main}"
        claims = "" if expected.nics else ", since it claims none"
        return Check(name, "fail", f"not using the fabric: {bare}{claims}")
    worst = min(evidence.traffic, key=_share)
    text = f"gloo, no GPUs: {_percent(_share(worst))} of the traffic of pod {worst.pod} went over claimed NICs, the rest over {worst.main}"
    return Check(name, "pass" if _share(worst) >= _SHARE_OVER_NICS else "fail", text)


def _percent(share: float) -> str:
    """Rounded down: 100 % is said of all only."""
    return f"{math.floor(share * 1000) / 10}%"


def _share(traffic: Traffic) -> float:
    total = traffic.over_nics + traffic.over_main
    return traffic.over_nics / total if total else 0.0


def _nics(evidence: Evidence, expected: Expected, transport: Transport | None) -> Check:
    name = "NICs used"
    if not expected.nics:
        return Check(name, "skipped", "no NICs are claimed")
    if len({rank.pod for rank in evidence.ranks}) < 2:  # noqa: PLR2004 - a way needs two ends
        return Check(name, "skipped", "there is one worker: nothing goes over the fabric")
    if transport is not None:
        if transport.way in ("tcp", "unknown"):
            return Check(name, "skipped", "NCCL's log names none")
        used = transport.nics
    else:
        used = {each.pod: _busy(each) for each in evidence.traffic}
    if not used:
        return Check(name, "skipped", "no traffic was counted")
    few = {pod: nics for pod, nics in used.items() if len(nics) < expected.nics}
    if few:
        pod, nics = min(few.items(), key=lambda item: len(item[1]))
        named = f" ({', '.join(nics)})" if nics else ""
        return Check(name, "fail", f"{len(nics)} of {expected.nics} in pod {pod}{named}")
    first = next(iter(used.values()))
    return Check(name, "pass", f"all {expected.nics} in each pod: {', '.join(first)}")


def _busy(traffic: Traffic) -> tuple[str, ...]:
    """The NICs that carried something worth the name."""
    nics = traffic.nics
    even = traffic.over_nics / len(nics) if nics else 0
    return tuple(each.name for each in nics if each.total and each.total >= even * _SHARE_OF_EVEN)


def _traffic(evidence: Evidence) -> Check:
    name = "traffic"
    pods = len(evidence.traffic)
    if not pods:
        return Check(name, "skipped", "no traffic was counted")
    if pods == 1:
        return Check(name, "skipped", "there is one worker: nothing goes over the fabric")
    if evidence.backend == "nccl" and not any(each.rdma for each in evidence.traffic):
        return Check(name, "skipped", "these pods cannot read the counters of RDMA devices")
    least = least_traffic(evidence)
    worst = min(evidence.traffic, key=lambda each: each.over_nics)
    moved = f"{readable(worst.over_nics)} over claimed NICs of pod {worst.pod}, {readable(worst.over_main)} over {worst.main}"
    text = f"{moved}; tensors alone are {readable(least)} at least"
    return Check(name, "pass" if worst.over_nics >= least * _SHARE_OF_EXPECTED else "fail", text)


def least_traffic(evidence: Evidence) -> int:
    """Bytes that each pod must send and receive, however the all-reduce is done.

    Each pod holds a part of the sum, and has to end with all of it: with m pods 2(m − 1)/m of each tensor leave a pod on average, and
    as many come in, as for single processes in nccl-tests' doc/PERFORMANCE.md.
    """
    pods = len(evidence.traffic)
    summed = sum(point.size * point.operations for point in evidence.sweep)
    return int(2 * summed * 2 * (pods - 1) / pods)


def _algorithm(logs: Sequence[ProcessLog]) -> Check:
    choices = {size: choice for log in logs for size, choice in log.choices.items()}
    if not choices:
        return Check("algorithm", "skipped", "NCCL's log does not say")
    changes: list[str] = []
    last = None
    for size in sorted(choices):
        if choices[size] != last:
            changes.append(f"{choices[size][0]}/{choices[size][1]} from {readable(size)}")
        last = choices[size]
    return Check("algorithm", "pass", ", ".join(changes))


def _bandwidth(evidence: Evidence, threshold: Threshold) -> Check:
    name = "bandwidth"
    best = evidence.best
    if best is None:
        return Check(name, "skipped", "nothing was measured")
    found = f"{best.bus:.3g} GB/s bus bandwidth at {readable(best.size)}"
    if len({rank.pod for rank in evidence.ranks}) == 1 and not threshold.always:
        return Check(name, "skipped", f"{found}, within one pod")
    if threshold.bus is None:
        return Check(name, "skipped", f"{found}; {threshold.source}")
    if evidence.backend != "nccl" and not threshold.always:
        return Check(name, "skipped", f"{found}, by CPUs; nccl.minBusBandwidth sets a threshold for them")
    expected = f"at least {threshold.bus:.3g} expected: {threshold.source}"
    if best.bus >= threshold.bus:
        return Check(name, "pass", f"{found}; {expected}")
    largest = evidence.sweep[-1].size
    if largest < LARGE_ENOUGH and not threshold.always:
        return Check(
            name,
            "skipped",
            f"{found}; too small for NICs to be busy, take --max-size {readable(LARGE_ENOUGH, unit='Mi')}",
        )
    return Check(name, "fail", f"{found}; {expected}")


def _versions(evidence: Evidence, logs: Sequence[ProcessLog]) -> Check:
    name = "NCCL versions"
    if told := next((text for log in logs for text in log.mismatches), ""):
        return Check(name, "fail", told)
    loaded = sorted(
        {rank.nccl_loaded or version_in(log.version) for rank, log in zip(evidence.ranks, logs, strict=True)} - {""}
    )
    built = next((rank.nccl_built for rank in evidence.ranks if rank.nccl_built), "")
    file = next((rank.nccl_file for rank in evidence.ranks if rank.nccl_file), "")
    if not loaded:
        return Check(name, "skipped", "neither NCCL's log nor torch says which is loaded")
    if len(loaded) > 1:
        return Check(name, "fail", f"processes have loaded different ones: {', '.join(loaded)}")
    owner = "the node's" if file.startswith(HOST_LIBRARIES) else "the image's"
    text = f"{loaded[0]}, {owner}{f' ({file})' if file else ''}; torch was built with {built or 'an unknown one'}"
    if built and number(loaded[0]) < number(built):
        return Check(name, "fail", f"{text}: an older one stands before the one that torch needs")
    if owner == "the node's":
        text += "; an older installer of gIB left it on the node, where it shadows the image's (docs/fabric.md)"
    return Check(name, "pass", text)


def version_in(text: str) -> str:
    """The version without what it was built for: `2.28.3+cuda12.8` is 2.28.3."""
    return text.partition("+")[0]


def number(version: str) -> tuple[int, ...]:
    """A version to compare by: 2.28.3."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def readable(count: int, unit: str = "") -> str:
    """Bytes for people: 1024 are 1Ki.

    Args:
        count: how many.
        unit: the unit to write them in. Default: the largest that fits.
    """
    units = ["", "Ki", "Mi", "Gi", "Ti"]
    value, index = float(count), 0
    while (units[index] != unit if unit else value >= 1024) and index < len(units) - 1:  # noqa: PLR2004 - a kibibyte
        value, index = value / 1024, index + 1
    return f"{value:.4g}{units[index]}B" if not unit else f"{value:.4g}{units[index]}"


def _skipped(names: Sequence[str], reason: str) -> list[Check]:
    return [Check(name, "skipped", reason) for name in names]
