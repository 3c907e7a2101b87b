"""Life of berths, end to end: the keeper's own program with its own rights, against a real API
server and operator.

Simulated nodes run no containers, so the keeper's pod and Ray's dashboards don't run here: the
program is started as a process of the test, with the files of its ConfigMap and a token of its
ServiceAccount, and asks a dashboard of the test's that answers as Ray's does. On a real node it is
real: tests/real/test_lifecycle.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import Done, Project, Settings, environment_settings, eventually

pytestmark = pytest.mark.lab

ENV, OWN = "life", "life-alice"
JOB = {"type": "SUBMISSION", "submission_id": "raysubmit_1", "status": "RUNNING", "entrypoint": "python train.py"}
SESSION = {"type": "DRIVER", "job_id": "02000000", "status": "RUNNING", "entrypoint": "notebook"}
NOBODYS = {"class_name": "_StatsActor", "name": "datasets_stats_actor", "ray_namespace": "_dataset_stats_actor"}


def clock(moment: datetime) -> str:
    return f"{moment:%H:%M}"


def environment(lab: Lab, now: datetime) -> Settings:
    # Outside of its hours from an hour ago until in three hours, whatever the time is.
    hours = {"days": "mon-sun", "from": clock(now + timedelta(hours=3)), "to": clock(now - timedelta(hours=1))}
    return environment_settings(
        lab,
        {
            "cpu": {"machineType": "n2-standard-16", "nodes": 2},
            "dev": {"machineType": "a4-highgpu-8g", "nodes": 1},
        },
        defaults={"lifecycle": {"idle": "2h"}},
        engineers={
            "bob": {"lifecycle": {"hours": hours}},
            "carol": {"lifecycle": {"idle": "never", "expires": "30d", "deleteAfter": "10d"}},
        },
        clusters={"train": {"worker": {"gpus": 1, "cpu": 4, "memory": "16Gi"}}},
    )


class Dashboards(ThreadingHTTPServer):
    """Dashboards of all heads: they require the berth's token, and a test sets their jobs."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.jobs: dict[str, list[dict[str, Any]]] = {OWN: [SESSION]}
        self.tokens: dict[str, str] = {}
        self.asked: set[str] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{{name}}"


