"""Jobs and services of an environment, on running containers: a job to its end, a failing one, an
application that answers.
"""

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from berth.components.core.owner import STACK_LABEL
from tests.real.conftest import POOL, RealNode, environment, eventually

pytestmark = [pytest.mark.real, pytest.mark.long]

# Ray as small as it can be, on the one real node.
SMALL: dict[str, Any] = {
    "head": {"pool": POOL, "cpu": 1, "memory": "3Gi"},
    "worker": {"pool": POOL, "gpus": 0, "cpu": 1, "memory": "2Gi"},
}

# A program of several lines goes in the environment: the command passes through two shells.
ENTRYPOINT = "python -c 'import base64, os; exec(base64.b64decode(os.environ[\"PROGRAM\"]))'"
COUNT = b"""
import os, ray
ray.init()
@ray.remote
def one():
    return 1
print(os.environ["GREETING"], sum(ray.get([one.remote() for _ in range(3)])))
"""

APP = """
from ray import serve

@serve.deployment(ray_actor_options={"num_cpus": 0.1})
class Greeter:
    def __init__(self, greeting):
        self.greeting = greeting

    def __call__(self, request):
        return self.greeting

def build(args: dict):
    return Greeter.bind(args["greeting"])
"""
FOLDER = "/tmp/app"  # noqa: S108 - in the pod


def job(entrypoint: str, **more: Any) -> dict[str, Any]:
    runtime_env = {"env_vars": {"GREETING": "counted"}}
    wait = {"until": "succeeded", "timeout": "5m"}
    return {
        "entrypoint": entrypoint,
        "workers": 1,
        "runtimeEnv": runtime_env,
        "wait": wait,
        **SMALL,
        **more,
    }


def service(greeting: str, timeout: str) -> dict[str, Any]:
    """Settings with a head alone, which gets the application's code: there is no place to fetch it
    from.
    """
    application = {"name": "greet", "import_path": "greeter:build", "args": {"greeting": greeting}}
    return {
        "serveConfig": {"applications": [application]},
        "workers": 0,
        "env": {"PYTHONPATH": FOLDER},
        "wait": {"timeout": timeout},
        **SMALL,
    }


@pytest.fixture
def env(real: RealNode) -> Iterator[RealNode]:
    """The environment, which has neither jobs nor services afterward."""
    yield real
    real.project.write("env", environment=environment(real.lab))
    real.project.up("env")
    assert real.project.get("rayjobs,rayservices", "-A", "-l", f"{STACK_LABEL}=env") == []


def set_up(env: RealNode, *, check: bool = True, **parts: Any) -> str:
    env.project.write("env", environment=environment(env.lab) | parts)
    return env.project.up("env", check=check).stdout


def status(env: RealNode, kind: str) -> dict[str, Any]:
    (report,) = json.loads(
        env.project.run("berth", "status", "-s", "env", "--json", check=False).stdout
    )[kind]
    return dict(report)


def test_a_job_runs_once_on_a_cluster_of_its_own(env: RealNode) -> None:
    created = job(ENTRYPOINT)
    created["runtimeEnv"]["env_vars"]["PROGRAM"] = base64.b64encode(COUNT).decode()
    set_up(env, jobs={"count": created})
    report = status(env, "jobs")
    assert (report["state"], report["ready"], report["reasons"]) == ("SUCCEEDED", True, [])
    log = env.lab.run(
        [
            "kubectl",
            "logs",
            "-n",
            "berth-count",
            "-l",
            "berth/job=count,batch.kubernetes.io/job-name",
            "--tail=-1",
        ]
    ).stdout
    assert "counted 3" in log
    eventually(
        lambda: env.project.get("rayclusters", "-n", "berth-count") == [], "its RayCluster is gone"
    )
    set_up(env, jobs={"count": created})
    assert status(env, "jobs")["rayJob"] == report["rayJob"], "it has run, and does not run again"

    created["entrypoint"] = "python -c 'raise SystemExit(3)'"
    failed = set_up(env, check=False, jobs={"count": created})
    assert "has not succeeded (waited for 5m at most): AppFailed: " in failed
    assert status(env, "jobs")["state"] == "FAILED"


