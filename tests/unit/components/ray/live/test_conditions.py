"""Conditions of RayClusters, jobs and services, and the reasons where they are not ready
(conditions.yaml).
"""

from typing import Any

import pytest
import yaml

from berth.components.cluster.api import PODS, RAY_CLUSTERS, RAY_SERVICES
from berth.components.cluster.demand import gpus_of_ray_cluster
from berth.components.cluster.pods import SYNCED, why_not_ready
from berth.components.ray.live.cluster_condition import (
    condition_of,
    pods_missing,
    reasons_not_ready,
)
from berth.components.ray.live.job_condition import job_condition
from berth.components.ray.live.live_objects import LiveObjects
from berth.components.ray.live.reasons import reasons_of_service
from berth.components.ray.live.service_condition import service_condition
from tests.unit.cases import over, says, table
from tests.unit.recorded_cluster import RecordedCluster

TABLE = table(__file__, "conditions.yaml")
UNSCHEDULABLE = TABLE["reasons"][0][0][0]


def cluster(
    *,
    state: str = "ready",
    ready: int = 2,
    desired: int = 2,
    generation: int = 1,
    head: str = "True",
    suspend: bool | None = None,
) -> dict[str, Any]:
    pod = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}
    return {
        "metadata": {"name": "alice", "namespace": "berth-alice", "generation": generation},
        "spec": {
            "suspend": suspend,
            "workerGroupSpecs": [{"replicas": desired, "template": {"spec": pod}}],
        },
        "status": {
            "state": state,
            "observedGeneration": 1,
            "readyWorkerReplicas": ready,
            "desiredWorkerReplicas": desired,
            "conditions": [{"type": "HeadPodReady", "status": head}],
        },
    }


def pod(kind: str = "worker", uid: str = "", **status: Any) -> dict[str, Any]:
    metadata = {"uid": uid, "labels": {"ray.io/node-type": kind}}
    return {"metadata": metadata, "status": {"phase": "Pending"} | status}


