"""RayJobs and RayServices: their manifests, and what is registered for them."""

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from berth.components.berth import Berth, BerthInputs
from berth.components.core.types import canonical_quantity
from berth.components.isolation import harden
from berth.components.ray.jobs import ray_job
from berth.components.ray.kuberay_form import as_kuberay_writes_it
from berth.components.ray.manifest import ray_cluster
from berth.components.ray.service_settings import RayServiceSettings
from berth.components.ray.services import CLUSTER_CONFIG, ray_service, with_fingerprint
from berth.stacks.load.stack import Environment
from berth.stacks.program.awaited import awaited_of
from berth.stacks.program.environment import register_environment
from berth.stacks.settings.resolved import Resolved
from tests.unit.cases import table
from tests.unit.loaded import environment_of
from tests.unit.recording import Recorder, Registration, options_of, run

RAY_JOB = "kubernetes:ray.io/v1:RayJob"
RAY_SERVICE = "kubernetes:ray.io/v1:RayService"
QUOTA = "kubernetes:core/v1:ResourceQuota"

NIGHTLY: dict[str, Any] = {"entrypoint": "python -m nightly", "workers": 2}
CHAT: dict[str, Any] = {
    "serveConfig": {"applications": [{"name": "chat", "import_path": "chat:app"}]}
}


def values(**parts: Any) -> dict[str, Any]:
    pools = {
        "cpu": {"machineType": "n2-standard-16", "nodes": 2},
        "gpu": {"machineType": "g2-standard-8", "nodes": {"min": 0, "max": 4}},
    }
    return {"project": "berth-lab", "zone": "us-central1-b", "pools": pools, **parts}


def loaded(**parts: Any) -> Environment:
    return environment_of("test", values(**parts))


def resolved(**parts: Any) -> Resolved:
    return loaded(**parts).resolved


def job_manifest(shape: dict[str, Any], **parts: Any) -> dict[str, Any]:
    found = resolved(jobs={"nightly": shape}, **parts)
    (job,) = found.jobs
    owner = {"berth/job": "nightly"} if job.own_cluster else {"berth/engineer": job.cluster.name}
    cluster = ray_cluster(job.cluster, found.pools, f"berth-{job.cluster.name}", owner)
    created = harden(
        ray_job(job, cluster, {"berth/job": "nightly"}), "restricted", job.cluster.priority
    )
    return as_kuberay_writes_it(created)


def service_manifest(shape: dict[str, Any]) -> dict[str, Any]:
    found = resolved(services={"chat": shape})
    (service,) = found.services
    cluster = ray_cluster(service.cluster, found.pools, "berth-chat", {"berth/service": "chat"})
    created = harden(ray_service(service, cluster), "restricted", service.cluster.priority)
    return as_kuberay_writes_it(with_fingerprint(created))


def name_of(shape: dict[str, Any], **parts: Any) -> str:
    return str(job_manifest(shape, **parts)["metadata"]["name"])


def test_a_job_with_a_cluster_of_its_own(golden: Callable[[str, Any], None]) -> None:
    shape = {
        "runtimeEnv": {"pip": ["emoji==2.14.1"], "env_vars": {"LEVEL": "1"}},
        "workers": {"min": 0, "max": 2},
        "entrypointNumCpus": 1,
        "entrypointNumGpus": 0.5,
        "backoffLimit": 2,
        "activeDeadline": "2h",
        "ttlAfterFinished": "10m",
    }
    golden("ray/job-with-a-cluster-of-its-own", job_manifest(NIGHTLY | shape))


def test_a_job_on_a_berth(golden: Callable[[str, Any], None]) -> None:
    shape = {"entrypoint": "python -m look", "cluster": "alice"}
    golden(
        "ray/job-on-a-berth", job_manifest(shape, engineers={"alice": {"worker": {"pool": "gpu"}}})
    )


def test_a_service_that_autoscales(golden: Callable[[str, Any], None]) -> None:
    golden(
        "ray/service-that-autoscales", service_manifest(CHAT | {"workers": {"min": 1, "max": 2}})
    )