def clusters(env: RealNode) -> list[str]:
    """The service's RayClusters that are not going away."""
    found = [cluster["metadata"] for cluster in env.project.get("rayclusters", "-n", "berth-greet")]
    return sorted(str(item["name"]) for item in found if "deletionTimestamp" not in item)


def heads(env: RealNode) -> dict[str, str]:
    """The service's heads whose container runs: pods by the name of their RayCluster."""
    found = {}
    for pod in env.project.get("pods", "-n", "berth-greet", "-l", "ray.io/node-type=head"):
        (container,) = pod["status"].get("containerStatuses") or [{}]
        if (
            "running" in (container.get("state") or {})
            and "deletionTimestamp" not in pod["metadata"]
        ):
            found[str(pod["metadata"]["labels"]["ray.io/cluster"])] = str(pod["metadata"]["name"])
    return found


def on_head(env: RealNode, pod: str, *command: str) -> str:
    return env.lab.run(
        ["kubectl", "exec", "-n", "berth-greet", pod, "-c", "ray-head", "--", *command]
    ).stdout


def bring_code(env: RealNode, pod: str) -> None:
    """Write the application's code into a head."""
    on_head(
        env, pod, "sh", "-c", f"mkdir -p {FOLDER} && cat >{FOLDER}/greeter.py <<'END'\n{APP}\nEND"
    )


def test_a_service_answers_and_a_broken_one_has_the_reason(env: RealNode) -> None:
    failed = set_up(env, check=False, services={"greet": service("ahoy", "90s")})
    assert (
        "RayService berth-greet/greet is not ready after 90s: application greet: DEPLOY_FAILED: "
        in failed
    )
    assert "No module named 'greeter'" in failed
    assert "No module named 'greeter'" in " ".join(status(env, "services")["reasons"])

    (cluster,) = clusters(env)
    head = heads(env)[cluster]
    bring_code(env, head)
    set_up(env, services={"greet": service("welcome", "4m")})
    report = status(env, "services")
    assert (report["state"], report["applicationsRunning"], report["serving"]) == ("ready", 1, 1)
    assert clusters(env) == [cluster], "an edit of serveConfig is taken in place"
    address = report["address"].replace("berth-greet:", "berth-greet.svc.cluster.local:")
    ask = ["curl", "-sS", "--retry", "20", "--retry-all-errors", "--max-time", "5", f"{address}/"]
    assert on_head(env, head, *ask) == "welcome"
    services = env.project.get("services", "-n", "berth-greet")
    assert {item["spec"]["type"] for item in services} == {"ClusterIP"}
    env.project.up("env", "--expect-no-changes")

    edited = service("welcome", "4m")
    edited["env"]["EDITED"] = "yes"
    with ThreadPoolExecutor() as pool:
        update = pool.submit(set_up, env, services={"greet": edited})
        # The new head's code has to be there before KubeRay asks Ray Serve for the application,
        # which it does when the head is ready.
        eventually(lambda: len(heads(env)) == 2, "the second cluster's head runs beside the first")
        (second,) = heads(env).keys() - {cluster}
        bring_code(env, heads(env)[second])
        assert on_head(env, head, *ask) == "welcome", "the first one answers meanwhile"
        update.result()
    report = status(env, "services")
    assert (report["state"], report["applicationsRunning"]) == ("ready", 1), (
        "up has waited until the second one serves"
    )
    eventually(lambda: clusters(env) == [second], "the first cluster is gone")
    head = heads(env)[second]
    assert on_head(env, head, "printenv", "EDITED").strip() == "yes"
    assert on_head(env, head, *ask) == "welcome"
