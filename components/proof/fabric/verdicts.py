"""Verdicts on the evidence of an all-reduce. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.words import counted
from berth.components.fabric import NODE_MOUNTS, SCRIPT
from berth.components.hardware.machines import Machine
from berth.components.proof.checks import Check, Verdict
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.evidence import Evidence, Traffic
from berth.components.proof.fabric.nccl_log import GIB, ProcessLog, Transport, parse, transport_of

_WORDS: dict[str, Any] = fast_yaml.load_beside(__file__)

AFTER_PROGRAM: tuple[str, ...] = tuple(_WORDS["after_program"])
"""Checks that need the program to run, in order."""

NO_MEMORY = "Cannot allocate memory"
"""Text of ENOMEM in NCCL's log and torch's: RDMA registers more than the process may lock."""

SHARE_OF_LINE_RATE = 0.7
"""Default threshold of the bus bandwidth, as a share of the NICs' line rates.

DraNet's own measurements of an all-reduce between two nodes have 92 and 96 % where NICs are beside
their GPUs and GPUDirect RDMA works, and 50 % where it doesn't; half the NICs give 50 % at best
(https://github.com/kubernetes-sigs/dranet, examples/oci_oke_examples/BM.GPU.GB200-v3.4/README.md,
Benchmark Results). The threshold lies between, with room for tensors of 1 GiB, which do not reach
the highest bandwidth yet.
"""

LARGE_ENOUGH = 2**28
"""Bytes of a tensor that keeps NICs busy throughout."""

_Judged = tuple[Verdict, str]
"""Verdict and evidence of a check."""

_ONE_WORKER: str = _WORDS["one_worker"]

# Share of a pod's traffic: the processes coordinate over the pods' network, whatever way tensors
# take.
_SHARE_OVER_NICS = 0.9
# Share of the least traffic of tensors; counters are read a moment before and after.
_SHARE_OF_EXPECTED = 0.5
# Share of an even distribution from which a NIC counts as used.
_SHARE_OF_EVEN = 0.1


@dataclass(frozen=True)
class Threshold:
    """Expected bus bandwidth in GB/s, its source, and whether it holds for tensors of any size."""

    bus: float | None
    source: str
    always: bool = False


@dataclass(frozen=True)
class Findings:
    """Verdicts on the evidence, in the order of `AFTER_PROGRAM`, and NCCL's parsed logs."""

    checks: list[Check]
    transport: Transport | None = None
    logs: tuple[ProcessLog, ...] = ()


def threshold_of(machine: Machine, nics: int, given: float | None) -> Threshold:
    """Return the expected bandwidth; `given` is the threshold of the settings, in GB/s."""
    if given is not None:
        return Threshold(given, "nccl.minBusBandwidth", always=True)
    gbps = machine.series.gpu_nic_gbps
    if not nics or not gbps:
        return Threshold(
            None, "nothing is expected without RDMA NICs; nccl.minBusBandwidth sets a threshold"
        )
    bus = nics * gbps / 8 * SHARE_OF_LINE_RATE
    return Threshold(bus, f"{SHARE_OF_LINE_RATE:.0%} of {nics} × {gbps} Gbit/s ({machine.name})")


def without_evidence(verdict: Verdict, reason: str) -> list[Check]:
    """Return the checks of a program that was not run, or that failed and left no evidence."""
    why = "the all-reduce left no evidence" if verdict == "fail" else "the all-reduce was not run"
    return [
        Check(AFTER_PROGRAM[0], verdict, reason),
        *(Check(name, "skipped", why) for name in AFTER_PROGRAM[1:]),
    ]


def judge(evidence: Evidence, expected: Expected, threshold: Threshold) -> Findings:
    """Judge the program's evidence."""
    logs: dict[str, list[ProcessLog]] = {}
    for rank in evidence.ranks:
        logs.setdefault(rank.pod, []).append(parse(rank.log))
    every = tuple(log for found in logs.values() for log in found)
    nccl = evidence.backend == "nccl"
    transport = transport_of(logs) if nccl else None
    judged: list[_Judged] = [
        _ran(evidence),
        _environment(evidence, expected, every),
        _locked_memory(evidence, expected),
        _sums(evidence),
        _by_nccl(transport, every) if transport else _by_gloo(evidence, expected),
        _nics(evidence, expected, transport),
        _traffic(evidence),
        _algorithm(every) if nccl else ("skipped", "gloo does not say"),
        _bandwidth(evidence, threshold),
        _versions(evidence, every) if nccl else ("skipped", "NCCL is not used without GPUs"),
        _by_ray(evidence),
    ]
    checks = [Check(name, *found) for name, found in zip(AFTER_PROGRAM, judged, strict=True)]
    return Findings(checks, transport, every)