def pods(kinds: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    """Pods by their state and kind."""
    ready: dict[str, Any] = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    found = []
    for state, counts in kinds.items():
        for kind, count in counts.items():
            one = pod(kind, **({} if state == "pending" else ready))
            one["metadata"] |= (
                {"deletionTimestamp": "2026-11-21T10:00:00Z"} if state == "terminating" else {}
            )
            found += [one] * count
    return found


@pytest.mark.parametrize(("given", "ready", "text"), TABLE["clusters"])
def test_clusters(given: dict[str, Any], ready: bool, text: str) -> None:
    condition = condition_of(cluster(**given))
    assert (condition.ready, str(condition)) == (ready, text)


@pytest.mark.parametrize(("given", "kinds", "missing"), TABLE["missing"])
def test_a_status_of_the_last_edits_pods_is_not_believed(
    given: dict[str, Any], kinds: dict[str, dict[str, int]], missing: str
) -> None:
    assert condition_of(cluster(**given)).ready
    assert pods_missing(cluster(**given), pods(kinds)) == missing
    pending = ["worker pod is not ready yet (phase Pending)"] if "pending" in kinds else []
    assert reasons_not_ready(cluster(**given), pods(kinds), []) == (
        pending or ([missing] if missing else [])
    )


@pytest.mark.parametrize(("image", "running", "words"), TABLE["swallowed"])
def test_pods_of_before_an_edit_are_not_ready(image: str, running: str, words: str) -> None:
    def spec(image: str) -> dict[str, Any]:
        return {"spec": {"containers": [{"name": "ray", "image": image}]}}

    edited = cluster(desired=1)
    edited["spec"] |= {
        "upgradeStrategy": {"type": "Recreate"},
        "headGroupSpec": {"template": spec(image)},
    }
    found = pods({"ready": {"head": 1, "worker": 1}})
    found[0]["metadata"]["labels"]["ray.io/group"] = "headgroup"
    found[0] |= spec(running)
    missing = pods_missing(edited, found)
    assert (bool(missing), words in missing) == (bool(words), True)
    edited["metadata"]["generation"] = 2
    assert reasons_not_ready(edited, found, [])[0].startswith(
        "pod None" if words else "the KubeRay operator"
    )
    edited["spec"]["upgradeStrategy"]["type"] = "None"
    assert pods_missing(edited, found) == ""


def test_a_cluster_that_wakes_is_not_suspended_any_more() -> None:
    assert condition_of(cluster(state="suspended", suspend=True)).state == "suspended"
    assert condition_of(cluster(state="suspended", suspend=False)).state == "waking"


@pytest.mark.parametrize(("statuses", "messages", "expected"), TABLE["reasons"])
def test_reasons(statuses: list[dict[str, Any]], messages: list[str], expected: list[str]) -> None:
    events = [{"message": message} for message in messages]
    assert (
        reasons_not_ready(cluster(ready=1), [pod(**status) for status in statuses], events)
        == expected
    )


@pytest.mark.parametrize(("given", "expected"), TABLE["stuck"])
def test_pods_that_neither_start_nor_end_come_with_the_command(
    given: dict[str, Any], expected: list[str]
) -> None:
    named = {"metadata": {"name": "p", "namespace": "berth-x"}}
    spec = {"spec": {"nodeName": "n", "resourceClaims": [{"name": "gpus"}]}}
    stuck = over(over(pod(), named) | spec, given)
    reasons = reasons_not_ready(cluster(ready=1), [stuck], [])
    assert len(reasons) == len(expected), reasons
    assert all(map(says, reasons, expected)), reasons


@pytest.mark.parametrize(("events", "words"), TABLE["autoscaler"])
def test_why_no_node_comes_is_the_autoscalers_to_say(
    events: list[tuple[str, str, str, str]], words: str
) -> None:
    scaling = [
        {
            "involvedObject": {"uid": uid},
            "reason": reason,
            "message": message,
            "lastTimestamp": f"2026-11-21T{hour}:00Z",
        }
        for reason, message, hour, uid in events
    ]
    (reason,) = reasons_not_ready(cluster(ready=1), [pod(uid="a", **UNSCHEDULABLE)], [], scaling)
    assert (
        reason
        == f"worker pod cannot be scheduled: {UNSCHEDULABLE['conditions'][0]['message']}{words}"
    )


def test_an_operator_that_does_not_look_is_suspected() -> None:
    assert reasons_not_ready(cluster(generation=2), [], []) == [
        "the KubeRay operator has not looked at it: is it running?"
    ]


def test_a_ready_cluster_has_no_reasons() -> None:
    found = [*pods({"ready": {"head": 1, "worker": 2}}), pod(**UNSCHEDULABLE)]
    assert reasons_not_ready(cluster(), found, []) == []


def test_gpus_are_those_of_all_workers_counted_or_claimed() -> None:
    assert gpus_of_ray_cluster(cluster(desired=3)) == 6
    claiming = {
        "metadata": {"annotations": {"berth/claimed-gpus": "4"}},
        "spec": {
            "containers": [{"resources": {"limits": {"cpu": "4"}, "claims": [{"name": "gpus"}]}}]
        },
    }
    assert (
        gpus_of_ray_cluster(
            over(cluster(desired=3), {"spec": {"workerGroupSpecs": {0: {"template": claiming}}}})
        )
        == 12
    )


@pytest.mark.parametrize(("message", "command"), TABLE["secrets"])
def test_a_missing_secret_comes_with_the_command_that_sets_it(message: str, command: str) -> None:
    waits = {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    places = {"HF_TOKEN": {"name": "hf", "key": "token"}, "HUB": {"name": "hub", "key": SYNCED}}
    references = [{"name": name, "valueFrom": {"secretKeyRef": at}} for name, at in places.items()]
    waiting = pod("head", containerStatuses=[{"name": "ray-head", "state": waits}])
    waiting["spec"] = {
        "containers": [{"name": "ray-head", "env": [{"name": "LOG", "value": "1"}, *references]}]
    }
    waiting["metadata"]["labels"]["berth/engineer"] = "x"
    reason = why_not_ready(waiting, "head")
    assert reason == f"head pod, container ray-head: CreateContainerConfigError: {message}{command}"


def job(deployment: str, state: str, **status: Any) -> dict[str, Any]:
    return {"status": {"jobDeploymentStatus": deployment, "jobStatus": state, **status}}


@pytest.mark.parametrize(("deployment", "job_state", "state", "holds"), TABLE["jobs"])
def test_jobs(deployment: str, job_state: str, state: str, holds: list[str]) -> None:
    condition = job_condition(job(deployment, job_state))
    assert condition.state == state
    assert [
        name for name in ("running", "succeeded", "failed") if getattr(condition, name)
    ] == holds


def test_a_failed_job_tells_why() -> None:
    report = job_condition(
        job("Failed", "FAILED", reason="AppFailed", message="exit code 1")
    ).reason
    assert report == "AppFailed: exit code 1"


def service(applications: dict[str, str]) -> dict[str, Any]:
    expected = [{"name": name, "import_path": "a:b"} for name in applications]
    failure = "Traceback:\n  File x\nModuleNotFoundError: No module named 'a'"
    statuses = {
        name: {"status": status, "message": failure if "FAILED" in status else ""}
        for name, status in applications.items()
        if status
    }
    return {
        "metadata": {"generation": 1},
        "spec": {"serveConfigV2": yaml.safe_dump({"applications": expected})},
        "status": {
            "observedGeneration": 1,
            "numServeEndpoints": 2,
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "UpgradeInProgress", "status": "False"},
            ],
            "activeServiceStatus": {
                "rayClusterName": "chat-abcde",
                "applicationStatuses": statuses,
            },
            "pendingServiceStatus": {},
        },
    }


