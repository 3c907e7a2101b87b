"""Jobs and services in `berth status` and `berth preview`."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from berth.cli.reach.environment import Environment
from berth.cli.reach.fleet import observed, table
from berth.components.cluster.api import (
    EVENTS,
    NAMESPACES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterApi,
    within,
)
from berth.components.gke import PoolSettings
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray.fleet import Fleet
from berth.components.ray.settings import BerthShape
from berth.stacks.settings.contract import EnvironmentContract
from tests.unit.cli.reach.test_fleet import shown
from tests.unit.components.plan.plans import Inputs, effects, event, texts_of, who

RAY_JOB = "kubernetes:ray.io/v1:RayJob"
RAY_SERVICE = "kubernetes:ray.io/v1:RayService"
CREATED = "2026-01-31T12:00:00Z"


def labeled(kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    labels = {f"berth/{kind}": name, "berth/stack": "prod", "berth/environment": "prod"}
    return {"name": name, "namespace": namespace or f"berth-{name}", "labels": labels, "creationTimestamp": CREATED}


def cluster_config(gpus: int = 1) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": gpus}
    pod = {"nodeSelector": {POOL_LABEL: "gpu"}, "containers": [{"resources": {"limits": limits}}]}
    head = {"template": {"spec": {"nodeSelector": {POOL_LABEL: "cpu"}, "containers": []}}}
    return {
        "headGroupSpec": head,
        "workerGroupSpecs": [{"replicas": 2, "minReplicas": 2, "maxReplicas": 2, "template": {"spec": pod}}],
    }


def ray_cluster(kind: str, name: str, state: str = "ready") -> dict[str, Any]:
    """A RayCluster that KubeRay made: of its maker's labels."""
    return {
        "metadata": labeled(kind, name) | {"name": f"{name}-abcde", "generation": 1},
        "spec": cluster_config(),
        "status": {
            "state": state,
            "observedGeneration": 1,
            "readyWorkerReplicas": 2 if state == "ready" else 0,
            "desiredWorkerReplicas": 2,
            "conditions": [{"type": "HeadPodReady", "status": "True"}],
        },
    }


def job(deployment: str, state: str, **status: Any) -> dict[str, Any]:
    metadata = labeled("job", "nightly") | {"name": "nightly-1a2b3c4d"}
    known = {"jobDeploymentStatus": deployment, "jobStatus": state, "rayClusterName": "nightly-abcde"}
    return {"metadata": metadata, "spec": {"rayClusterSpec": cluster_config()}, "status": known | status}


def service(**status: Any) -> dict[str, Any]:
    return {
        "metadata": labeled("service", "chat") | {"generation": 1},
        "spec": {
            "serveConfigV2": "applications: [{name: chat, import_path: 'a:b'}]",
            "rayClusterConfig": cluster_config(),
        },
        "status": {"observedGeneration": 1, "activeServiceStatus": {"rayClusterName": "chat-abcde"}, **status},
    }


