"""Verdicts on the way of the tensors: transport, NICs, traffic, algorithm and bandwidth. Pure."""

import math
from collections.abc import Sequence
from itertools import groupby

from berth.components.proof.checks import Judged
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.evidence import FabricEvidence, Traffic
from berth.components.proof.fabric.nccl_log import GIB, ProcessLog, Transport
from berth.components.proof.fabric.sizes import readable_bytes
from berth.components.proof.fabric.threshold import Threshold

LARGE_ENOUGH = 2**28
"""Bytes of a tensor that keeps NICs busy throughout."""

_ONE_WORKER = "there is one worker: nothing goes over the fabric"

# Share of a pod's traffic: the processes coordinate over the pods' network, whatever way tensors
# take.
_SHARE_OVER_NICS = 0.9
# Share of the least traffic of tensors; counters are read a moment before and after.
_SHARE_OF_EXPECTED = 0.5
# Share of an even distribution from which a NIC counts as used.
_SHARE_OF_EVEN = 0.1


def judge_transport(
    evidence: FabricEvidence,
    expected: Expected,
    transport: Transport | None,
    logs: Sequence[ProcessLog],
) -> Judged:
    """Check that tensors went over the fabric; `transport` is NCCL's, None for gloo."""
    if transport is None:
        return _judge_gloo(evidence, expected)
    return _judge_nccl(transport, logs)


def _judge_nccl(transport: Transport, logs: Sequence[ProcessLog]) -> Judged:
    gib = next((log.gib for log in logs if log.gib), "")
    counts = ", ".join(
        f"{count} × NET/{network}" for network, count in sorted(transport.networks.items())
    )
    missing = ""
    for log in logs:
        if log.no_plugin:
            missing = f"; {log.no_plugin[0]}"
            break
    match transport.way:
        case "fabric":
            return "pass", f"{f'{GIB} {gib}'.strip()} with GPUDirect RDMA: {counts}"
        case "staged":
            return "fail", f"gIB without GPUDirect RDMA, through the nodes' memory: {counts}"
        case "tcp":
            return "fail", f"TCP instead of the fabric: {counts or 'NET/Socket'}{missing}"
        case "other plugin":
            return "fail", f"not gIB, but another network plugin: {counts}{missing}"
        case "none":
            return "skipped", _ONE_WORKER
        case "unknown":
            text = "unknown: NCCL's log ends too early, or says nothing of connections"
            return "fail", f"{text}{missing}"


def _judge_gloo(evidence: FabricEvidence, expected: Expected) -> Judged:
    if not evidence.traffic:
        return "skipped", "no traffic was counted"
    if len(evidence.traffic) == 1:
        return "skipped", _ONE_WORKER
    for traffic in evidence.traffic:
        if not traffic.nics:
            bare = f"pod {traffic.pod} has no interface but {traffic.main}"
            claims = "" if expected.nics else ", since it claims none"
            return "fail", f"not using the fabric: {bare}{claims}"
    worst = min(evidence.traffic, key=_share_over_nics)
    # Rounded down, so that only all of it is 100 %.
    percent = math.floor(_share_over_nics(worst) * 1000) / 10
    share = f"{percent}% of the traffic of pod {worst.pod}"
    text = f"gloo, no GPUs: {share} went over claimed NICs, the rest over {worst.main}"
    return "pass" if _share_over_nics(worst) >= _SHARE_OVER_NICS else "fail", text


def _share_over_nics(traffic: Traffic) -> float:
    total = traffic.over_nics + traffic.over_main
    return traffic.over_nics / total if total else 0.0


def judge_used_nics(
    evidence: FabricEvidence, expected: Expected, transport: Transport | None
) -> Judged:
    """Check that each pod uses all of its NICs."""
    if not expected.nics:
        return "skipped", "no NICs are claimed"
    if len(evidence.pods) < 2:  # noqa: PLR2004 - a way needs two ends
        return "skipped", _ONE_WORKER
    if transport and transport.way in ("tcp", "unknown"):
        return "skipped", "NCCL's log names none"
    used = transport.nics if transport else _busy_nics(evidence)
    if not used:
        return "skipped", "no traffic was counted"
    pod, nics = min(used.items(), key=lambda item: len(item[1]))
    if len(nics) < expected.nics:
        named = f" ({', '.join(nics)})" if nics else ""
        return "fail", f"{len(nics)} of {expected.nics} in pod {pod}{named}"
    first = next(iter(used.values()))
    return "pass", f"all {expected.nics} in each pod: {', '.join(first)}"


