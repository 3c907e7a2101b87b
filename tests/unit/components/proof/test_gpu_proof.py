from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from berth.components.proof.checks import Check
from berth.components.proof.cuda_vector_add import job_manifest, job_name, namespace_manifest
from berth.components.proof.gpu_evidence import Run, judge_nodes, judge_run, progress, why_no_job
from berth.components.sharing import Pool, offered
from berth.stacks.settings.environment import EnvironmentSettings

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
LABELS = {
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
}


def pool(nodes: object = 2, **settings: Any) -> Pool:
    """A pool of a4-highgpu-8g."""
    fleet = EnvironmentSettings.model_validate(
        {
            "pools": {"dev": {"machineType": "a4-highgpu-8g", "nodes": nodes, **settings}},
            "sharing": {"slices": {"kind": "time-slicing", "replicas": 4}},
        },
        by_alias=True,
        by_name=False,
    )
    return offered(fleet.pools, fleet.sharing)["dev"]


def shared(nodes: object = 2) -> Pool:
    return pool(nodes, sharing="slices")


def node(
    name: str, gpus: int | None = 8, labels: dict[str, str] | None = None, others: dict[str, str] | None = None
) -> Object:
    resources = (others or {}) | ({} if gpus is None else {GPU: str(gpus)})
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {},
        "status": {
            "capacity": dict(resources),
            "allocatable": dict(resources),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def verdicts(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.verdict for check in checks}


def only_failure(checks: list[Check]) -> str:
    (failed,) = [check for check in checks if check.verdict == "fail"]
    return f"{failed.name}: {failed.evidence}"


def test_whole_gpus_of_gke_as_they_should_be() -> None:
    assert verdicts(judge_nodes(pool(), [node("a"), node("b")])) == {
        "nodes": "pass",
        f"capacity of {GPU}": "pass",
        f"allocatable of {GPU}": "pass",
        "other GPU resources": "pass",
        "feature labels": "skipped",
    }


def test_a_pool_of_gkes_that_the_gpu_operator_serves_too_fails_with_the_command() -> None:
    served = node("b", labels={"nvidia.com/gpu.deploy.device-plugin": "true", "nvidia.com/gpu.present": "true"})
    opted_out = node("a", labels={"nvidia.com/gpu.present": "true"})
    assert only_failure(judge_nodes(pool(), [opted_out, served])) == (
        "feature labels: the GPU Operator serves b too; run: kubectl label nodes --overwrite"
        " --selector=cloud.google.com/gke-nodepool=dev nvidia.com/gpu.deploy.operands=false"
    )


def test_shared_gpus_as_they_should_be() -> None:
    checks = judge_nodes(shared(), [node("a", 32, LABELS), node("b", 32, LABELS)])
    assert set(verdicts(checks).values()) == {"pass"}
    evidence = {check.name: check.evidence for check in checks}
    assert evidence[f"capacity of {GPU}"] == "32 on each of 2 nodes"
    assert "nvidia.com/gpu.replicas=4" in evidence["feature labels"]


def test_a_node_short() -> None:
    checks = judge_nodes(pool(), [node("a")])
    assert only_failure(checks) == "nodes: 1 of 1 Ready (settings say 2); 1 missing"


def test_no_node_at_all() -> None:
    assert only_failure(judge_nodes(pool(), [])) == "nodes: 0 of 0 Ready (settings say 2); 2 missing"


def test_an_autoscaled_pool_without_nodes_is_skipped_with_the_reason() -> None:
    (check,) = judge_nodes(pool({"min": 0, "max": 3}), [])
    assert (check.verdict, check.evidence) == ("skipped", "there is no node now (autoscaled, 0 to 3)")


def test_fewer_nodes_than_the_least_of_an_autoscaled_pool() -> None:
    assert "1 missing" in only_failure(judge_nodes(pool({"min": 2, "max": 3}), [node("a")]))


def test_a_node_that_is_not_ready_and_one_that_is_cordoned_are_named() -> None:
    lost, closed = node("a"), node("b")
    lost["status"]["conditions"][0]["status"] = "Unknown"
    closed["spec"]["unschedulable"] = True
    checks = judge_nodes(pool(), [lost, closed])
    assert only_failure(checks) == "nodes: 1 of 2 Ready (settings say 2); not: a; cordoned: b"


@pytest.mark.parametrize("part", ["capacity", "allocatable"])
@pytest.mark.parametrize(("found", "detail"), [("7", "b has 7"), (None, "b has none")])
def test_a_gpu_short_on_one_node(part: str, found: str | None, detail: str) -> None:
    wrong = node("b")
    del wrong["status"][part][GPU]
    if found:
        wrong["status"][part][GPU] = found
    checks = judge_nodes(pool(), [node("a"), wrong])
    assert only_failure(checks) == f"{part} of {GPU}: {detail}; 8 were expected"


def test_gpus_under_another_name() -> None:
    checks = judge_nodes(pool(1), [node("a", others={"nvidia.com/gpu.shared": "0", "nvidia.com/mig-1g.23gb": "7"})])
    assert only_failure(checks) == "other GPU resources: a has 7 nvidia.com/mig-1g.23gb"


@pytest.mark.parametrize(
    ("labels", "detail"),
    [
        ({"nvidia.com/gpu.replicas": "2"}, "a: nvidia.com/gpu.replicas is 2, not 4"),
        ({"nvidia.com/gpu.count": "7"}, "a: nvidia.com/gpu.count is 7, not 8"),
        ({"nvidia.com/gpu.count": None}, "a: nvidia.com/gpu.count is missing, not 8"),
    ],
)
def test_wrong_labels(labels: dict[str, str | None], detail: str) -> None:
    found = {key: value for key, value in (LABELS | labels).items() if value is not None}
    assert only_failure(judge_nodes(shared(1), [node("a", 32, found)])) == f"feature labels: {detail}"


def test_of_many_wrong_nodes_some_are_named() -> None:
    checks = judge_nodes(pool(9), [node(name, 7) for name in "abcdefghi"])
    assert "d has 7; and 5 more" in checks[1].evidence
    assert "e has 7" not in checks[1].evidence


# Jobs.

COMPLETE = {"metadata": {"name": "j"}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
FAILED = {
    "metadata": {"name": "j"},
    "status": {
        "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}]
    },
}
WAITING: Object = {"metadata": {"name": "j"}, "status": {}}


def pod(phase: str, **status: Any) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "berth-bob"},
        "spec": {"nodeName": "a", "containers": [{"resources": {"limits": {GPU: "1"}}}]},
        "status": {"phase": phase, **status},
    }


