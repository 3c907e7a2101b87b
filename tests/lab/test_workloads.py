"""RayJobs and RayServices of an environment, by the real operator and Rays of this machine. Long:
each of the three starts a Ray. tests/real has the same in containers, up to a service that never
serves.
"""

import json
from typing import Any

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import HEAD, Project, Settings, environment_settings, eventually
from tests.unit.components.ray.test_kuberay_words import KEYS

pytestmark = [pytest.mark.lab, pytest.mark.long]

RAY_JOB = "kubernetes:ray.io/v1:RayJob"
RAY_SERVICE = "kubernetes:ray.io/v1:RayService"
STACK = "work"
COUNT = """python -c 'import ray; ray.init(); print(ray.cluster_resources()["CPU"])'"""
CHAT = """
from ray import serve


@serve.deployment
class Chat:
    def __call__(self) -> str:
        return "hello"


app = Chat.bind()
"""
NAMESPACES = ("berth-bob", "berth-nightly", "berth-chat")


def test_hints_know_all_keys_of_kuberays_definitions(lab: Lab) -> None:
    crds = lab.home.charts / "kuberay-operator" / "crds"
    specs: dict[str, Any] = {}
    for kind in ("RayCluster", "RayJob", "RayService"):
        definition = yaml.safe_load((crds / f"ray.io_{kind.lower()}s.yaml").read_text())
        (version,) = [item for item in definition["spec"]["versions"] if item["name"] == "v1"]
        specs[kind] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for part, known in KEYS.items():
        kind, _, key = part.partition(".")
        spec = specs[kind]["properties"][key] if key else specs[kind]
        assert spec.get("items", spec)["properties"].keys() <= set(known), part


def environment(lab: Lab) -> Settings:
    return environment_settings(
        lab,
        {
            "cpu": {"machineType": "n2-standard-16", "nodes": 2},
            "gpu": {"machineType": "g2-standard-8", "nodes": 3},
        },
        defaults={"head": HEAD, "wait": {"timeout": "10m"}},
        engineers={"bob": {"workers": 0, "access": {"users": ["bob@example.com"]}}},
        jobs={
            "look": {
                "cluster": "bob",
                "entrypoint": COUNT,
                "wait": {"until": "succeeded", "timeout": "10m"},
            },
            "nightly": {
                "entrypoint": COUNT,
                "runtimeEnv": {"env_vars": {"LEVEL": "1"}},
                "submissionMode": "HTTPMode",
                "workers": 1,
                "wait": {"until": "succeeded", "timeout": "10m"},
                "shutdownAfterJobFinishes": False,
            },
        },
        services={
            "chat": {
                "serveConfig": {"applications": [{"name": "chat", "import_path": "chat:app"}]},
                "code": "apps/chat",
                "workers": {"min": 1, "max": 1},
                "clients": ["gateway"],
                "upgradeStrategy": "Recreate",
                "wait": {"timeout": "10m"},
            }
        },
    )