def test_what_kuberay_writes_again_is_in_its_own_words() -> None:
    """Else it is KubeRay's from then on: a change to a refresh, and a conflict to the next edit
    (seen of v1.6.2).
    """
    shape = CHAT | {
        "worker": {"pool": "cpu", "gpus": 0, "cpu": 0.5, "memory": "2048Mi"},
        "env": {"EMPTY": "", "FULL": "x"},
    }
    (group,) = service_manifest(shape)["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    pod = group["template"]["spec"]
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "2Gi"}
    assert pod["containers"][0]["env"][:2] == [{"name": "EMPTY"}, {"name": "FULL", "value": "x"}]
    assert "tolerations" not in pod, "an empty list"
    assert (group["scaleStrategy"], group["rayStartParams"]) == ({}, {})
    job = job_manifest(NIGHTLY | {"shutdownAfterJobFinishes": False})["spec"]
    assert "shutdownAfterJobFinishes" not in job
    assert job["backoffLimit"] == 0


@pytest.mark.parametrize(("text", "written"), table(__file__, "workloads.yaml"))
def test_a_quantity_in_the_words_of_the_api(text: str, written: str) -> None:
    assert canonical_quantity(text) == written


def test_by_http_nothing_submits_it_but_kuberay() -> None:
    spec = job_manifest(NIGHTLY | {"submissionMode": "HTTPMode"})["spec"]
    assert spec["submissionMode"] == "HTTPMode"
    assert "submitterPodTemplate" not in spec


