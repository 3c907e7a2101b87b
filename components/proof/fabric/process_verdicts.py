"""Verdicts on the processes of an all-reduce: their variables, limits, sums and versions. Pure."""

from collections.abc import Sequence

from berth.components.core.words import counted
from berth.components.fabric import NODE_MOUNTS, SCRIPT
from berth.components.proof.checks import Judged
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.evidence import FabricEvidence, Rank
from berth.components.proof.fabric.nccl_log import ProcessLog
from berth.components.proof.fabric.sizes import readable_bytes

NO_MEMORY = "Cannot allocate memory"
"""Text of ENOMEM in NCCL's log and torch's: RDMA registers more than the process may lock."""


def judge_program(evidence: FabricEvidence) -> Judged:
    """Check that the program ended, and measured something."""
    if evidence.problem:
        return "fail", evidence.problem.text
    devices = [rank.device for rank in evidence.ranks if rank.device]
    device = devices[0] if devices else "CPUs: torch sees no GPU"
    processes = f"{counted(evidence.world, 'process')} in {counted(len(evidence.pods), 'pod')}"
    text = f"{processes}, {evidence.backend} on {device}"
    if evidence.sweep:
        text += f", tensors up to {readable_bytes(evidence.sweep[-1].size)}"
    if evidence.stopped:
        text += f"; the sweep ended {evidence.stopped}"
    return "pass" if evidence.sweep else "fail", text


def judge_environment(
    evidence: FabricEvidence, expected: Expected, logs: Sequence[ProcessLog]
) -> Judged:
    """Check NCCL's variables in the pods against the script of their gIB, and gIB's own check."""
    lines = _lines_of_gibs_checker(logs)
    enforced = [line for line in lines if "enforced" in line.lower()]
    if enforced:
        return "fail", "; ".join(enforced)
    with_script = [rank for rank in evidence.ranks if rank.script is not None]
    if not with_script:
        return "skipped", f"no pod has gIB's {SCRIPT}"
    if expected.sourced:
        for rank in with_script:
            missing = [name for name in rank.script or {} if name not in rank.environment]
            if missing:
                return "fail", f"pod {rank.pod} lacks {', '.join(missing)} of gIB's {SCRIPT}"
    remarks = [f"as gIB's {SCRIPT} sets it", *_overridden(with_script), *lines]
    text = "; ".join(remarks)
    if evidence.problem:
        return "skipped", f"{text}; whether gIB takes it was not seen"
    return "pass", text


def _lines_of_gibs_checker(logs: Sequence[ProcessLog]) -> list[str]:
    lines: dict[str, None] = {}
    for log in logs:
        lines |= dict.fromkeys(log.checker)
    return list(lines)


def _overridden(ranks: Sequence[Rank]) -> list[str]:
    """Return a remark on the process with the most variables of other values than gIB's script."""
    rank = max(ranks, key=lambda rank: len(rank.overridden))
    if not rank.overridden:
        return []
    others = [f"{name}={own} ({theirs})" for name, (own, theirs) in rank.overridden.items()]
    return [f"but in pod {rank.pod}, with gIB's own in parentheses: {', '.join(others)}"]


def judge_locked_memory(evidence: FabricEvidence, expected: Expected) -> Judged:
    """Check that RDMA may register enough memory; a limit alone is not a failure."""
    if not expected.nics:
        return "skipped", "no NICs are claimed"
    limits = [(rank.lockable, rank.pod) for rank in evidence.ranks if rank.lockable is not None]
    if not limits:
        return "skipped", "the processes did not say how much memory they may lock"
    bounded = [(limit, pod) for limit, pod in limits if limit != -1]
    if not bounded:
        return "pass", "no limit in any process"
    limit, pod = min(bounded, key=lambda entry: entry[0])
    text = f"a process in pod {pod} may lock {readable_bytes(limit)}"
    if _allocation_failed(evidence):
        return (
            "fail",
            f"{text}, and an allocation failed ({NO_MEMORY}): RDMA registers no more than that",
        )
    if evidence.problem:
        return "skipped", f"{text}; whether that suffices was not seen"
    return "pass", f"{text}; no allocation failed"