def _ran(evidence: Evidence) -> _Judged:
    if evidence.problem:
        return "fail", evidence.problem.text
    pods = len({rank.pod for rank in evidence.ranks})
    device = (
        next((rank.device for rank in evidence.ranks if rank.device), "")
        or "CPUs: torch sees no GPU"
    )
    sizes = f", tensors up to {readable(evidence.sweep[-1].size)}" if evidence.sweep else ""
    stopped = f"; the sweep ended {evidence.stopped}" if evidence.stopped else ""
    processes = f"{counted(evidence.world, 'process')} in {counted(pods, 'pod')}"
    text = f"{processes}, {evidence.backend} on {device}{sizes}{stopped}"
    return "pass" if evidence.sweep else "fail", text


def _environment(evidence: Evidence, expected: Expected, logs: Sequence[ProcessLog]) -> _Judged:
    """Check NCCL's variables in the pods against the script of their gIB, and gIB's own check."""
    lines = list(dict.fromkeys(line for log in logs for line in log.checker))
    if enforced := [line for line in lines if "enforced" in line.lower()]:
        return "fail", "; ".join(enforced)
    with_script = [rank for rank in evidence.ranks if rank.script is not None]
    if not with_script:
        return "skipped", f"no pod has gIB's {SCRIPT}"
    for rank in with_script:
        missing = [name for name in rank.script or {} if name not in rank.environment]
        if missing and expected.sourced:
            return "fail", f"pod {rank.pod} lacks {', '.join(missing)} of gIB's {SCRIPT}"
    first = max(with_script, key=lambda rank: len(rank.overridden))
    others = ", ".join(
        f"{name}={own} ({theirs})" for name, (own, theirs) in first.overridden.items()
    )
    remarks = [
        f"but in pod {first.pod}, with gIB's own in parentheses: {others}" if others else "",
        *lines,
    ]
    text = "; ".join(filter(None, [f"as gIB's {SCRIPT} sets it", *remarks]))
    return (
        ("skipped", f"{text}; whether gIB takes it was not seen")
        if evidence.problem
        else ("pass", text)
    )


def _locked_memory(evidence: Evidence, expected: Expected) -> _Judged:
    """Check that RDMA may register enough memory; a limit alone is not a failure."""
    if not expected.nics:
        return "skipped", "no NICs are claimed"
    known = [rank for rank in evidence.ranks if rank.lockable is not None]
    if not known:
        return "skipped", "the processes did not say how much memory they may lock"
    limited = [rank for rank in known if rank.lockable != -1]
    if not limited:
        return "pass", "no limit in any process"
    least = min(limited, key=lambda rank: rank.lockable or 0)
    text = f"a process in pod {least.pod} may lock {readable(least.lockable or 0)}"
    if NO_MEMORY in (evidence.problem.text if evidence.problem else "") or any(
        NO_MEMORY in rank.log for rank in known
    ):
        return (
            "fail",
            f"{text}, and an allocation failed ({NO_MEMORY}): RDMA registers no more than that",
        )
    if evidence.problem:
        return "skipped", f"{text}; whether that suffices was not seen"
    return "pass", f"{text}; no allocation failed"


def _sums(evidence: Evidence) -> _Judged:
    if evidence.seed is None:
        return "skipped", "nothing was summed"
    want = evidence.seed.want
    for rank, got in enumerate(evidence.seed.got):
        if set(got) != {want}:
            return "fail", f"rank {rank} has {list(got)}; every element should be {want}"
    for point in evidence.sweep:
        if point.wrong:
            ranks = ", ".join(map(str, point.wrong))
            return "fail", f"elements of {readable(point.size)} are wrong in ranks {ranks}"
    sizes = (
        f"; so is every element of {len(evidence.sweep)} larger tensors" if evidence.sweep else ""
    )
    return "pass", f"every element is {want}, as computed{sizes}"


