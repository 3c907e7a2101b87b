"""Keeper's real pod and real Ray: a job keeps a berth awake, idleness suspends it, a wake resumes
it.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.real.conftest import POOL, Object, RealNode, berth, environment, eventually

pytestmark = [pytest.mark.real, pytest.mark.long]

KEEPER = "berth-keeper"
OWNER = "keptalice"
IDLE_SECONDS = 10
WORK = (
    "import pathlib, ray, time; ray.init()\nwhile not pathlib.Path('/tmp/enough').exists():"
    " time.sleep(0.2)"
)


@pytest.fixture(scope="module")
def idle(real: RealNode) -> Iterator[RealNode]:
    """An engineer's berth with a lifecycle, on an environment with a keeper."""
    real.project.write("env", environment=environment(real.lab) | {"keeper": {"every": "30m"}})
    real.project.up("env")
    real.project.write(OWNER, engineer=berth(workers=1, lifecycle={"idle": f"{IDLE_SECONDS}s"}))
    real.project.up(OWNER)
    yield real
    real.project.destroy(OWNER)
    real.project.write("env", environment=environment(real.lab))
    real.project.up("env")


def cluster(real: RealNode) -> dict[str, Any]:
    (found,) = real.project.get("rayclusters", "-n", f"berth-{OWNER}")
    return found


def look(real: RealNode, number: int) -> Object:
    """Run the CronJob's own Job once on the real node; return the keeper's report of the berth."""
    name = f"look-{number}"
    command = [
        "kubectl",
        "create",
        "job",
        name,
        "--from=cronjob/keeper",
        "-n",
        KEEPER,
        "--dry-run=client",
        "-o",
        "json",
    ]
    job = json.loads(real.lab.run(command).stdout)
    pod = job["spec"]["template"]["spec"]
    # Heads of other berths are on simulated nodes, where it would run no program.
    pod["affinity"] = {}
    pod["nodeSelector"] = {"cloud.google.com/gke-nodepool": POOL}
    pod["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    real.apply(job)

    def ended() -> bool:
        done: Object = real.lab.get("job", name, "-n", KEEPER).get("status") or {}
        return bool(done.get("succeeded") or done.get("failed"))

    eventually(ended, f"{name} has ended")
    log = real.lab.run(["kubectl", "logs", f"job/{name}", "-n", KEEPER]).stdout
    assert real.lab.get("job", name, "-n", KEEPER)["status"].get("succeeded"), log
    (report,) = [
        line
        for line in map(json.loads, log.splitlines())
        if line["rayCluster"] == f"berth-{OWNER}/{OWNER}"
    ]
    assert (report.get("error"), report["unknown"]) == (None, "")
    return dict(report)


def test_a_job_keeps_a_berth_awake_and_idleness_suspends_it(idle: RealNode) -> None:
    submit = [
        "ray",
        "job",
        "submit",
        "--no-wait",
        "--address=http://127.0.0.1:8265",
        "--",
        "python",
        "-c",
        WORK,
    ]
    idle.on_head(OWNER, *submit)
    first = look(idle, 1)
    assert first["did"] == ""
    assert "job raysubmit_" in first["running"][0]

    def nothing_runs() -> bool:
        jobs = idle.on_head(OWNER, "ray", "job", "list", "--address=http://127.0.0.1:8265").stdout
        return "RUNNING" not in jobs and "PENDING" not in jobs

    idle.on_head(OWNER, "touch", "/tmp/enough")  # noqa: S108 - in the pod
    eventually(nothing_runs, "the job has ended")
    looks = iter(range(2, 60))

    def suspended() -> bool:
        report = look(idle, next(looks))
        return (report["did"], report["suspendedBy"]) == ("suspended", "idle")

    eventually(suspended, "the keeper has seen it idle for long enough")
    eventually(
        lambda: (
            idle.project.get("pods", "-n", f"berth-{OWNER}", "-l", f"ray.io/cluster={OWNER}") == []
        ),
        "its pods are gone",
    )
    output = " ".join(idle.project.run("berth", "status", "-s", OWNER, check=False).stdout.split())
    assert f"{OWNER} is suspended, as nothing ran on it for {IDLE_SECONDS}s" in output
    idle.project.run("pulumi", "preview", "-s", OWNER, "--expect-no-changes")
    idle.project.run("berth", "wake", "--stack", OWNER)
    assert cluster(idle)["status"]["state"] == "ready"
    assert look(idle, 60)["did"] == ""