class Recorded:
    """Cluster with some objects, and their namespaces with the labels of their owners."""

    def __init__(self, **objects: list[dict[str, Any]]) -> None:
        paths = {"jobs": RAY_JOBS, "services": RAY_SERVICES, "clusters": RAY_CLUSTERS, "pods": PODS, "events": EVENTS}
        self._all = {paths[kind]: items for kind, items in objects.items()}
        self._namespaces = [
            {"metadata": {"name": namespace, "labels": item["metadata"].get("labels", {})}}
            for kind in ("jobs", "services")
            for item in objects.get(kind, [])
            if (namespace := item["metadata"]["namespace"])
        ]

    def list(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        if path == NAMESPACES:
            return self._namespaces, "1"
        for known, items in self._all.items():
            namespaces = {item["metadata"]["namespace"] for item in items}
            if path == known:
                return items, "1"
            for namespace in namespaces:
                if path == within(namespace, known):
                    return [item for item in items if _selected(item, namespace, query)], "1"
        return [], "1"


def _selected(item: dict[str, Any], namespace: str, query: dict[str, str]) -> bool:
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")
    return item["metadata"]["namespace"] == namespace and name in ("", item["metadata"]["name"])


def fleet(**objects: list[dict[str, Any]]) -> Fleet:
    pools = {"gpu": PoolSettings.model_validate({"machineType": "g2-standard-8", "nodes": 1})}
    contract = EnvironmentContract(name="prod", pools=pools, defaults=BerthShape(), demands=[], namespaces={})
    return observed(cast("ClusterApi", Recorded(**objects)), "prod", Environment("prod", contract, ""))


def test_a_job_that_runs_and_a_service_that_serves() -> None:
    serving = service(
        numServeEndpoints=3,
        conditions=[{"type": "Ready", "status": "True"}],
        activeServiceStatus={
            "rayClusterName": "chat-abcde",
            "applicationStatuses": {"chat": {"status": "RUNNING"}},
        },
    )
    clusters = [ray_cluster("job", "nightly"), ray_cluster("service", "chat")]
    seen = fleet(jobs=[job("Running", "RUNNING")], services=[serving], clusters=clusters)
    assert seen.ready
    assert (seen.berths, seen.clusters) == ([], []), "what KubeRay made is nobody's berth"
    content = seen.as_json()
    assert [(item["name"], item["rayJob"], item["state"], item["rayCluster"]) for item in content["jobs"]] == [
        ("nightly", "nightly-1a2b3c4d", "RUNNING", "nightly-abcde")
    ]
    (chat,) = content["services"]
    assert (chat["state"], chat["applicationsRunning"], chat["workersReady"], chat["gpus"]) == ("ready", 1, 2, 2)
    assert chat["address"] == "http://chat-serve-svc.berth-chat:8000"
    assert "chat-serve-svc.berth-chat:8000" in shown(seen)


def test_a_job_that_failed_says_why() -> None:
    seen = fleet(jobs=[job("Failed", "FAILED", reason="AppFailed", message="exit code 1", endTime=CREATED)])
    assert not seen.ready
    assert "nightly failed: AppFailed: exit code 1" in shown(seen)


def test_a_job_whose_cluster_waits_says_for_what() -> None:
    pod = {
        "metadata": {
            "name": "w",
            "namespace": "berth-nightly",
            "labels": {"ray.io/cluster": "nightly-abcde", "ray.io/node-type": "worker"},
        },
        "spec": {},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}],
        },
    }
    waits = [ray_cluster("job", "nightly", state="unknown")]
    api = Recorded(jobs=[job("Initializing", "")], clusters=waits, pods=[pod])
    api.list = lambda path, **query: ([pod], "1") if path.endswith("/pods") else Recorded.list(api, path, **query)  # type: ignore[method-assign]
    contract = EnvironmentContract(name="prod", pools={}, defaults=BerthShape(), demands=[], namespaces={})
    seen = observed(cast("ClusterApi", api), "prod", Environment("prod", contract, ""))
    assert (
        "nightly does not run: RayCluster nightly-abcde: worker pod cannot be scheduled: 0/3 nodes are available"
        in shown(seen)
    )


def test_a_service_whose_application_fails_says_why() -> None:
    failing = {"chat": {"status": "DEPLOY_FAILED", "message": "No module named 'a'"}}
    status = {"pendingServiceStatus": {"rayClusterName": "chat-abcde", "applicationStatuses": failing}}
    seen = fleet(services=[service(**status, activeServiceStatus={})], clusters=[ray_cluster("service", "chat")])
    (chat,) = seen.services
    assert (chat.state, chat.ready) == ("starting", False)
    assert "chat is not ready: application chat: DEPLOY_FAILED: No module named 'a'" in shown(seen)


def test_without_jobs_and_services_there_is_no_word_of_them() -> None:
    text = shown(fleet())
    assert "jobs" not in text
    assert "services" not in text
    assert table(fleet()) is not None


# berth preview


def of_job(own: bool = True) -> Inputs:  # noqa: FBT001, FBT002 - it reads better where it is used
    spec: dict[str, Any] = {"entrypoint": "x"}
    spec |= {"rayClusterSpec": cluster_config()} if own else {"clusterSelector": {"ray.io/cluster": "alice"}}
    return {"metadata": labeled("job", "nightly") | {"name": "nightly-1a2b3c4d"}, "spec": spec}