def _by_nccl(transport: Transport, logs: Sequence[ProcessLog]) -> _Judged:
    gib = next((log.gib for log in logs if log.gib), "")
    counts = ", ".join(
        f"{count} × NET/{network}" for network, count in sorted(transport.networks.items())
    )
    missing = next((f"; {text}" for log in logs for text in log.no_plugin), "")
    verdict, text = _WORDS["ways"][transport.way]
    names = {
        "gib": f"{GIB} {gib}".strip(),
        "counts": counts,
        "sockets": counts or "NET/Socket",
        "missing": missing,
    }
    return verdict, text.format(**names)


def _by_gloo(evidence: Evidence, expected: Expected) -> _Judged:
    if not evidence.traffic:
        return "skipped", "no traffic was counted"
    if len(evidence.traffic) == 1:
        return "skipped", _ONE_WORKER
    if without := [traffic.pod for traffic in evidence.traffic if not traffic.nics]:
        bare = f"pod {without[0]} has no interface but {evidence.traffic[0].main}"
        claims = "" if expected.nics else ", since it claims none"
        return "fail", f"not using the fabric: {bare}{claims}"
    worst = min(evidence.traffic, key=_share)
    # Rounded down, so that only all of it is 100 %.
    share = f"{math.floor(_share(worst) * 1000) / 10}% of the traffic of pod {worst.pod}"
    text = f"gloo, no GPUs: {share} went over claimed NICs, the rest over {worst.main}"
    return "pass" if _share(worst) >= _SHARE_OVER_NICS else "fail", text


def _share(traffic: Traffic) -> float:
    total = traffic.over_nics + traffic.over_main
    return traffic.over_nics / total if total else 0.0


def _nics(evidence: Evidence, expected: Expected, transport: Transport | None) -> _Judged:
    if not expected.nics:
        return "skipped", "no NICs are claimed"
    if len({rank.pod for rank in evidence.ranks}) < 2:  # noqa: PLR2004 - a way needs two ends
        return "skipped", _ONE_WORKER
    if transport is not None:
        if transport.way in ("tcp", "unknown"):
            return "skipped", "NCCL's log names none"
        used = transport.nics
    else:
        used = {traffic.pod: _busy(traffic) for traffic in evidence.traffic}
    if not used:
        return "skipped", "no traffic was counted"
    few = {pod: nics for pod, nics in used.items() if len(nics) < expected.nics}
    if few:
        pod, nics = min(few.items(), key=lambda item: len(item[1]))
        named = f" ({', '.join(nics)})" if nics else ""
        return "fail", f"{len(nics)} of {expected.nics} in pod {pod}{named}"
    first = next(iter(used.values()))
    return "pass", f"all {expected.nics} in each pod: {', '.join(first)}"


def _busy(traffic: Traffic) -> tuple[str, ...]:
    """Return the NICs with a fair part of the traffic."""
    nics = traffic.nics
    even = traffic.over_nics / len(nics) if nics else 0
    return tuple(
        name for name, moved in nics.items() if moved.total and moved.total >= even * _SHARE_OF_EVEN
    )


def _traffic(evidence: Evidence) -> _Judged:
    pods = len(evidence.traffic)
    if not pods:
        return "skipped", "no traffic was counted"
    if pods == 1:
        return "skipped", _ONE_WORKER
    if evidence.backend == "nccl" and not any(traffic.rdma for traffic in evidence.traffic):
        return "skipped", "these pods cannot read the counters of RDMA devices"
    least = least_traffic(evidence)
    worst = min(evidence.traffic, key=lambda traffic: traffic.over_nics)
    over_main = f"{readable(worst.over_main)} over {worst.main}"
    moved = f"{readable(worst.over_nics)} over claimed NICs of pod {worst.pod}, {over_main}"
    text = f"{moved}; tensors alone are {readable(least)} at least"
    return "pass" if worst.over_nics >= least * _SHARE_OF_EXPECTED else "fail", text


def least_traffic(evidence: Evidence) -> int:
    """Return the bytes that each pod must send and receive by any algorithm.

    Each pod holds a part of the sum and ends with all of it: with m pods, 2(m − 1)/m of each tensor
    leave a pod on average, and as many come in, as for single processes in nccl-tests'
    doc/PERFORMANCE.md.
    """
    pods = len(evidence.traffic)
    summed = sum(point.size * point.operations for point in evidence.sweep)
    return int(2 * summed * 2 * (pods - 1) / pods)


