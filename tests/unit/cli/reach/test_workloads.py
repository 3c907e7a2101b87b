"""Jobs and services in `berth status`."""

from typing import Any

from berth.cli.reach.environment import LiveEnvironment
from berth.cli.reach.fleet import fleet_from
from berth.cli.reach.fleet_tables import fleet_tables
from berth.components.cluster.api import NAMESPACES, PODS, RAY_CLUSTERS, RAY_JOBS, RAY_SERVICES
from berth.components.gke import PoolSettings
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray.live.fleet import Fleet
from berth.components.ray.settings import BerthShape
from berth.stacks.settings.contract import EnvironmentContract
from tests.unit.cli.reach.test_fleet import shown
from tests.unit.recorded_cluster import RecordedCluster

CREATED = "2026-01-31T12:00:00Z"


def labeled(kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    labels = {f"berth/{kind}": name, "berth/stack": "prod", "berth/environment": "prod"}
    return {
        "name": name,
        "namespace": namespace or f"berth-{name}",
        "labels": labels,
        "creationTimestamp": CREATED,
    }


def cluster_config(gpus: int = 1) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": gpus}
    pod = {"nodeSelector": {POOL_LABEL: "gpu"}, "containers": [{"resources": {"limits": limits}}]}
    head = {"template": {"spec": {"nodeSelector": {POOL_LABEL: "cpu"}, "containers": []}}}
    return {
        "headGroupSpec": head,
        "workerGroupSpecs": [
            {"replicas": 2, "minReplicas": 2, "maxReplicas": 2, "template": {"spec": pod}}
        ],
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
    known = {
        "jobDeploymentStatus": deployment,
        "jobStatus": state,
        "rayClusterName": "nightly-abcde",
    }
    return {
        "metadata": metadata,
        "spec": {"rayClusterSpec": cluster_config()},
        "status": known | status,
    }


def service(**status: Any) -> dict[str, Any]:
    return {
        "metadata": labeled("service", "chat") | {"generation": 1},
        "spec": {
            "serveConfigV2": "applications: [{name: chat, import_path: 'a:b'}]",
            "rayClusterConfig": cluster_config(),
        },
        "status": {
            "observedGeneration": 1,
            "activeServiceStatus": {"rayClusterName": "chat-abcde"},
            **status,
        },
    }


def observed_in(pools: dict[str, PoolSettings], **objects: list[dict[str, Any]]) -> Fleet:
    """Fleet of a cluster with these objects, and with namespaces of their owners' labels."""
    paths = {"jobs": RAY_JOBS, "services": RAY_SERVICES, "clusters": RAY_CLUSTERS, "pods": PODS}
    namespaces = [
        {"metadata": {"name": item["metadata"]["namespace"], "labels": item["metadata"]["labels"]}}
        for kind in ("jobs", "services")
        for item in objects.get(kind, [])
    ]
    cluster = RecordedCluster(
        {NAMESPACES: namespaces, **{paths[kind]: items for kind, items in objects.items()}}
    )
    contract = EnvironmentContract(
        name="prod", pools=pools, defaults=BerthShape(), demands=[], namespaces={}
    )
    return fleet_from(cluster, "prod", LiveEnvironment("prod", contract, ""))


def fleet(**objects: list[dict[str, Any]]) -> Fleet:
    return observed_in(
        {"gpu": PoolSettings.model_validate({"machineType": "g2-standard-8", "nodes": 1})},
        **objects,
    )


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
    assert [
        (item["name"], item["rayJob"], item["state"], item["rayCluster"])
        for item in content["jobs"]
    ] == [("nightly", "nightly-1a2b3c4d", "RUNNING", "nightly-abcde")]
    (chat,) = content["services"]
    assert (chat["state"], chat["applicationsRunning"], chat["workersReady"], chat["gpus"]) == (
        "ready",
        1,
        2,
        2,
    )
    assert chat["address"] == "http://chat-serve-svc.berth-chat:8000"
    assert "chat-serve-svc.berth-chat:8000" in shown(seen)


def test_a_job_that_failed_says_why() -> None:
    seen = fleet(
        jobs=[job("Failed", "FAILED", reason="AppFailed", message="exit code 1", endTime=CREATED)]
    )
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
            "conditions": [
                {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
            ],
        },
    }
    waits = [ray_cluster("job", "nightly", state="unknown")]
    seen = observed_in({}, jobs=[job("Initializing", "")], clusters=waits, pods=[pod])
    assert (
        "nightly does not run: RayCluster nightly-abcde: worker pod cannot be scheduled: 0/3 nodes"
        " are available" in shown(seen)
    )


def test_a_service_whose_application_fails_says_why() -> None:
    failing = {"chat": {"status": "DEPLOY_FAILED", "message": "No module named 'a'"}}
    status = {
        "pendingServiceStatus": {"rayClusterName": "chat-abcde", "applicationStatuses": failing}
    }
    seen = fleet(
        services=[service(**status, activeServiceStatus={})],
        clusters=[ray_cluster("service", "chat")],
    )
    (chat,) = seen.services
    assert (chat.state, chat.ready) == ("starting", False)
    assert "chat is not ready: application chat: DEPLOY_FAILED: No module named 'a'" in shown(seen)


def test_without_jobs_and_services_there_is_no_word_of_them() -> None:
    text = shown(fleet())
    assert "jobs" not in text
    assert "services" not in text
    assert fleet_tables(fleet()) is not None