def of_service() -> Inputs:
    found = service()
    return {"metadata": found["metadata"], "spec": found["spec"]}


def changed(inputs: Inputs, **spec: Any) -> Inputs:
    new = copy.deepcopy(inputs)
    new["spec"] |= spec
    return new


def differing(*paths: str) -> dict[str, Any]:
    return {"detailedDiff": {path: {"diffKind": "update", "inputDiff": False} for path in paths}}


AGAIN = "job nightly runs again, as a new RayJob, since its content changed; "


def test_an_edited_job_runs_again_and_what_the_last_one_does_is_lost() -> None:
    old, new = of_job(), changed(of_job(), entrypoint="y")
    found = effects(event("replace", RAY_JOB, "nightly", old, new), live=[ray_cluster("job", "nightly")])
    assert texts_of(found) == [("destroys", AGAIN + "work of the previous run is lost")]
    assert who(found) == [["job nightly (3 pods, 2 GPUs)"]]


def test_of_a_job_that_has_ended_nothing_is_lost() -> None:
    """The RayCluster of the job is gone."""
    old, new = of_job(), changed(of_job(), entrypoint="y")
    assert texts_of(effects(event("replace", RAY_JOB, "nightly", old, new))) == [("harmless", AGAIN + "it has ended")]
    assert texts_of(effects(event("delete", RAY_JOB, "nightly", old, None))) == [
        ("harmless", "job nightly is deleted; it has ended")
    ]


def test_of_a_job_on_a_berth_nobody_can_tell() -> None:
    assert texts_of(effects(event("delete", RAY_JOB, "nightly", of_job(own=False), None))) == [
        ("destroys", "job nightly is deleted; if it still runs, its work is lost")
    ]


def test_what_submits_a_job_runs_nothing_again() -> None:
    old, new = of_job(own=False), changed(of_job(own=False), submitterPodTemplate={})
    assert texts_of(effects(event("update", RAY_JOB, "nightly", old, new))) == [
        ("harmless", "job nightly does not run again: only its submitter changes")
    ]


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        (
            {"rayClusterConfig": cluster_config(2)},
            "spec.rayClusterConfig.workerGroupSpecs",
            (
                "harmless",
                (
                    "service chat: KubeRay creates a second RayCluster, moves the Service to it when it "
                    "serves, and removes the first one"
                ),
            ),
        ),
        (
            {"serveConfigV2": "applications: []"},
            "spec.serveConfigV2",
            (
                "disturbs",
                "service chat: Ray Serve takes the new configuration in place; deployments that it changes restart",
            ),
        ),
    ],
)
def test_edits_of_a_service(spec: dict[str, Any], path: str, expected: tuple[str, str]) -> None:
    old, new = of_service(), changed(of_service(), **spec)
    found = effects(
        event("update", RAY_SERVICE, "chat", old, new, **differing(path)), live=[ray_cluster("service", "chat")]
    )
    assert texts_of(found) == [expected]


def test_an_edit_of_cluster_and_configuration_disturbs_nobody() -> None:
    """An edit of the code: the new configuration goes to the second cluster alone."""
    old = of_service()
    new = changed(old, rayClusterConfig=cluster_config(2), serveConfigV2="applications: []")
    paths = differing("spec.rayClusterConfig.workerGroupSpecs", "spec.serveConfigV2")
    found = effects(event("update", RAY_SERVICE, "chat", old, new, **paths), live=[ray_cluster("service", "chat")])
    ((level, text),) = texts_of(found)
    assert (level, "creates a second RayCluster" in text) == ("harmless", True)


@pytest.mark.parametrize("operation", ["replace", "delete"])
def test_a_service_that_goes_answers_nobody(operation: str) -> None:
    old = of_service()
    found = effects(
        event(operation, RAY_SERVICE, "chat", old, None if operation == "delete" else old),
        live=[ray_cluster("service", "chat")],
    )
    ((level, text),) = texts_of(found)
    assert level == "destroys"
    assert "answers no requests" in text or "no longer answers requests" in text
    assert who(found) == [["service chat (3 pods, 2 GPUs)"]]