@pytest.mark.parametrize(("applications", "edit", "state", "text"), TABLE["services"])
def test_services(
    applications: dict[str, str], edit: dict[str, Any], state: str, text: str
) -> None:
    condition = service_condition(over(service(applications), edit))
    assert (condition.state, str(condition), condition.ready) == (state, text, state == "ready")


def test_an_application_that_fails_tells_why() -> None:
    condition = service_condition(service({"a": "DEPLOY_FAILED"}))
    assert condition.reasons == (
        "application a: DEPLOY_FAILED: ModuleNotFoundError: No module named 'a'",
    )


def test_an_upgrade_without_room_names_the_one_that_serves_and_the_schedulers_reason() -> None:
    upgrading = {
        "conditions": {1: {"status": "True"}},
        "pendingServiceStatus": {"rayClusterName": "chat-fghij"},
    }
    named = {"name": "chat", "namespace": "berth-chat"}
    chat = over(service({"a": "RUNNING"}), {"metadata": named, "status": upgrading})
    space = {"namespace": "berth-chat"}
    clusters = []
    for name, state in (("chat-abcde", "ready"), ("chat-fghij", "")):
        clusters.append(over(cluster(state=state), {"metadata": space | {"name": name}}))
    clusters[1]["status"]["conditions"] = []
    waiting = over(
        pod(**UNSCHEDULABLE),
        {
            "metadata": space | {"name": "w", "labels": {"ray.io/cluster": "chat-fghij"}},
            "spec": {"nodeSelector": {}},
        },
    )
    objects = {RAY_SERVICES: [chat], RAY_CLUSTERS: clusters, PODS: [waiting]}
    reasons = reasons_of_service(LiveObjects(RecordedCluster(objects)), ("berth-chat", "chat"))
    assert reasons[0] == (
        "chat-abcde serves with 2 pods, and its successor chat-fghij waits: 0/1 applications run"
    )
    assert any("Insufficient" in reason for reason in reasons[1:]), reasons
