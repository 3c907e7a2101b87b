"""Real operator and real Ray: jobs in both modes, tokens, services, the autoscaler, suspension."""

import json
import re
from typing import Any

import pytest

from berth.components.hardware.versions import RAY_IMAGE
from berth.components.isolation.pod_security import with_restricted_contexts
from berth.components.isolation.priority import DEVELOPMENT
from tests.real.conftest import POOL, Object, RealNode, berth, eventually

pytestmark = [pytest.mark.real, pytest.mark.long]

LOOK = """
import ray, time
ray.init()
@ray.remote(num_cpus=1, scheduling_strategy="SPREAD", num_gpus=1)
def where():
    time.sleep(1)
    return ray.util.get_node_ip_address()
for address in sorted(set(ray.get([where.remote() for _ in range(2)]))):
    print("worker at", address)
"""


def worker_addresses(real: RealNode, owner: str) -> set[str]:
    return {pod["status"]["podIP"] for pod in real.project.workers(owner)}


def ray_job(name: str, owner: str, mode: str) -> Object:
    job: Object = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "namespace": f"berth-{owner}"},
        "spec": {
            "submissionMode": mode,
            "clusterSelector": {"ray.io/cluster": owner},
            "entrypoint": f"python -c '{LOOK}'",
        },
    }
    if mode == "K8sJobMode":
        container = {
            "name": "submitter",
            "image": RAY_IMAGE,
            "resources": {
                "limits": {"cpu": "1", "memory": "1Gi"},
                "requests": {"cpu": "100m", "memory": "256Mi"},
            },
        }
        job["spec"]["submitterPodTemplate"] = {"spec": on_the_node(container)}
    return job


def on_the_node(container: Object, **spec: Any) -> Object:
    """A pod as a berth admits it: docs/isolation.md."""
    return with_restricted_contexts(
        {
            "restartPolicy": "Never",
            "priorityClassName": DEVELOPMENT,
            "nodeSelector": {"cloud.google.com/gke-nodepool": POOL},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "containers": [container],
            **spec,
        }
    )


def status(real: RealNode, kind: str, namespace: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = real.lab.get(kind, name, "-n", namespace)
    return dict(found.get("status") or {})


@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode"])
def test_a_ray_job_runs_on_each_worker(real: RealNode, alice: str, mode: str) -> None:
    name = f"look-{mode.lower()}"
    real.apply(ray_job(name, alice, mode))

    def ended() -> bool:
        return status(real, "rayjob", f"berth-{alice}", name).get("jobStatus") in {
            "SUCCEEDED",
            "FAILED",
            "STOPPED",
        }

    eventually(ended, "the job has ended")
    report = status(real, "rayjob", f"berth-{alice}", name)
    assert report["jobStatus"] == "SUCCEEDED", report
    log = real.on_head(
        alice, "ray", "job", "logs", "--address=http://127.0.0.1:8265", report["jobId"]
    ).stdout
    assert set(re.findall(r"worker at (\S+)", log)) == worker_addresses(real, alice)


def test_the_dashboard_requires_the_token(real: RealNode, alice: str) -> None:
    ask = [
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "http://127.0.0.1:8265/api/version",
    ]
    assert real.on_head(alice, *ask).stdout in {"401", "403"}
    with_token = " ".join(ask[:-1]).replace("%{", "'%{").replace("code}", "code}'")
    output = real.on_head(
        alice, "sh", "-c", f'{with_token} -H "Authorization: Bearer $RAY_AUTH_TOKEN" {ask[-1]}'
    ).stdout
    assert output == "200"


def test_torch_works_on_the_cpu(real: RealNode, alice: str) -> None:
    output = real.on_head(
        alice, "python", "-c", "import torch; print(int((torch.ones(2) + 1).sum()))"
    ).stdout
    assert output.split() == ["4"]


APP = """
from ray import serve

@serve.deployment(ray_actor_options={"num_cpus": 0.1})
class Greeter:
    def __call__(self, request):
        return "served"

app = Greeter.bind()
"""


def test_a_ray_service_serves(real: RealNode, alice: str) -> None:
    namespace = f"berth-{alice}"
    code = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "app", "namespace": namespace},
        "data": {"greeter.py": APP},
    }
    container = {
        "name": "ray-head",
        "image": RAY_IMAGE,
        "env": [{"name": "PYTHONPATH", "value": "/app"}],
        "volumeMounts": [{"name": "app", "mountPath": "/app"}],
        "resources": {
            "limits": {"cpu": "1", "memory": "3Gi"},
            "requests": {"cpu": "1", "memory": "3Gi"},
        },
    }
    spec = on_the_node(container, volumes=[{"name": "app", "configMap": {"name": "app"}}])
    del spec["restartPolicy"]
    service = {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": "greet", "namespace": namespace},
        "spec": {
            "serveConfigV2": json.dumps(
                {
                    "proxy_location": "HeadOnly",
                    "applications": [
                        {"name": "greet", "import_path": "greeter:app", "route_prefix": "/"}
                    ],
                }
            ),
            "rayClusterConfig": {
                "rayVersion": "2.60.0",
                "authOptions": {"mode": "token"},
                "headGroupSpec": {
                    "rayStartParams": {"dashboard-host": "0.0.0.0"},  # noqa: S104 (in the pod)
                    "template": {"spec": spec},
                },
            },
        },
    }
    real.apply(code, service)

    def running() -> bool:
        report = status(real, "rayservice", namespace, "greet")
        conditions = {
            condition["type"]: condition["status"] for condition in report.get("conditions") or []
        }
        return conditions.get("Ready") == "True"

    eventually(running, "the service is ready")
    asked = ["curl", "-sS", "--retry", "20", "--retry-all-errors", "--max-time", "5"]
    answer = real.on_head(
        alice, *asked, f"http://greet-serve-svc.{namespace}.svc.cluster.local:8000/"
    ).stdout
    assert answer == "served"
    real.lab.run(["kubectl", "delete", "rayservice", "greet", "-n", namespace])


def test_the_autoscaler_brings_workers_for_tasks_and_takes_them_away(real: RealNode) -> None:
    real.project.write("bob", engineer=berth(workers={"min": 0, "max": 2}))
    real.project.up("bob")
    assert real.project.workers("bob") == []
    job = ["ray", "job", "submit", "--address=http://127.0.0.1:8265", "--", "python", "-c", LOOK]
    output = real.on_head("bob", *job).stdout
    assert re.search(r"worker at \S+", output)
    eventually(lambda: real.project.workers("bob") == [], "idle workers are gone")
    real.project.destroy("bob")


def test_suspend_and_resume(real: RealNode, alice: str) -> None:
    namespace = f"berth-{alice}"

    def suspend(*, value: bool) -> None:
        patch = json.dumps({"spec": {"suspend": value}})
        real.lab.run(
            ["kubectl", "patch", "raycluster", alice, "-n", namespace, "--type=merge", "-p", patch]
        )

    def state() -> str:
        return str(status(real, "raycluster", namespace, alice).get("state"))

    suspend(value=True)
    eventually(lambda: state() == "suspended", "the cluster is suspended")
    eventually(
        lambda: real.project.get("pods", "-n", namespace, "-l", f"ray.io/cluster={alice}") == [],
        "its pods are gone",
    )
    suspend(value=False)
    eventually(lambda: state() == "ready", "the cluster is ready again")
    assert len(worker_addresses(real, alice)) == 2
