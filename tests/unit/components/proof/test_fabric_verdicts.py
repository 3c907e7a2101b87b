from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.hardware.machines import MACHINES
from berth.components.proof.fabric import causes
from berth.components.proof.fabric.causes import causes_of
from berth.components.proof.fabric.evidence import Evidence
from berth.components.proof.fabric.verdicts import (
    AFTER_PROGRAM,
    Findings,
    Threshold,
    failed,
    judge,
    least_traffic,
    not_run,
    threshold_of,
)
from tests.unit.components.proof.fabric_evidence import EXPECTED, PODS, raw

A4 = MACHINES["a4-highgpu-8g"]
THRESHOLD = threshold_of(A4, 2, None)
GOOD = dict.fromkeys(AFTER_PROGRAM, "pass")


def judged(case: str | None = "good", threshold: Threshold = THRESHOLD, **changes: Any) -> Findings:
    return judge(Evidence.model_validate(raw(case, **changes)), EXPECTED, threshold)


def verdicts(found: Findings) -> dict[str, str]:
    return {check.name: check.verdict for check in found.checks}


def evidence_of_check(found: Findings, name: str) -> str:
    return next(check.evidence for check in found.checks if check.name == name)


def looks(case: str | None = "good", **changes: Any) -> list[str]:
    """The causes of a case, in order."""
    evidence = Evidence.model_validate(raw(case, **changes))
    found = judge(evidence, EXPECTED, THRESHOLD)
    return [cause.text for cause in causes_of(found.checks, EXPECTED, "berth-train", evidence, found)]


def test_all_is_well() -> None:
    found = judged()
    assert verdicts(found) == GOOD
    assert evidence_of_check(found, "all-reduce") == "4 processes in 2 pods, nccl on NVIDIA B200, tensors up to 1GiB"
    assert (
        evidence_of_check(found, "sums") == "every element is 6.0, as computed; so is every element of 3 larger tensors"
    )
    assert evidence_of_check(found, "transport") == "gIB v1.1.2 with GPUDirect RDMA: 16 × NET/gIB/GDRDMA"
    assert evidence_of_check(found, "NICs used") == "all 2 in each pod: mlx5_0, mlx5_1"
    assert evidence_of_check(found, "algorithm") == "RING/LL from 1KiB, TREE/LL128 from 1MiB, RING/SIMPLE from 256MiB"
    assert evidence_of_check(found, "bandwidth") == (
        "90 GB/s bus bandwidth at 1GiB; at least 70 expected: 70% of 2 × 400 Gbit/s (a4-highgpu-8g)"
    )
    assert evidence_of_check(found, "NCCL versions") == (
        "2.28.3, the node's (/usr/local/nvidia/lib64/libnccl.so.2); torch was built with 2.28.3; "
        "an older installer of gIB left it on the node, where it shadows the image's (docs/fabric.md)"
    )
    assert looks() == []


@pytest.mark.parametrize(
    ("case", "wrong", "evidence", "cause"),
    [
        (
            "tcp-fallback",
            "transport",
            "TCP instead of the fabric: 16 × NET/Socket; NET/Plugin: Could not",
            "gIB was not found",
        ),
        ("wrong-plugin", "transport", "not gIB, but another network plugin: 16 × NET/IB/GDRDMA", "gIB was not found"),
        ("gdr-off", "transport", "gIB without GPUDirect RDMA, through the nodes' memory", "a NIC is not on its GPU's"),
        ("half-the-nics", "NICs used", f"1 of 2 in pod {PODS[0]} (mlx5_0)", "a NIC is down"),
        ("plugin-not-found", "transport", "unknown: NCCL's log ends too early", "NCCL ended early"),
        ("mismatched-nccl", "NCCL versions", "Mismatched NCCL version detected", "the node's NCCL in"),
    ],
)
def test_each_case_is_caught_with_its_likeliest_cause(case: str, wrong: str, evidence: str, cause: str) -> None:
    found = judged(case)
    assert verdicts(found)[wrong] == "fail"
    assert evidence_of_check(found, wrong).startswith(evidence)
    assert any(text.startswith(cause) for text in looks(case))