EDITS: dict[str, dict[str, Any]] = {
    "entrypoint": {"entrypoint": "python -m other"},
    "runtimeEnv": {"runtimeEnv": {"pip": ["emoji"]}},
    "entrypointNumCpus": {"entrypointNumCpus": 2},
    "workers": {"workers": 1},
    "image": {"image": "example.com/team/ray:2.60.0"},
    "env": {"env": {"A": "b"}},
    "backoffLimit": {"backoffLimit": 1},
    "activeDeadline": {"activeDeadline": "1h"},
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_another_job(edit: str) -> None:
    assert name_of(NIGHTLY | EDITS[edit]) != name_of(NIGHTLY)


def test_what_is_waited_for_is_no_part_of_it() -> None:
    assert name_of(NIGHTLY | {"wait": {"until": "succeeded", "timeout": "1h"}}) == name_of(NIGHTLY)


def test_an_edit_of_the_cluster_that_it_runs_on_runs_it_no_second_time() -> None:
    shape = {"entrypoint": "python -m look", "cluster": "alice"}
    before = job_manifest(shape, engineers={"alice": {}})
    after = job_manifest(shape, engineers={"alice": {"image": "example.com/team/ray:2.60.0"}})
    assert before["metadata"]["name"] == after["metadata"]["name"]
    assert before["spec"]["submitterPodTemplate"] != after["spec"]["submitterPodTemplate"], (
        "its image is the head's"
    )


@pytest.mark.parametrize(
    "edit", [{"workers": 2}, {"workers": {"min": 0, "max": 2}}, {"image": "example.com/ray:2.60.0"}]
)
def test_every_edit_of_a_services_cluster_is_with_fingerprint(edit: dict[str, Any]) -> None:
    def mark(shape: dict[str, Any]) -> str:
        head = service_manifest(shape)["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]
        return str(head["metadata"]["annotations"][CLUSTER_CONFIG])

    assert mark(CHAT) == mark(
        CHAT | {"serveConfig": {"applications": [{"import_path": "other:app"}]}}
    ), "it stays"
    assert mark(CHAT | edit) != mark(CHAT)


def test_a_services_head_takes_no_replicas_unless_there_is_nothing_else() -> None:
    def parameters(shape: dict[str, Any]) -> dict[str, str]:
        head = service_manifest(shape)["spec"]["rayClusterConfig"]["headGroupSpec"]
        return dict(head["rayStartParams"])

    assert parameters(CHAT)["num-cpus"] == "0"
    assert "num-cpus" not in parameters(CHAT | {"workers": 0})


def inputs(found: Resolved) -> BerthInputs:
    """Return the inputs of the first job with a cluster of its own, or of the first service."""
    workload = next(
        workload for workload in found.workloads() if workload.kind in {"job", "service"}
    )
    return BerthInputs(workload, found.pools, environment="test", stack="test")


def registered(found: Resolved) -> Recorder:
    """Return the registration of the one job or service."""
    created = inputs(found)

    async def program() -> None:
        Berth(created.settings.name, created)

    return run(program, "test")


def quota(found: Resolved) -> dict[str, str]:
    (quota,) = [
        item
        for item in registered(found).of_type(QUOTA)
        if item.inputs["metadata"]["name"] == "berth"
    ]
    return dict(quota.inputs["spec"]["hard"])


def test_the_quota_has_room_for_the_second_cluster_of_an_upgrade() -> None:
    shape = CHAT | {"workers": {"min": 0, "max": 2}}
    both, one = (
        quota(resolved(services={"chat": shape | item}))
        for item in ({}, {"upgradeStrategy": "Recreate"})
    )
    assert (both["requests.nvidia.com/gpu"], one["requests.nvidia.com/gpu"]) == ("4", "2")
    assert (both["services.loadbalancers"], both["services.nodeports"]) == ("0", "0")


def policies(shape: dict[str, Any]) -> dict[str, Registration]:
    recorder = registered(resolved(services={"chat": CHAT | shape}))
    found = recorder.of_type("kubernetes:networking.k8s.io/v1:NetworkPolicy")
    return {item.inputs["metadata"]["name"]: item for item in found}


def test_requests_come_from_where_the_settings_say_and_from_nowhere_else() -> None:
    unasked, asked = (
        policies(shape)["pods"].inputs["spec"] for shape in ({}, {"clients": ["gateway"]})
    )
    assert unasked["podSelector"] == {}
    assert [rule for rule in asked["ingress"] if rule not in unasked["ingress"]] == [
        {
            "from": [
                {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateway"}}}
            ],
            "ports": [{"protocol": "TCP", "port": 8000}],
        }
    ]
    assert asked | {"ingress": unasked["ingress"]} == unasked


def test_people_of_a_service_read_no_secret_whose_name_nobody_knows() -> None:
    recorder = registered(
        resolved(services={"chat": CHAT | {"access": {"users": ["bob@example.com"]}}})
    )
    (role,) = recorder.of_type("kubernetes:rbac.authorization.k8s.io/v1:Role")
    assert [rule for rule in role.inputs["rules"] if "secrets" in rule["resources"]] == []


BOTH: dict[str, Any] = {
    "engineers": {"alice": {"worker": {"pool": "gpu"}, "wait": {"timeout": "3m"}}},
    "jobs": {
        "look": {"entrypoint": "python -m look", "cluster": "alice"},
        "nightly": NIGHTLY | {"wait": {"until": "succeeded", "timeout": "2h"}},
        "later": NIGHTLY | {"wait": {"until": "submitted"}},
    },
    "services": {"chat": CHAT},
}


def test_an_environment_registers_jobs_and_services() -> None:
    recorder = run(lambda: register_environment(loaded(**BOTH)), "test")
    jobs = {item.name: item.inputs["metadata"] for item in recorder.of_type(RAY_JOB)}
    assert {name: item["namespace"] for name, item in jobs.items()} == {
        "look": "berth-alice",
        "nightly": "berth-nightly",
        "later": "berth-later",
    }
    assert all(metadata["name"].startswith(f"{name}-") for name, metadata in jobs.items())
    (service,) = recorder.of_type(RAY_SERVICE)
    metadata = service.inputs["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("chat", "berth-chat")
    assert metadata["labels"]["berth/service"] == "chat"
    levels = {
        item.name: item.inputs["metadata"]["labels"].get("pod-security.kubernetes.io/enforce")
        for item in recorder.of_type("kubernetes:core/v1:Namespace")
    }
    assert {levels[name] for name in ("alice", "nightly", "later", "chat")} == {"restricted"}


def test_a_job_on_a_berth_has_room_in_its_quota() -> None:
    def memory(**parts: Any) -> str:
        recorder = run(lambda: register_environment(loaded(**parts)), "test")
        (found,) = [item for item in recorder.of_type(QUOTA) if item.name == "alice-berth"]
        return str(found.inputs["spec"]["hard"]["limits.memory"])

    without = memory(engineers=BOTH["engineers"])
    assert int(memory(**BOTH).removesuffix("Mi")) - int(without.removesuffix("Mi")) == 1024


def test_each_is_waited_for_as_its_settings_say() -> None:
    awaited = [
        (found.kind, found.until, found.key[0], found.timeout)
        for inputs in loaded(**BOTH).berths
        for found in awaited_of(inputs)
    ]
    assert sorted(awaited) == [
        ("RayCluster", "ready", "berth-alice", "3m"),
        ("RayJob", "running", "berth-alice", "3m"),
        ("RayJob", "succeeded", "berth-nightly", "2h"),
        ("RayService", "ready", "berth-chat", "10m"),
    ]


def options(found: Resolved) -> dict[str, pulumi.ResourceOptions]:
    """Options of each registered resource by type."""
    created = inputs(found)
    return options_of(lambda given: Berth(created.settings.name, created, given), "test")


def test_the_next_job_is_made_when_the_last_one_is_gone() -> None:
    """The next job would wait in vain for the quota and the GPUs of the last one: Pulumi deletes
    that after the program has ended.
    """
    assert options(resolved(jobs={"nightly": NIGHTLY}))[RAY_JOB].delete_before_replace is True


@pytest.mark.parametrize(
    ("strategy", "anew"), [("NewCluster", []), ("Recreate", ["spec.rayClusterConfig"])]
)
def test_only_where_it_is_asked_for_a_service_is_made_anew(strategy: str, anew: list[str]) -> None:
    found = resolved(services={"chat": CHAT | {"upgradeStrategy": strategy}})
    assert options(found)[RAY_SERVICE].replace_on_changes == anew
    (service,) = registered(found).of_type(RAY_SERVICE)
    assert service.inputs["spec"]["upgradeStrategy"] == {"type": "None" if anew else "NewCluster"}


def test_neither_takes_what_only_berths_have_from_the_defaults() -> None:
    defaults = {"dashboard": "internal", "lifecycle": {"idle": "1h"}}
    found = resolved(defaults=defaults, jobs={"nightly": NIGHTLY}, services={"chat": CHAT})
    for cluster in (found.jobs[0].cluster, found.services[0].cluster):
        assert (cluster.dashboard, cluster.lifecycle.any) == ("private", False)


def test_a_job_that_has_ended_takes_no_room_from_others() -> None:
    shapes = {f"job-{number}": NIGHTLY | {"workers": 4} for number in range(3)}
    found = resolved(
        jobs=shapes, services={"chat": CHAT | {"upgradeStrategy": "Recreate", "workers": 4}}
    )
    assert found.problems == []
    assert {demand.owner for demand in found.demands} == {"chat"}
    assert loaded(jobs=shapes).contract().namespaces["berth-job-0"] == "jobs.job-0"


def test_a_pool_without_room_for_a_second_cluster_is_warned_of() -> None:
    (warning,) = resolved(services={"chat": CHAT | {"workers": 3}}).warnings
    assert (
        f"{warning.where}: {warning.message}"
        == "environment.services.chat.upgradeStrategy: an edit of the cluster makes a second one"
        " beside it, and its 3 GPUs find no room: pool 'gpu' has 4 GPUs (4 × g2-standard-8 with"
        " 1), so the edit waits until more are there; add nodes, or write `upgradeStrategy:"
        " Recreate`, which interrupts the service"
    )
    assert resolved(services={"chat": CHAT | {"workers": 2}}).warnings == []


def test_a_services_settings_are_complete_by_themselves() -> None:
    (found,) = resolved(services={"chat": CHAT}).services
    assert isinstance(found, RayServiceSettings)
    assert [(group.gpus, group.cpu) for group in found.cluster.groups] == [(1, "7")], (
        "a worker takes a whole node"
    )
    assert found.cluster.priority == "berth-production"
