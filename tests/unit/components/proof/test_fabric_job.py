import base64
import io
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.hardware.machines import MACHINES
from berth.components.programs import all_reduce, all_reduce_rank
from berth.components.proof.fabric.evidence import (
    FabricEvidence,
    NoEvidenceError,
    progress_in,
    raw_from_log,
)
from berth.components.proof.fabric.job import job_manifest, program_seconds, program_text
from berth.components.proof.fabric.report import report_page
from berth.components.proof.fabric.run import FabricResult
from berth.components.proof.fabric.threshold import threshold_of
from berth.components.proof.fabric.verdicts import judge_evidence
from tests.unit.cases import table
from tests.unit.components.proof.fabric_evidence import EXPECTED, raw

CLUSTER: dict[str, Any] = table(__file__, "fabric_job_cluster.yaml")


def manifest() -> dict[str, Any]:
    return job_manifest(CLUSTER, "abc123", workers=2, gpus=8, max_bytes=2**30, seconds=600, pods=[])


def test_the_rayjob(golden: Callable[[str, Any], None]) -> None:
    created = manifest()
    # The program has tests of its own.
    created["spec"]["runtimeEnvYAML"] = "…"
    golden("proof/all-reduce-rayjob", created)


def test_the_program_comes_with_the_job_and_its_start_passes_two_shells() -> None:
    spec = manifest()["spec"]
    ((name, text),) = yaml.safe_load(spec["runtimeEnvYAML"])["env_vars"].items()
    assert base64.b64decode(text).decode() == program_text()
    # Linux takes no longer value (MAX_ARG_STRLEN), and KubeRay puts all of it into one argument of
    # a shell.
    assert len(spec["runtimeEnvYAML"]) < 100_000
    assert not set(spec["entrypoint"]) & set("$`\\!")
    python, option, start, *arguments = shlex.split(spec["entrypoint"])
    assert (python, option) == ("python", "-c")
    assert name in start
    compile(start, "start", "exec")
    assert arguments == [
        "--workers",
        "2",
        "--gpus",
        "8",
        "--seconds",
        "540",
        "--max-bytes",
        str(2**30),
    ]
    with_ray = job_manifest(
        CLUSTER, "abc", workers=2, gpus=8, max_bytes=0, seconds=600, pods=[], collective=True
    )
    assert with_ray["spec"]["entrypoint"].endswith(" --max-bytes 0 --collective")


def test_a_short_wait_leaves_the_program_half_of_it() -> None:
    assert program_seconds(60) == 30