def _busy_nics(evidence: FabricEvidence) -> dict[str, tuple[str, ...]]:
    """Return the NICs with a fair part of the traffic, by pod."""
    busy: dict[str, tuple[str, ...]] = {}
    for traffic in evidence.traffic:
        nics = traffic.nics
        even = traffic.over_nics / len(nics) if nics else 0
        busy[traffic.pod] = tuple(
            name
            for name, moved in nics.items()
            if moved.total and moved.total >= even * _SHARE_OF_EVEN
        )
    return busy


def judge_traffic(evidence: FabricEvidence) -> Judged:
    """Check that the claimed NICs counted the tensors."""
    pods = len(evidence.traffic)
    if not pods:
        return "skipped", "no traffic was counted"
    if pods == 1:
        return "skipped", _ONE_WORKER
    if evidence.by_nccl and not any(traffic.rdma for traffic in evidence.traffic):
        return "skipped", "these pods cannot read the counters of RDMA devices"
    least = least_traffic(evidence)
    worst = min(evidence.traffic, key=lambda traffic: traffic.over_nics)
    over_main = f"{readable_bytes(worst.over_main)} over {worst.main}"
    moved = f"{readable_bytes(worst.over_nics)} over claimed NICs of pod {worst.pod}, {over_main}"
    text = f"{moved}; tensors alone are {readable_bytes(least)} at least"
    return "pass" if worst.over_nics >= least * _SHARE_OF_EXPECTED else "fail", text


def least_traffic(evidence: FabricEvidence) -> int:
    """Return the bytes that each pod must send and receive by any algorithm.

    Each pod holds a part of the sum and ends with all of it: with m pods, 2(m − 1)/m of each tensor
    leave a pod on average, and as many come in, as for single processes in nccl-tests'
    doc/PERFORMANCE.md.
    """
    pods = len(evidence.traffic)
    summed = sum(point.size * point.operations for point in evidence.sweep)
    return int(2 * summed * 2 * (pods - 1) / pods)


def judge_algorithm(evidence: FabricEvidence, logs: Sequence[ProcessLog]) -> Judged:
    """Return NCCL's algorithms and protocols by size; none of them is wrong."""
    if not evidence.by_nccl:
        return "skipped", "gloo does not say"
    choices: dict[int, tuple[str, str]] = {}
    for log in logs:
        choices |= log.choices
    if not choices:
        return "skipped", "NCCL's log does not say"
    groups = groupby(sorted(choices), key=lambda size: "/".join(choices[size]))
    return "pass", ", ".join(
        f"{choice} from {readable_bytes(next(sizes))}" for choice, sizes in groups
    )


def judge_bandwidth(evidence: FabricEvidence, threshold: Threshold) -> Judged:
    """Check that the best bus bandwidth reaches the threshold."""
    best = evidence.best
    if best is None:
        return "skipped", "nothing was measured"
    measured = f"{best.bus:.3g} GB/s bus bandwidth at {readable_bytes(best.size)}"
    if len(evidence.pods) == 1 and not threshold.always:
        return "skipped", f"{measured}, within one pod"
    if threshold.bus is None:
        return "skipped", f"{measured}; {threshold.source}"
    if not evidence.by_nccl and not threshold.always:
        return "skipped", f"{measured}, by CPUs; nccl.minBusBandwidth sets a threshold for them"
    expected = f"at least {threshold.bus:.3g} expected: {threshold.source}"
    if best.bus >= threshold.bus:
        return "pass", f"{measured}; {expected}"
    if evidence.sweep[-1].size < LARGE_ENOUGH and not threshold.always:
        larger = f"take --max-size {LARGE_ENOUGH // 2**20}Mi"
        return "skipped", f"{measured}; too small for NICs to be busy, {larger}"
    return "fail", f"{measured}; {expected}"