def _allocation_failed(evidence: FabricEvidence) -> bool:
    if evidence.problem and NO_MEMORY in evidence.problem.text:
        return True
    return any(NO_MEMORY in rank.log for rank in evidence.ranks if rank.lockable is not None)


def judge_sums(evidence: FabricEvidence) -> Judged:
    """Check the elements of every sum."""
    if evidence.seed is None:
        return "skipped", "nothing was summed"
    want = evidence.seed.want
    for rank, got in enumerate(evidence.seed.got):
        if set(got) != {want}:
            return "fail", f"rank {rank} has {list(got)}; every element should be {want}"
    for point in evidence.sweep:
        if point.wrong:
            ranks = ", ".join(map(str, point.wrong))
            return "fail", f"elements of {readable_bytes(point.size)} are wrong in ranks {ranks}"
    text = f"every element is {want}, as computed"
    if evidence.sweep:
        text += f"; so is every element of {len(evidence.sweep)} larger tensors"
    return "pass", text


def judge_nccl_versions(evidence: FabricEvidence, logs: Sequence[ProcessLog]) -> Judged:
    """Check that all processes have loaded one NCCL, no older than the one that torch needs."""
    if not evidence.by_nccl:
        return "skipped", "NCCL is not used without GPUs"
    for log in logs:
        if log.mismatches:
            return "fail", log.mismatches[0]
    loaded = _loaded_versions(evidence, logs)
    if not loaded:
        return "skipped", "neither NCCL's log nor torch says which is loaded"
    if len(loaded) > 1:
        return "fail", f"processes have loaded different ones: {', '.join(loaded)}"
    return _judge_one_version(loaded[0], evidence)


def _loaded_versions(evidence: FabricEvidence, logs: Sequence[ProcessLog]) -> list[str]:
    versions: set[str] = set()
    for rank, log in zip(evidence.ranks, logs, strict=True):
        # NCCL's log has the build too, such as 2.28.3+cuda12.8.
        versions.add(rank.nccl_loaded or log.version.partition("+")[0])
    return sorted(versions - {""})


def _judge_one_version(loaded: str, evidence: FabricEvidence) -> Judged:
    built = next((rank.nccl_built for rank in evidence.ranks if rank.nccl_built), "")
    file = next((rank.nccl_file for rank in evidence.ranks if rank.nccl_file), "")
    is_of_node = file.startswith(NODE_MOUNTS)
    owner = "the node's" if is_of_node else "the image's"
    where = f" ({file})" if file else ""
    text = f"{loaded}, {owner}{where}; torch was built with {built or 'an unknown one'}"
    if built and _number(loaded) < _number(built):
        return "fail", f"{text}: an older one stands before the one that torch needs"
    if is_of_node:
        text += (
            "; an older installer of gIB left it on the node, where it shadows the image's"
            " (`berth docs fabric#nccl`)"
        )
    return "pass", text


def judge_rays_collective(evidence: FabricEvidence) -> Judged:
    """Check the elements of the sum by Ray's own collective library."""
    collective = evidence.ray_collective
    if collective is None:
        return "skipped", "not run: it takes --collective, GPUs, and an all-reduce that ends well"
    if collective.problem:
        return "fail", collective.problem
    for worker, tensors in enumerate(collective.got):
        for gpu, got in enumerate(tensors):
            if set(got) != {collective.want}:
                text = f"GPU {gpu} of worker {worker} has {list(got)}"
                return "fail", f"{text}; every element should be {collective.want}"
    gpus = counted(evidence.world, "GPU")
    return "pass", f"every element is {collective.want}, by ray.util.collective on {gpus}"


def _number(version: str) -> tuple[int, ...]:
    """Return a version as numbers, to compare by."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())
