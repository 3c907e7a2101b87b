"""Locked memory in the fabric's proof: RDMA registers no more than a process may lock."""

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from berth.components.hardware.machines import MACHINES
from berth.components.programs import all_reduce_rank
from berth.components.proof.checks import Check
from berth.components.proof.fabric.causes import causes_of
from berth.components.proof.fabric.evidence import FabricEvidence
from berth.components.proof.fabric.threshold import threshold_of
from berth.components.proof.fabric.verdicts import judge_evidence
from tests.unit.components.proof.fabric_evidence import EXPECTED, PODS, raw

THRESHOLD = threshold_of(MACHINES["a4-highgpu-8g"], 2, None)
# As NCCL's wrapper prints what libibverbs returns (https://github.com/NVIDIA/nccl,
# src/misc/ibvwrap.cc).
REFUSED = "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory\n"
JOINING = {"stage": "joining", "kind": "error", "text": "ncclSystemError: System call failed"}


def locked_memory(case: dict[str, Any], nics: int = 2) -> Check:
    expected = replace(EXPECTED, nics=nics)
    found = judge_evidence(FabricEvidence.model_validate(case), expected, THRESHOLD)
    return next(check for check in found.checks if check.name == "locked memory")


def with_limits(*limits: int | None, **changes: Any) -> dict[str, Any]:
    case = raw(**changes)
    for rank, limit in zip(case["ranks"], limits, strict=True):
        rank["lockable"] = limit
    return case


def test_no_limit_passes() -> None:
    check = locked_memory(with_limits(-1, -1, -1, -1))
    assert (check.verdict, check.evidence) == ("pass", "no limit in any process")


def test_a_limit_that_sufficed_passes_and_is_told() -> None:
    check = locked_memory(with_limits(-1, -1, 2**26, 2**23))
    assert (check.verdict, check.evidence) == (
        "pass",
        f"a process in pod {PODS[1]} may lock 8MiB; no allocation failed",
    )


def test_a_limit_that_did_not_suffice_fails_and_is_the_likeliest_cause() -> None:
    case = with_limits(*[2**23] * 4, problem=JOINING, sweep=[])
    case["logs"][2]["log"] += REFUSED
    assert locked_memory(case).verdict == "fail"
    evidence = FabricEvidence.model_validate(case)
    found = judge_evidence(evidence, EXPECTED, THRESHOLD)
    first = causes_of(found.checks, EXPECTED, "berth-train", evidence, found)[0]
    assert first.text.startswith(
        "containers inherit their limit of locked memory from their node's containerd"
    )
    assert first.look.endswith("-- sh -c 'ulimit -l'")


def test_where_nothing_is_limited_an_allocation_failed_for_another_reason() -> None:
    case = with_limits(-1, -1, -1, -1, problem=JOINING)
    case["logs"][0]["log"] += REFUSED
    assert locked_memory(case).verdict == "pass"


def test_without_nics_or_an_answer_nothing_is_said() -> None:
    assert locked_memory(raw(), nics=0).verdict == "skipped"
    assert locked_memory(with_limits(None, None, None, None)).verdict == "skipped"


READ = (
    "import sys; sys.path.insert(0, sys.argv[1]); import all_reduce_rank;"
    " print(all_reduce_rank.lockable_memory())"
)


@pytest.mark.parametrize("limit", [2**16, 2**20])
def test_the_program_reads_the_limit_of_its_own_process(limit: int) -> None:
    folder = str(Path(all_reduce_rank.__file__).parent)
    command = [
        "setpriv",
        "--bounding-set=-ipc_lock",
        "--inh-caps=-ipc_lock",
        sys.executable,
        "-c",
        READ,
        folder,
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit)),
    )
    if "setpriv:" in done.stderr:
        pytest.skip(f"capabilities cannot be dropped here: {done.stderr.strip()}")
    assert done.stdout.split() == [str(limit)], done.stderr


def test_a_process_with_the_capability_has_no_limit() -> None:
    effective = next(
        int(line.split()[1], 16)
        for line in Path("/proc/self/status").read_text().splitlines()
        if "CapEff" in line
    )
    if not effective >> 14 & 1:
        pytest.skip("this process has no CAP_IPC_LOCK")
    assert all_reduce_rank.lockable_memory() == -1