def test_a_tuner_without_configuration_is_no_failure_but_a_cause_of_one() -> None:
    assert verdicts(judged("no-tuner-config")) == GOOD
    slow = [{**point, "bus": 40.0} for point in raw()["sweep"]]
    assert looks("no-tuner-config", sweep=slow)[0].startswith(
        "gIB's tuner has no good configuration (TUNER/gIB: No NCCL_"
    )


def test_an_older_nccl_of_the_node_before_the_images() -> None:
    case = raw("old-nccl")
    for log in case["logs"]:
        log["nccl_loaded"] = "2.25.1"
    found = judge(Evidence.model_validate(case), EXPECTED, THRESHOLD)
    assert [check.name for check in found.checks if check.verdict == "fail"] == ["NCCL versions"]
    assert evidence_of_check(found, "NCCL versions").endswith(
        "torch was built with 2.28.3: an older one stands before the one that torch needs"
    )


def test_processes_with_different_nccl_libraries() -> None:
    case = raw()
    case["logs"][3]["nccl_loaded"] = "2.27.7"
    found = judge(Evidence.model_validate(case), EXPECTED, THRESHOLD)
    assert evidence_of_check(found, "NCCL versions") == "processes have loaded different ones: 2.27.7, 2.28.3"


def test_by_cpus_over_the_claimed_nics() -> None:
    found = judged(None)
    skipped = dict.fromkeys(("algorithm", "bandwidth", "NCCL versions"), "skipped")
    assert verdicts(found) == GOOD | skipped
    assert evidence_of_check(found, "transport").startswith(
        "gloo, no GPUs: 99.9% of the traffic of pod train-workers-worker-a went over"
    )
    assert evidence_of_check(found, "NICs used") == "all 2 in each pod: gpu0rdma0, gpu1rdma0"


def pods_with(interfaces: dict[str, int]) -> dict[str, Any]:
    """Traffic of pods whose interfaces moved so many bytes each way."""
    moved = {name: {"sent": count, "received": count} for name, count in interfaces.items()}
    return {pod: {"interfaces": moved, "rdma": {}} for pod in PODS}


@pytest.mark.parametrize(
    ("moved", "wrong"),
    [
        ({"eth0": 7 * 10**9, "gpu0rdma0": 100, "gpu1rdma0": 100}, {"transport", "traffic"}),
        ({"eth0": 7 * 10**9}, {"transport", "traffic", "NICs used"}),
        ({"eth0": 1000, "gpu0rdma0": 7 * 10**9, "gpu1rdma0": 1000}, {"NICs used"}),
        # What little there is takes the NICs, and tensors took another way.
        ({"eth0": 1000, "gpu0rdma0": 10**6, "gpu1rdma0": 10**6}, {"traffic"}),
    ],
)
def test_traffic_that_takes_another_way(moved: dict[str, int], wrong: set[str]) -> None:
    found = judged(None, traffic=pods_with(moved))
    assert {check.name for check in found.checks if check.verdict == "fail"} == wrong


def test_the_least_traffic_is_what_two_pods_must_exchange() -> None:
    evidence = Evidence.model_validate(raw(None))
    assert least_traffic(evidence) == 2 * 10 * (2**20 + 2**28 + 2**30)


def test_wrong_sums() -> None:
    found = judged(seed={"want": 6.0, "got": [[6.0] * 4, [6.0, 6.0, 5.0, 6.0], [6.0] * 4, [6.0] * 4]})
    assert (verdicts(found)["sums"], evidence_of_check(found, "sums")) == (
        "fail",
        "rank 1 has [6.0, 6.0, 5.0, 6.0]; every element should be 6.0",
    )
    sweep = raw()["sweep"]
    sweep[1]["wrong"] = [2, 3]
    assert evidence_of_check(judged(sweep=sweep), "sums") == "elements of 256MiB are wrong in ranks 2, 3"


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("busy", "other jobs hold GPUs of this RayCluster"),
        ("missing", "Ray does not know all workers"),
        ("no-torch", "the image has no torch"),
        ("died", "a worker ended meanwhile"),
        ("timeout", "the pods do not reach each other"),
        ("error", "NCCL, gloo or the GPU fails"),
    ],
)
def test_what_stops_the_program_is_told_with_its_cause(kind: str, cause: str) -> None:
    nothing: dict[str, Any] = {"seed": None, "sweep": [], "operations": {}, "traffic": {}, "logs": []}
    problem = {"stage": "placing", "kind": kind, "text": "it is so"}
    found = judged(problem=problem, **nothing)
    assert (verdicts(found)["all-reduce"], evidence_of_check(found, "all-reduce")) == ("fail", "it is so")
    assert verdicts(found)["sums"] == "skipped"
    assert "pass" not in verdicts(found).values()
    assert looks(problem=problem, **nothing)[0].startswith(cause)


