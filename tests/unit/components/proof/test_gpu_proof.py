"""Verdicts of `berth verify gpu` on nodes and Jobs (gpu_cases.yaml), and its manifests."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from berth.components.hardware.versions import CUDA_SAMPLE_IMAGE
from berth.components.proof.cuda_vector_add import job_manifest, job_name, namespace_manifest
from berth.components.proof.isolation_pods import LOOKS, judge_look, judge_operands, look_job
from berth.components.proof.job_verdicts import Ran, job_progress, judge_job
from berth.components.proof.node_verdicts import judge_nodes, why_no_job
from berth.components.sharing import Pool, offered_pools
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.cases import table

Object = dict[str, Any]

CASES: dict[str, list[Object]] = table(__file__, "gpu_cases.yaml")
GPU = "nvidia.com/gpu"
SHARED = {f"{GPU}.count": "8", f"{GPU}.replicas": "4", f"{GPU}.sharing-strategy": "time-slicing"}
FAILURE = {
    "type": "Failed",
    "status": "True",
    "reason": "BackoffLimitExceeded",
    "message": "too often",
}
JOBS: dict[str, Object | None] = {
    "complete": {
        "metadata": {"name": "j"},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    },
    "failed": {"metadata": {"name": "j"}, "status": {"conditions": [FAILURE]}},
    "waiting": {"metadata": {"name": "j"}, "status": {}},
    "gone": None,
}


def cases(part: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", CASES[part], ids=lambda case: case.get("name") or case["says"]
    )


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
    return offered_pools(fleet.pools, fleet.sharing)["dev"]


def pool_of(case: Object) -> Pool:
    return pool(case.get("nodes", 2), **({"sharing": case["sharing"]} if "sharing" in case else {}))


def nodes_of(case: Object) -> list[Object]:
    return [node(name, **facts) for name, facts in case["found"].items()]


def node(name: str, **facts: Any) -> Object:
    gpus = facts.get("gpus", 32 if "shared" in facts else 8)
    parts = {}
    for part in ("capacity", "allocatable"):
        count = facts.get(part, gpus)
        parts[part] = facts.get("others", {}) | ({} if count is None else {GPU: str(count)})
    labels = facts.get("labels", {}) | (SHARED | facts["shared"] if "shared" in facts else {})
    return {
        "metadata": {
            "name": name,
            "labels": {key: value for key, value in labels.items() if value is not None},
        },
        "spec": {"unschedulable": True} if facts.get("unschedulable") else {},
        "status": {
            **parts,
            "conditions": [{"type": "Ready", "status": facts.get("ready", "True")}],
        },
    }


def pod(status: Object, gpus: int = 1, owner: str = "berth-bob") -> Object:
    container = {"resources": {"limits": {GPU: str(gpus)}}}
    return {
        "metadata": {"name": "p", "namespace": owner},
        "spec": {"nodeName": "a", "containers": [container]},
        "status": status,
    }


def run_of(case: Object) -> Ran:
    where = node("a")
    if case.get("simulated"):
        where["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    return Ran(
        JOBS[case.get("job", "waiting")],
        pod(case["pod"]) if "pod" in case else None,
        where if "pod" in case and case.get("placed", True) else None,
        case.get("log", ""),
        log_problem=case.get("log_problem", ""),
        events=case.get("events", []),
        waited="5m",
    )


@cases("nodes")
def test_nodes(case: Object) -> None:
    checks = judge_nodes(pool_of(case), nodes_of(case))
    failed = [f"{check.name}: {check.evidence}" for check in checks if check.verdict == "fail"]
    assert len(failed) == case.get("failures", 1 if "fails" in case else 0)
    assert case.get("fails", "") in "".join(failed)
    if "verdicts" in case:
        assert {check.name: check.verdict for check in checks} == case["verdicts"]
    evidence = {check.name: check.evidence for check in checks}
    assert all(words in evidence[name] for name, words in case.get("evidence", {}).items()), (
        evidence
    )


@cases("jobs")
def test_jobs(case: Object) -> None:
    found = [[check.verdict, check.evidence] for check in judge_job(run_of(case), GPU)]
    expected = [case.get("scheduling", ["pass"]), case["ran"]]
    assert [
        part[: len(wanted_part)] for part, wanted_part in zip(found, expected, strict=True)
    ] == expected


@cases("progress")
def test_progress(case: Object) -> None:
    assert job_progress(run_of(case)) == case["says"]


@cases("full")
def test_no_job_is_started_where_it_cannot_run(case: Object) -> None:
    pods = [pod({"phase": phase}, gpus, owner) for gpus, owner, phase in case.get("held", [])]
    assert why_no_job(pool_of(case), nodes_of(case), pods) == case.get("why")


def test_manifests(golden: Callable[[str, Any], None]) -> None:
    tainted = pool(taints=[{"key": "team", "value": "ml"}])
    golden("proof/cuda-vector-add-namespace", namespace_manifest("a1b2c3"))
    golden(
        "proof/cuda-vector-add-job",
        job_manifest(tainted, CUDA_SAMPLE_IMAGE, GPU, "a1b2c3", 300, keep=False),
    )


def test_pods_that_look_for_other_gpus(golden: Callable[[str, Any], None]) -> None:
    slices = pool(sharing="slices")
    jobs = {
        look.name: look_job(slices, look, "sample:1", "a1b2c3", 300, keep=False) for look in LOOKS
    }
    pods = {name: job["spec"]["template"]["spec"] for name, job in jobs.items()}
    asked = {
        name: (
            spec.get("runtimeClassName"),
            [container["resources"]["limits"].get(GPU) for container in spec["containers"]],
        )
        for name, spec in pods.items()
    }
    assert asked == {
        "a request": (None, ["1"]),
        "a request and RuntimeClass nvidia": ("nvidia", ["1"]),
        "RuntimeClass nvidia without a request": ("nvidia", [None]),
        "RuntimeClass nvidia-legacy without a request": ("nvidia-legacy", [None]),
        "a container beside one with a request": ("nvidia", [None, "1"]),
    }
    assert len({job["metadata"]["name"] for job in jobs.values()}) == len(jobs)
    golden("proof/gpu-look-job", jobs["a container beside one with a request"])


@pytest.mark.parametrize(
    ("name", "log", "verdict"),
    [
        ("a request", "sees /dev/nvidia3\ndone\n", "pass"),
        ("a request", "sees /dev/nvidia3\nsees /dev/nvidia4\ndone\n", "fail"),
        ("a request", "done\n", "fail"),
        ("RuntimeClass nvidia without a request", "done\n", "pass"),
        ("RuntimeClass nvidia without a request", "sees /dev/nvidia0\ndone\n", "fail"),
        ("a container beside one with a request", "sees /dev/nvidia0\ndone\n", "fail"),
        ("a container beside one with a request", "", "fail"),
    ],
)
def test_a_gpu_that_is_seen_and_not_requested_fails(name: str, log: str, verdict: str) -> None:
    (look,) = (look for look in LOOKS if look.name == name)
    run = Ran(JOBS["complete"], pod({}), {"metadata": {"name": "n"}}, log)
    assert judge_look(look, run, GPU).verdict == verdict


def test_what_the_operators_own_pods_say() -> None:
    def operand(name: str, *, ready: bool) -> Object:
        conditions = [{"type": "Ready", "status": str(ready)}]
        return {
            "metadata": {"name": name, "labels": {"app": "nvidia-device-plugin-daemonset"}},
            "spec": {"nodeName": "n", "containers": []},
            "status": {"phase": "Running", "conditions": conditions},
        }

    good = operand("good", ready=True)
    bad = operand("bad", ready=False)
    assert judge_operands([good], ["n"]).verdict == "pass"
    assert judge_operands([good, bad], ["n"]).verdict == "fail"
    assert judge_operands([good], ["other"]).verdict == "fail"


def test_a_kept_job_is_not_removed_by_the_cluster() -> None:
    slices = pool(sharing="slices")
    remaining = job_manifest(slices, CUDA_SAMPLE_IMAGE, f"{GPU}.shared", "a1b2c3", 300, keep=True)
    again = copy.deepcopy(
        job_manifest(slices, CUDA_SAMPLE_IMAGE, f"{GPU}.shared", "a1b2c3", 300, keep=False)
    )
    assert again["spec"].pop("ttlSecondsAfterFinished")
    assert remaining == again
    container = remaining["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"][f"{GPU}.shared"] == "1"


def test_a_job_name_fits_kubernetes() -> None:
    assert len(job_name("a" * 40, "a1b2c3")) == 63
    assert job_name("a" * 39 + "-" + "b", "a1b2c3") == "cuda-vector-add-" + "a" * 39 + "-a1b2c3"