def test_the_program_needs_nothing_but_the_standard_library_to_begin() -> None:
    spec = manifest()["spec"]
    variables = yaml.safe_load(spec["runtimeEnvYAML"])["env_vars"]
    _, option, start, *_ = shlex.split(spec["entrypoint"])
    # Neither berth nor Ray can be imported there.
    command = [sys.executable, "-I", "-S", option, start, "--help"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--max-bytes" in done.stdout


def test_the_files_of_the_program_see_each_others_names() -> None:
    names = (
        "driver_version",
        "lockable_memory",
        "main_interface",
        "rdma_bytes",
        "RankProcess",
        "Member",
        "Collective",
    )
    program = program_text().replace("sys.exit(main(sys.argv[1:]))", "pass")
    look = f"print(*[name in globals() for name in {names}])"
    command = [sys.executable, "-I", "-S", "-c", f"{program}\n{look}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == [
        "True"
    ] * len(names)


def test_evidence_survives_a_log_with_other_lines_between() -> None:
    sent = raw()
    lines = all_reduce.evidence_lines(sent)
    assert all(len(line) < all_reduce.PIECE + 100 for line in lines)
    noise = "2026-11-21 15:27:59,714\tINFO cli.py:41 -- Job submission server address: http://train-head-svc:8265"
    log = "\n".join([noise, *(f"{line}\n{noise}" for line in reversed(lines))])
    assert raw_from_log(log) == sent
    assert progress_in(f"{noise}\n1024 bytes: 3 GB/s\n" + "\n".join(lines)) == "1024 bytes: 3 GB/s"


def test_evidence_that_is_not_whole_is_none() -> None:
    lines = all_reduce.evidence_lines(
        raw(logs=[{"rank": 0, "log": "".join(map(chr, range(32, 40000)))}])
    )
    assert len(lines) > 2
    with pytest.raises(NoEvidenceError, match=f"1 of {len(lines)} pieces"):
        raw_from_log("\n".join(lines[:-1]))
    with pytest.raises(NoEvidenceError, match="printed no evidence"):
        raw_from_log("nothing\n")
    with pytest.raises(NoEvidenceError, match="damaged"):
        raw_from_log(f"{all_reduce.MARKER} 1 1 AAAA")


def test_sizes_and_bandwidths() -> None:
    assert all_reduce.tensor_sizes(5000) == [1024, 2048, 4096]
    assert len(all_reduce.tensor_sizes(2**30)) == 21
    # nccl-tests: bus bandwidth is 2(n - 1)/n of the algorithm's.
    assert all_reduce.bandwidths(10**9, 0.01, 16) == (100.0, 187.5)


def test_what_was_moved_between_two_readings() -> None:
    before = {
        "interfaces": {"a": {"sent": 1, "received": 2}, "gone": {"sent": 1, "received": 1}},
        "rdma": {},
    }
    after = {
        "interfaces": {"a": {"sent": 11, "received": 22}, "new": {"sent": 9, "received": 9}},
        "rdma": {"mlx5_0": {"sent": 5, "received": 5, "interface": "a"}},
    }
    assert all_reduce.moved_between(before, after) == {
        "interfaces": {"a": {"sent": 10, "received": 20}},
        "rdma": {},
    }


def test_a_log_that_is_too_long_keeps_both_ends() -> None:
    text = all_reduce_rank.both_ends("a" * 600 + "b" * 600, 400)
    assert text == "a" * 300 + "\n[800 characters left out]\n" + "b" * 100
    assert all_reduce_rank.both_ends("short", 400) == "short"


def test_a_process_reports_its_pods_variables_and_those_of_gibs_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "set_nccl_env.sh"
    monkeypatch.setattr(all_reduce_rank, "GIB_SCRIPT", script)
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    assert all_reduce_rank.script_environment() is None
    script.write_text("echo noise; export NCCL_NET=gIB LIBRARY=x; false\n")
    about = all_reduce_rank.RankProcess(0, 1).about()
    assert (about["environment"], about["script"]) == ({"NCCL_ALGO": "Ring"}, {"NCCL_NET": "gIB"})


def test_the_log_of_a_process_that_gib_ended_is_read_by_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray starts the other one: tests/gpu/proof.py runs the whole program."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = Path(tempfile.mkdtemp(prefix="berth-all-reduce-1-"))
    (left / "nccl.log").write_text("NCCL WARN NCCL/NET (shim) mismatch enforced")
    ranks = [{"rank": 0}, {"rank": 1}]
    assert all_reduce.ranks_without_log({"ranks": ranks, "logs": [{"rank": 0}]}) == [1]
    reader = all_reduce_rank.RankProcess(1, 2)
    log = reader.lost_log(400)
    assert (log["rank"], log["log"][-8:]) == (1, "enforced")
    reader.leave()
    assert not left.exists()
    assert all_reduce_rank.RankProcess(1, 2).lost_log(400)["log"] == ""


def ray_node(pod: str, gpus: int = 0, *, head: bool = False, alive: bool = True) -> dict[str, Any]:
    """A node as `ray.nodes()` has it."""
    resources: dict[str, float] = {"CPU": 4.0}
    if gpus:
        resources["GPU"] = float(gpus)
    if head:
        resources["node:__internal_head__"] = 1.0
    return {"NodeManagerHostname": pod, "Alive": alive, "Resources": resources}


def test_processes_run_on_the_workers_that_ray_knows() -> None:
    nodes = [
        ray_node("head", head=True),
        ray_node("b", 8),
        ray_node("a", 8),
        ray_node("small", 1),
        ray_node("gone", 8, alive=False),
    ]
    alive = all_reduce.alive_nodes(nodes, set())
    names = [node["NodeManagerHostname"] for node in all_reduce.worker_nodes(alive, 8)]
    assert names == ["a", "b"]
    without_gpus = [node["NodeManagerHostname"] for node in all_reduce.worker_nodes(alive, 0)]
    assert without_gpus == ["a", "b", "small"]
    assert all_reduce.alive_nodes(nodes, {"b", "gone"}) == [nodes[1]]
    assert all_reduce.gpus_by_pod(alive) == "head: 0, b: 8, a: 8, small: 1"
    assert all_reduce.places_of(["a", "b", "a"], 8) == "2 of 8 on a, 1 of 8 on b"


def test_all_processes_have_torch_and_one_backend() -> None:
    nccl = {"pod": "a", "torch": "2.9.0", "backend": "nccl"}
    gloo = {"pod": "b", "torch": "2.9.0", "backend": "gloo"}
    bare = {"pod": "c", "torch": None, "problem": "No module named 'torch'"}
    assert all_reduce.common_backend([nccl, nccl]) == "nccl"
    with pytest.raises(all_reduce.Stopped, match="CUDA and others have not: b") as stopped:
        all_reduce.common_backend([nccl, gloo])
    assert stopped.value.kind == "error"
    with pytest.raises(all_reduce.Stopped, match="in pod c: No module named 'torch'") as stopped:
        all_reduce.common_backend([nccl, bare])
    assert stopped.value.kind == "no-torch"


def test_the_sum_of_rays_collective_is_that_of_all_gpus() -> None:
    """Ones of even GPUs and twos of odd ones, of each worker."""
    assert all_reduce_rank.expected_sum(2, 8) == 2 * sum([1, 2] * 4) == 24
    assert all_reduce_rank.expected_sum(3, 1) == 3


def test_an_error_of_ray_is_told_by_its_last_line() -> None:
    error = RuntimeError("Traceback\n  ...\nNCCL in Ray requires Cupy being available!\n")
    assert all_reduce.last_line_of(error) == "NCCL in Ray requires Cupy being available!"
    assert all_reduce.last_line_of(RuntimeError()) == "RuntimeError"


@pytest.mark.parametrize(
    ("number", "version"), [(22803, "2.28.3"), (2708, "2.7.8"), (21000, "2.10.0")]
)
def test_versions_of_nccl(number: int, version: str) -> None:
    assert all_reduce_rank.nccl_version(number) == version


class _Texts(HTMLParser):
    """The texts of a page, with every element closed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        assert "src" not in dict(attrs), "nothing is fetched from elsewhere"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_the_report_shows_verdicts_the_plot_traffic_and_versions() -> None:
    evidence = FabricEvidence.model_validate(raw("gdr-off"))
    threshold = threshold_of(MACHINES["a4-highgpu-8g"], 2, None)
    findings = judge_evidence(evidence, EXPECTED, threshold)
    text = report_page(
        "Fabric proof of <train>",
        "abc123",
        FabricResult(findings.checks, [], evidence, findings=findings),
        threshold,
    )
    read = _Texts()
    read.feed(text)
    assert read.open == []
    assert {
        "Fabric proof of <train>",
        "gIB without GPUDirect RDMA, through the nodes' memory: 16 × NET/gIB",
        "bus bandwidth (GB/s)",
        "size of the tensor of each process (bytes)",
        "threshold: 70 GB/s",
        "gpu0rdma0",
        "NVIDIA B200",
        "580.95.05",
        "v1.1.2",
    } <= set(read.texts)
    assert (
        report_page(
            "Fabric proof of <train>",
            "abc123",
            FabricResult(findings.checks, [], evidence, findings=findings),
            threshold,
        )
        == text
    )


def test_the_report_of_a_proof_without_a_run_has_no_plot() -> None:
    text = report_page("t", "r", FabricResult([]), threshold_of(MACHINES["a4-highgpu-8g"], 2, None))
    assert "<svg" not in text
    assert io.StringIO(text).readline() == "<!doctype html>\n"