def slower(bus: float, largest: int = 2**30) -> list[dict[str, Any]]:
    return [{**point, "bus": bus} for point in raw()["sweep"] if point["bytes"] <= largest]


@pytest.mark.parametrize(
    ("changes", "threshold", "verdict", "evidence"),
    [
        ({"sweep": slower(69.9)}, THRESHOLD, "fail", "at least 70 expected"),
        ({"sweep": slower(70)}, THRESHOLD, "pass", "at least 70 expected"),
        ({"sweep": slower(10, 2**20)}, THRESHOLD, "skipped", "take --max-size 256Mi"),
        ({"sweep": slower(10, 2**20)}, threshold_of(A4, 2, 20), "fail", "at least 20 expected: nccl.minBusBandwidth"),
        ({}, threshold_of(A4, 0, None), "skipped", "nothing is expected without RDMA NICs"),
        ({}, threshold_of(MACHINES["g2-standard-4"], 0, None), "skipped", "nothing is expected without RDMA NICs"),
    ],
)
def test_bandwidth(changes: dict[str, Any], threshold: Threshold, verdict: str, evidence: str) -> None:
    found = judged(threshold=threshold, **changes)
    assert verdicts(found)["bandwidth"] == verdict
    assert evidence in evidence_of_check(found, "bandwidth")


def test_cpus_are_held_to_a_threshold_of_the_settings_only() -> None:
    assert verdicts(judged(None))["bandwidth"] == "skipped"
    assert verdicts(judged(None, threshold_of(A4, 2, 100)))["bandwidth"] == "fail"


def test_the_threshold_of_a_whole_a4_node() -> None:
    assert threshold_of(A4, 8, None).bus == 280
    assert threshold_of(MACHINES["a3-ultragpu-8g"], 8, None).bus == 280


def test_counters_that_cannot_be_read_are_no_failure() -> None:
    bare = {pod: {**item, "rdma": {}} for pod, item in raw()["traffic"].items()}
    assert verdicts(judged(traffic=bare)) == GOOD | {"traffic": "skipped"}


def test_rdma_devices_of_other_pods_are_not_counted() -> None:
    case = raw()
    foreign = {"mlx5_7": {"sent": 10**12, "received": 10**12, "interface": ""}}
    traffic = {pod: {**item, "rdma": {**item["rdma"], **foreign}} for pod, item in case["traffic"].items()}
    assert evidence_of_check(judged(traffic=traffic), "traffic") == evidence_of_check(judged(), "traffic")


def test_where_nothing_ran_nothing_passes() -> None:
    assert {check.verdict for check in not_run("no workers")} == {"skipped"}
    assert [check.verdict for check in not_run("", simulated=True)][:2] == ["simulated", "skipped"]
    assert [check.verdict for check in failed("gone")][:2] == ["fail", "skipped"]
    assert [check.name for check in not_run("")] == list(AFTER_PROGRAM)


def test_every_symptom_has_causes_with_all_names_filled_in() -> None:
    table = yaml.safe_load(Path(causes.__file__).with_name("causes.yaml").read_text())
    names = dict.fromkeys(
        ("cluster", "namespace", "why_no_nics", "libraries", "reason", "tuner", "workers", "environment"), "x"
    )
    names |= {"in_worker": "x", "in_head": "x"}
    for symptom, entries in table.items():
        assert entries, symptom
        for entry in entries:
            assert set(entry) == {"text", "look"}
            assert "{" not in entry["text"].format(**names) + entry["look"].format(**names)