class _Answers(BaseHTTPRequestHandler):
    server: Dashboards

    def do_GET(self) -> None:
        name, _, path = self.path.lstrip("/").partition("/")
        if self.headers.get("Authorization") != f"Bearer {self.server.tokens.get(name)}":
            self.send_error(401)
            return
        self.server.asked.add(name)
        answer: Any = self.server.jobs.get(name, [])
        if path.startswith("api/v0/actors"):
            answer = {"data": {"result": {"result": [NOBODYS]}}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        pass


class Keeper:
    """Environment, and the keeper's program as its CronJob runs it."""

    def __init__(self, project: Project, folder: Path, dashboards: Dashboards, now: datetime) -> None:
        self.project, self.dashboards, self.now, self._folder = project, dashboards, now, folder

    def install(self) -> None:
        """The files of the ConfigMap, and a kubeconfig with a token of the ServiceAccount and
        nothing else.
        """
        lab = self.project.lab
        (cron_job,) = self.project.get("cronjobs", "-n", "berth-keeper")
        (config_map,) = [
            entry
            for entry in self.project.get("configmaps", "-n", "berth-keeper")
            if entry["metadata"]["name"] == "keeper"
        ]
        pod = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        for item in pod["volumes"][0]["configMap"]["items"]:
            path = self._folder / item["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(config_map["data"][item["key"]])
        self._command = [*pod["containers"][0]["command"][1:], *pod["containers"][0]["args"]]
        config = yaml.safe_load(lab.kubeconfig.read_text())
        token = lab.run(["kubectl", "create", "token", "keeper", "-n", "berth-keeper"]).stdout.strip()
        config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
        self.kubeconfig.write_text(json.dumps(config))
        self.refresh_tokens()

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    def refresh_tokens(self) -> None:
        for name in ("bob", "carol", "train", OWN):
            secret = self.project.lab.run(
                [
                    "kubectl",
                    "get",
                    "secret",
                    name,
                    "-n",
                    f"berth-{name}",
                    "-o",
                    "go-template={{.data.auth_token|base64decode}}",
                ],
                check=False,
            )
            self.dashboards.tokens[name] = secret.stdout

    def look(self, after: timedelta, *options: str, dashboard: str = "") -> dict[str, dict[str, Any]]:
        """Run the keeper once, so long after the test began; return its report of each berth."""
        moment = (self.now + after).isoformat()
        command = [sys.executable, "-E", "-S", *self._command, "--at", moment, *options]
        done = subprocess.run(
            [*command, "--dashboard", dashboard or self.dashboards.address],
            cwd=self._folder,
            env={"KUBECONFIG": str(self.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        report = [json.loads(line) for line in done.stdout.splitlines()]
        return {item["rayCluster"].partition("/")[2]: item for item in report}

    def did(self, after: timedelta, **options: Any) -> dict[str, str]:
        return {name: option["did"] for name, option in self.look(after, **options).items() if option["did"]}

    def cluster(self, name: str) -> dict[str, Any]:
        (found,) = self.project.get("rayclusters", "-n", f"berth-{name}")
        return found

    def state(self, name: str) -> str:
        return str(self.cluster(name)["status"].get("state"))

    def pods(self, name: str) -> list[dict[str, Any]]:
        return self.project.get("pods", "-n", f"berth-{name}", "-l", f"ray.io/cluster={name}")

    def is_suspended(self, name: str) -> bool:
        return self.state(name) == "suspended" and not self.pods(name)

    def as_keeper(self, *command: str) -> Done:
        return self.project.run("kubectl", "--kubeconfig", str(self.kubeconfig), *command, check=False)

    def status(self) -> str:
        return " ".join(self.project.run("berth", "status", "-s", ENV, check=False).stdout.split())

    def nothing_drifts(self, stack: str = ENV) -> None:
        self.project.up(stack, "--refresh", "--expect-no-changes")


@pytest.fixture(scope="module")
def keeper(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    now = datetime.now(UTC)
    project = Project.make(tmp_path_factory.mktemp("life") / "project", lab)
    dashboards = Dashboards()
    threading.Thread(target=dashboards.serve_forever, daemon=True).start()
    keeper = Keeper(project, tmp_path_factory.mktemp("keeper"), dashboards, now)
    project.write(ENV, environment=environment(lab, now))
    project.up(ENV)
    project.write(OWN, engineer={"environment": ENV, "lifecycle": {"idle": "3h"}})
    project.up(OWN)
    keeper.install()
    yield keeper
    dashboards.shutdown()


HOUR = timedelta(hours=1)
NIGHT, NEXT_MORNING = 24 * HOUR, 28 * HOUR


def test_the_keeper_may_do_its_work_and_nothing_else(keeper: Keeper) -> None:
    def may(*what: str) -> bool:
        return keeper.as_keeper("auth", "can-i", *what).stdout.strip() == "yes"

    assert may("list", "rayclusters", "-A")
    assert may("patch", "rayclusters/bob", "-n", "berth-bob")
    assert may("get", "secrets/bob", "-n", "berth-bob")
    assert not may("patch", "rayclusters/train", "-n", "berth-train")
    assert not may("get", "secrets/train", "-n", "berth-train")
    assert not may("list", "secrets", "-n", "berth-bob")
    assert not may("delete", "rayclusters/bob", "-n", "berth-bob")
    assert not may("create", "pods", "-n", "berth-keeper")
    before = keeper.cluster("bob")["metadata"]["resourceVersion"]
    for change in (
        {"spec": {"rayVersion": "2.59.0"}},
        {"spec": {"suspend": True, "upgradeStrategy": None}},
        {"spec": {"managedBy": "ray.io/kuberay-operator"}},
        {"metadata": {"labels": {"berth/environment": "other"}}},
        {"metadata": {"finalizers": ["berth/never"]}},
    ):
        done = keeper.as_keeper(
            "patch", "raycluster", "bob", "-n", "berth-bob", "--type=merge", "-p", json.dumps(change)
        )
        assert "may suspend, wake and annotate RayClusters, and nothing else" in done.stderr
    assert keeper.cluster("bob")["metadata"]["resourceVersion"] == before


def test_working_hours(keeper: Keeper) -> None:
    assert keeper.cluster("train")["metadata"].get("annotations", {}).keys().isdisjoint({"berth/idle", "berth/expires"})
    # Created outside of its hours, the berth runs; in the next night a job keeps it awake.
    assert keeper.did(timedelta(0)) == {}
    keeper.dashboards.jobs["bob"] = [JOB]
    report = keeper.look(NIGHT)["bob"]
    assert (report["did"], report["running"]) == ("", ["job raysubmit_1 (running): python train.py"])
    assert "bob is to be suspended: it is outside of its working hours, but job raysubmit_1" in keeper.status()
    # Once the job has ended the berth is suspended; the cluster without a lifecycle is not asked.
    keeper.dashboards.jobs["bob"] = [JOB | {"status": "SUCCEEDED", "end_time": 1000 * keeper.now.timestamp()}]
    secret = keeper.project.get("secrets", "-n", "berth-bob")[0]["metadata"]["uid"]
    assert keeper.did(NIGHT) == {"bob": "suspended"}
    eventually(lambda: keeper.is_suspended("bob"), "bob is suspended")
    assert keeper.project.get("secrets", "-n", "berth-bob")[0]["metadata"]["uid"] == secret
    assert "train" not in keeper.dashboards.asked
    # The engine sees no difference.
    keeper.nothing_drifts()
    assert keeper.is_suspended("bob")
    assert re.search(r"bob is suspended outside of its working hours until \w+ [-\d]+ \d\d:\d\d UTC", keeper.status())
    assert keeper.did(NIGHT + HOUR) == {}
    assert keeper.did(NEXT_MORNING) == {"bob": "woken"}
    eventually(lambda: keeper.state("bob") == "ready", "bob is awake")
    # Woken by a person at night, it stays; a berth that a person suspended stays so in the morning.
    assert keeper.did(NIGHT) == {"bob": "suspended"}
    eventually(lambda: keeper.is_suspended("bob"), "bob is suspended again")
    keeper.project.run("berth", "wake", "bob", "--stack", ENV)
    assert keeper.did(timedelta(minutes=5)) == {}
    keeper.project.run("berth", "suspend", "bob", "--stack", ENV, "--yes")
    assert keeper.did(NEXT_MORNING) == {}
    assert "bob was suspended manually" in keeper.status()
    keeper.project.run("berth", "wake", "bob", "--stack", ENV)


def test_idleness(keeper: Keeper) -> None:
    # Without Ray's answer no berth is idle.
    for after in (4 * HOUR, 8 * HOUR):
        assert keeper.did(after, dashboard="http://127.0.0.1:1") == {}
    # An attached session on one, then nothing for as long as each says.
    keeper.dashboards.jobs[OWN] = [
        {"type": "DRIVER", "job_id": "02000000", "status": "RUNNING", "entrypoint": "notebook"}
    ]
    assert keeper.did(4 * HOUR) == {}
    assert keeper.did(6 * HOUR) == {"bob": "suspended"}
    keeper.dashboards.jobs[OWN] = []
    assert keeper.did(6 * HOUR) == {}
    assert keeper.did(8 * HOUR) == {}
    assert keeper.did(9 * HOUR) == {OWN: "suspended"}
    eventually(lambda: keeper.is_suspended("bob") and keeper.is_suspended(OWN), "both are suspended")
    keeper.nothing_drifts(OWN)
    assert "bob is suspended, as nothing ran on it for 2h" in keeper.status()
    assert keeper.did(NEXT_MORNING) == {}
    # A wake counts as activity.
    keeper.project.run("berth", "wake", "bob", "--stack", ENV)
    keeper.project.run("berth", "wake", "--stack", OWN)
    assert keeper.did(5 * HOUR) == {}


def test_expiry(keeper: Keeper) -> None:
    days = timedelta(days=1)
    assert "carol" not in keeper.did(29 * days)
    report = keeper.look(31 * days)["carol"]
    assert (report["did"], report["suspendedBy"]) == ("suspended", "expired")
    eventually(lambda: keeper.is_suspended("carol"), "carol is suspended")
    assert "carol is suspended, as it expired on" in keeper.status()
    keeper.look(41 * days)
    assert "berth/delete-due" in keeper.cluster("carol")["metadata"]["annotations"]
    assert "carol is due to be deleted" in keeper.status()
    keeper.project.run("berth", "wake", "carol", "--stack", ENV)
    # By the real clock the berth has not expired, and the annotations go.
    keeper.look(timedelta(0))
    assert (
        keeper.cluster("carol")["metadata"]["annotations"].keys().isdisjoint({"berth/delete-due", "berth/suspended-by"})
    )


def test_an_update_of_the_image_returns_when_every_pod_has_it(keeper: Keeper) -> None:
    changed = environment(keeper.project.lab, keeper.now)
    changed["engineers"]["carol"]["image"] = "rayproject/ray:2.60.0-py311-cpu"
    keeper.project.write(ENV, environment=changed)
    before = {pod["metadata"]["uid"] for pod in keeper.pods("carol")}
    keeper.project.up(ENV)
    alive = [pod for pod in keeper.pods("carol") if "deletionTimestamp" not in pod["metadata"]]
    assert {pod["spec"]["containers"][0]["image"] for pod in alive} == {"rayproject/ray:2.60.0-py311-cpu"}
    assert [pod["status"]["phase"] for pod in alive] == ["Running", "Running"]
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in alive)