@pytest.fixture(scope="module")
def work(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project.make(tmp_path_factory.mktemp("work") / "project", lab)
    (project.folder / "apps/chat").mkdir(parents=True)
    (project.folder / "apps/chat/chat.py").write_text(CHAT)
    project.write(STACK, environment=environment(lab))
    project.up(STACK)
    return project


def clusters(work: Project, namespace: str) -> dict[str, str]:
    """State of each RayCluster of a namespace that is not going away, by its name."""
    found = work.get("rayclusters", "-n", namespace)
    alive = [item for item in found if "deletionTimestamp" not in item["metadata"]]
    return {item["metadata"]["name"]: item.get("status", {}).get("state", "") for item in alive}


def job_names(work: Project, namespace: str) -> list[str]:
    return [job["metadata"]["name"] for job in work.get("rayjobs", "-n", namespace)]


def submitters(work: Project, namespace: str) -> list[dict[str, Any]]:
    pods = work.get("pods", "-n", namespace, "-l", "batch.kubernetes.io/job-name")
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def has_cluster(work: Project, namespace: str) -> None:
    eventually(
        lambda: list(clusters(work, namespace).values()) == ["ready"],
        f"one RayCluster in {namespace}, ready",
    )


def test_kuberay_creates_clusters_and_services_of_jobs_and_services(work: Project) -> None:
    for namespace in ("berth-nightly", "berth-chat"):
        has_cluster(work, namespace)
    assert submitters(work, "berth-nightly") == [], "KubeRay submits it"
    (pod,) = submitters(work, "berth-bob")
    assert pod["spec"]["nodeSelector"] == {"cloud.google.com/gke-nodepool": "cpu"}
    log = work.run("kubectl", "logs", "-n", "berth-bob", pod["metadata"]["name"]).stdout
    assert "Running entrypoint" in log
    assert "1.0" in log.splitlines(), "bob's head has one CPU"
    labels = {
        item["metadata"]["name"]: item["metadata"]["labels"] for item in work.get("namespaces")
    }
    assert {labels[name]["pod-security.kubernetes.io/enforce"] for name in NAMESPACES} == {
        "restricted"
    }
    services = [
        service
        for service in work.get("services", "-A")
        if service["metadata"]["namespace"] in NAMESPACES
    ]
    assert {service["spec"]["type"] for service in services} == {"ClusterIP"}
    for head in work.get("pods", "-n", "berth-chat", "-l", "ray.io/node-type=head"):
        assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in head["spec"]["containers"][0][
            "env"
        ]
    assert len(clusters(work, "berth-bob")) == 1, "bob's own, which the job runs on"


def test_a_second_up_and_a_refresh_change_nothing(work: Project) -> None:
    """An update and a refresh see no change, though KubeRay writes finalizers."""
    work.up(STACK, "--refresh", "--expect-no-changes")
    assert {job["metadata"]["generation"] for job in work.get("rayjobs,rayservices", "-A")} == {1}


def test_status_has_jobs_and_services(work: Project) -> None:
    report = json.loads(work.run("berth", "status", "-s", STACK, "--json", check=False).stdout)
    assert {(job["name"], job["namespace"]) for job in report["jobs"]} == {
        ("look", "berth-bob"),
        ("nightly", "berth-nightly"),
    }
    (chat,) = report["services"]
    assert (chat["state"], chat["applications"], chat["applicationsRunning"]) == ("ready", 1, 1)
    assert (chat["workersReady"], chat["gpus"]) == (1, 1)
    assert chat["serving"]
    assert {job["state"] for job in report["jobs"]} == {"SUCCEEDED"}
    for workload in (*report["jobs"], chat):
        assert workload["reasons"] == [], workload["name"]
    assert [berth["name"] for berth in report["berths"]] == ["bob"]


def test_an_edited_job_is_replaced_and_a_service_with_that_setting(work: Project, lab: Lab) -> None:
    job, (service,) = job_names(work, "berth-nightly"), work.get("rayservices", "-n", "berth-chat")
    edited = environment(lab)
    edited["jobs"]["nightly"]["entrypoint"] += " --again"
    edited["services"]["chat"]["env"] = {"A": "b"}
    work.write(STACK, environment=edited)
    plan = json.loads(work.run("berth", "preview", "-s", STACK, "--json", check=False).stdout)
    changes = {change["name"]: change for change in plan["changes"] if ":Ray" in change["type"]}
    assert {name: (change["type"], change["operation"]) for name, change in changes.items()} == {
        "nightly": (RAY_JOB, "replace"),
        "chat": (RAY_SERVICE, "replace"),
    }
    assert "job nightly runs again, as a new RayJob" in json.dumps(changes["nightly"]["effects"])
    work.up(STACK)
    again = job_names(work, "berth-nightly")
    assert len(again) == 1
    assert again != job
    (other,) = work.get("rayservices", "-n", "berth-chat")
    assert other["metadata"]["uid"] != service["metadata"]["uid"]
    for namespace in ("berth-nightly", "berth-chat"):
        has_cluster(work, namespace)


def test_a_job_that_fails_fails_its_own_update_alone(work: Project, lab: Lab) -> None:
    edited = environment(lab)
    edited["jobs"]["look"] |= {"entrypoint": "exit 3", "submissionMode": "HTTPMode"}
    work.write(STACK, environment=edited)
    failed = work.up(STACK, check=False)
    assert failed.returncode
    way = "a job runs once: to run it again, edit it, for example jobs.look.runtimeEnv: "
    assert way in failed.stdout
    again = work.up(STACK)
    assert "of an earlier update failed: " in again.stdout
    assert way in again.stdout


def test_nothing_is_left(work: Project) -> None:
    work.destroy(STACK)
    assert work.get("rayjobs,rayservices,rayclusters", "-A") == []
    assert [
        namespace
        for namespace in work.get("namespaces")
        if namespace["metadata"]["name"].startswith("berth-")
    ] == []