def simulated_node() -> Object:
    found = node("a")
    found["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    return found


LOG = "[Vector addition of 50000 elements]\nCUDA kernel launch with 196 blocks of 256 threads\nTest PASSED\nDone\n"


def test_a_job_that_added() -> None:
    scheduling, ran = judge_run(Run(COMPLETE, pod("Succeeded"), node("a"), LOG), GPU)
    assert (scheduling.verdict, scheduling.evidence) == ("pass", f"1 {GPU} on a")
    assert (ran.verdict, ran.evidence) == ("pass", "its log says: Test PASSED")


def test_a_simulated_success_is_no_pass() -> None:
    scheduling, ran = judge_run(Run(COMPLETE, pod("Succeeded"), simulated_node()), GPU)
    assert scheduling.verdict == "pass"
    assert (ran.verdict, ran.evidence) == ("simulated", "simulated: this node runs no containers (KWOK)")


@pytest.mark.parametrize(
    ("run", "detail"),
    [
        (
            Run(COMPLETE, pod("Succeeded"), node("a"), "Result verification failed\n"),
            "the Job is Complete, but its log doesn't say 'Test PASSED': it ends: Result verification failed",
        ),
        (
            Run(COMPLETE, pod("Succeeded"), node("a"), log_problem="the API server refused: 403"),
            "the Job is Complete, but its log doesn't say 'Test PASSED': the API server refused: 403",
        ),
        (
            Run(COMPLETE, pod("Succeeded"), node("a")),
            "the Job is Complete, but its log doesn't say 'Test PASSED': it is empty",
        ),
        (
            Run(
                FAILED,
                pod(
                    "Failed",
                    containerStatuses=[
                        {"name": "cuda-vector-add", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
                    ],
                ),
                node("a"),
                "Failed to allocate device vector A (error code no CUDA-capable device is detected)!\n",
            ),
            (
                "pod failed: container cuda-vector-add ended with 1 (Error); its log ends: Failed to allocate device"
                " vector A (error code no CUDA-capable device is detected)!"
            ),
        ),
        (
            Run(
                FAILED,
                pod("Failed", reason="UnexpectedAdmissionError", message="Allocate failed: more than 1"),
                node("a"),
            ),
            "pod failed: Allocate failed: more than 1",
        ),
        (Run(FAILED, pod("Failed"), simulated_node()), "pod failed: no reason given"),
        (
            Run(
                WAITING,
                pod(
                    "Pending",
                    containerStatuses=[
                        {"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}}
                    ],
                ),
                node("a"),
                waited="5m",
            ),
            "not ended after 5m: pod, container c: ImagePullBackOff: no such tag",
        ),
    ],
)
def test_a_job_that_did_not_add(run: Run, detail: str) -> None:
    scheduling, ran = judge_run(run, GPU)
    assert scheduling.verdict == "pass"
    assert (ran.verdict, ran.evidence) == ("fail", detail)


@pytest.mark.parametrize(
    ("run", "detail"),
    [
        (
            Run(
                WAITING,
                pod(
                    "Pending",
                    conditions=[
                        {"type": "PodScheduled", "status": "False", "message": f"0/2 nodes: Insufficient {GPU}"}
                    ],
                ),
                waited="5m",
            ),
            f"not after 5m: pod cannot be scheduled: 0/2 nodes: Insufficient {GPU}",
        ),
        (
            Run(WAITING, events=[{"message": "pods is forbidden: exceeded quota"}] * 2, waited="5m"),
            "not after 5m: pods is forbidden: exceeded quota",
        ),
        (Run(WAITING, waited="5m"), "not after 5m: the Job has no pod"),
        (Run(FAILED, waited="5m"), "Failed: BackoffLimitExceeded: too often"),
        (Run(None), "the Job is gone"),
    ],
)
def test_a_job_that_was_not_scheduled(run: Run, detail: str) -> None:
    scheduling, ran = judge_run(run, GPU)
    assert (scheduling.verdict, scheduling.evidence) == ("fail", detail)
    assert ran.verdict == "skipped"


def test_progress_says_what_a_job_waits_for() -> None:
    blocked = pod("Pending", conditions=[{"type": "PodScheduled", "status": "False", "message": "no node"}])
    assert progress(Run(WAITING)) == "waiting for its pod"
    assert progress(Run(WAITING, blocked)) == "pod cannot be scheduled: no node"
    assert progress(Run(WAITING, pod("Running", conditions=[{"type": "Ready", "status": "True"}]))) == (
        "its container runs"
    )
    assert progress(Run(COMPLETE, pod("Succeeded"))) == "Complete"


# Pools that are full.


def held(count: int, owner: str = "berth-bob", phase: str = "Running") -> Object:
    found = pod(phase)
    found["metadata"]["namespace"] = owner
    found["spec"]["containers"][0]["resources"]["limits"][GPU] = str(count)
    return found


def test_a_full_pool_that_cannot_grow_runs_no_job() -> None:
    pods = [held(6), held(2, "berth-carol"), held(8, phase="Succeeded")]
    assert why_no_job(pool(1), [node("a")], pods) == (
        f"all 8 {GPU} are in use (berth-bob 6, berth-carol 2) and the pool has no more nodes to add"
    )


def test_a_pool_of_no_nodes_runs_no_job() -> None:
    assert why_no_job(pool(0), [], []) == "the pool has 0 nodes by its settings"


@pytest.mark.parametrize(
    ("of", "nodes", "pods"),
    [
        (pool(1), [node("a")], [held(7)]),
        (pool(2), [node("a"), node("b")], [held(8)]),
        (pool({"min": 0, "max": 2}), [node("a")], [held(8)]),
        (pool(1), [node("a", None)], []),
        (pool(1), [], []),
    ],
    ids=["one free", "another node free", "can grow", "node without GPUs", "node missing"],
)
def test_whatever_is_not_just_full_runs_the_job(of: Pool, nodes: list[Object], pods: list[Object]) -> None:
    assert why_no_job(of, nodes, pods) is None


# Manifests.


def test_manifests(golden: Callable[[str, Any], None]) -> None:
    tainted = pool(taints=[{"key": "team", "value": "ml"}])
    golden("proof/cuda-vector-add-namespace", namespace_manifest("a1b2c3"))
    golden("proof/cuda-vector-add-job", job_manifest(tainted, GPU, "a1b2c3", 300, keep=False))


def test_a_kept_job_is_not_removed_by_the_cluster() -> None:
    remaining = job_manifest(shared(), "nvidia.com/gpu.shared", "a1b2c3", 300, keep=True)
    again = copy.deepcopy(job_manifest(shared(), "nvidia.com/gpu.shared", "a1b2c3", 300, keep=False))
    assert again["spec"].pop("ttlSecondsAfterFinished")
    assert remaining == again
    container = remaining["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["nvidia.com/gpu.shared"] == "1"


def test_a_job_name_fits_kubernetes() -> None:
    assert len(job_name("a" * 40, "a1b2c3")) == 63
    assert job_name("a" * 39 + "-" + "b", "a1b2c3") == "cuda-vector-add-" + "a" * 39 + "-a1b2c3"