def _algorithm(logs: Sequence[ProcessLog]) -> _Judged:
    choices = {size: choice for log in logs for size, choice in log.choices.items()}
    if not choices:
        return "skipped", "NCCL's log does not say"
    groups = groupby(sorted(choices), key=lambda size: "/".join(choices[size]))
    return "pass", ", ".join(f"{choice} from {readable(next(sizes))}" for choice, sizes in groups)


def _bandwidth(evidence: Evidence, threshold: Threshold) -> _Judged:
    best = evidence.best
    if best is None:
        return "skipped", "nothing was measured"
    found = f"{best.bus:.3g} GB/s bus bandwidth at {readable(best.size)}"
    if len({rank.pod for rank in evidence.ranks}) == 1 and not threshold.always:
        return "skipped", f"{found}, within one pod"
    if threshold.bus is None:
        return "skipped", f"{found}; {threshold.source}"
    if evidence.backend != "nccl" and not threshold.always:
        return "skipped", f"{found}, by CPUs; nccl.minBusBandwidth sets a threshold for them"
    expected = f"at least {threshold.bus:.3g} expected: {threshold.source}"
    if best.bus >= threshold.bus:
        return "pass", f"{found}; {expected}"
    largest = evidence.sweep[-1].size
    if largest < LARGE_ENOUGH and not threshold.always:
        return (
            "skipped",
            f"{found}; too small for NICs to be busy, take --max-size {LARGE_ENOUGH // 2**20}Mi",
        )
    return "fail", f"{found}; {expected}"


def _versions(evidence: Evidence, logs: Sequence[ProcessLog]) -> _Judged:
    if mismatch := next((text for log in logs for text in log.mismatches), ""):
        return "fail", mismatch
    # NCCL's log has the build too, such as 2.28.3+cuda12.8.
    known = {
        rank.nccl_loaded or log.version.partition("+")[0]
        for rank, log in zip(evidence.ranks, logs, strict=True)
    }
    loaded = sorted(known - {""})
    built = next((rank.nccl_built for rank in evidence.ranks if rank.nccl_built), "")
    file = next((rank.nccl_file for rank in evidence.ranks if rank.nccl_file), "")
    if not loaded:
        return "skipped", "neither NCCL's log nor torch says which is loaded"
    if len(loaded) > 1:
        return "fail", f"processes have loaded different ones: {', '.join(loaded)}"
    owner = "the node's" if file.startswith(NODE_MOUNTS) else "the image's"
    text = (
        f"{loaded[0]}, {owner}{f' ({file})' if file else ''}; torch was built with"
        f" {built or 'an unknown one'}"
    )
    if built and _number(loaded[0]) < _number(built):
        return "fail", f"{text}: an older one stands before the one that torch needs"
    if owner == "the node's":
        text += (
            "; an older installer of gIB left it on the node, where it shadows the image's"
            " (docs/fabric.md)"
        )
    return "pass", text


def _by_ray(evidence: Evidence) -> _Judged:
    found = evidence.ray_collective
    if found is None:
        return "skipped", "not run: it takes --collective, GPUs, and an all-reduce that ends well"
    if found.problem:
        return "fail", found.problem
    for worker, tensors in enumerate(found.got):
        for gpu, got in enumerate(tensors):
            if set(got) != {found.want}:
                return (
                    "fail",
                    (
                        f"GPU {gpu} of worker {worker} has {list(got)}; every element should be"
                        f" {found.want}"
                    ),
                )
    return (
        "pass",
        (
            f"every element is {found.want}, by ray.util.collective on"
            f" {counted(evidence.world, 'GPU')}"
        ),
    )


def _number(version: str) -> tuple[int, ...]:
    """Return a version as numbers, to compare by."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def readable(count: int) -> str:
    """Return bytes for people: 1024 are 1KiB."""
    value, units = float(count), ["Ti", "Gi", "Mi", "Ki", ""]
    while value >= 1024 and len(units) > 1:  # noqa: PLR2004 - a kibibyte
        value /= 1024
        units.pop()
    return f"{value:.4g}{units[-1]}B"
