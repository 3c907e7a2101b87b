"""The life of berths, end to end: the keeper's own program with its own rights, against a real API server and operator.

Simulated nodes run no containers, so the keeper's pod and Ray's dashboards don't run here: the program is started as a process of the test,
with the files of its ConfigMap and a token of its ServiceAccount, and asks a dashboard of the test's that answers as Ray's does. On a real
node it is real: tests/real/test_lifecycle.py.
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
from tests.lab.project import Done, Project, Settings, eventually

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
    return {
        "project": "berth-test",
        "zone": "us-central1-b",
        "cluster": {"deletionProtection": False},
        "pools": {
            "cpu": {"machineType": "n2-standard-16", "nodes": 2},
            "dev": {"machineType": "a4-highgpu-8g", "nodes": 1},
        },
        "operators": {"kuberay": {"chart": str(lab.home.charts / "kuberay-operator")}},
        "defaults": {"lifecycle": {"idle": "2h"}, "wait": {"timeout": "2m"}},
        "engineers": {
            "bob": {"lifecycle": {"hours": hours}},
            "carol": {"lifecycle": {"idle": "never", "expires": "30d", "deleteAfter": "10d"}},
        },
        "clusters": {"train": {"worker": {"gpus": 1, "cpu": 4, "memory": "16Gi"}}},
    }


class Dashboards(ThreadingHTTPServer):
    """Dashboards of all heads, which want their berth's token; what runs is as a test says."""

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


class Kept:
    """The environment, and the keeper's program as its CronJob has it."""

    def __init__(self, project: Project, folder: Path, dashboards: Dashboards, now: datetime) -> None:
        self.project, self.dashboards, self.now, self._folder = project, dashboards, now, folder

    def install(self) -> None:
        """The files of the ConfigMap, and a kubeconfig with a token of the ServiceAccount and nothing else."""
        lab = self.project.lab
        (cron_job,) = self.project.get("cronjobs", "-n", "berth-keeper")
        (config_map,) = [
            each
            for each in self.project.get("configmaps", "-n", "berth-keeper")
            if each["metadata"]["name"] == "keeper"
        ]
        pod = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        for item in pod["volumes"][0]["configMap"]["items"]:
            path = self._folder / item["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(config_map["data"][item["key"]])
        self._command = [*pod["containers"][0]["command"][1:], *pod["containers"][0]["args"]]
        config = yaml.safe_load(lab.kubeconfig.read_text())
        token = lab.run(["kubectl", "create", "token", "keeper", "-n", "berth-keeper"]).stdout.strip()
        config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
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
        """One look, so long after the test began; what it said of each berth, which is all that it may do."""
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
        told = [json.loads(line) for line in done.stdout.splitlines()]
        return {each["rayCluster"].partition("/")[2]: each for each in told}

    def did(self, after: timedelta, **options: Any) -> dict[str, str]:
        return {name: each["did"] for name, each in self.look(after, **options).items() if each["did"]}

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
        self.project.run("pulumi", "preview", "-s", stack, "--expect-no-changes")
        self.project.run("pulumi", "refresh", "-s", stack, "--yes", "--skip-preview", "--expect-no-changes")
        self.project.up(stack, "--expect-no-changes")


@pytest.fixture(scope="module")
def kept(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    now = datetime.now(UTC)
    project = Project.make(tmp_path_factory.mktemp("life") / "project", lab)
    dashboards = Dashboards()
    threading.Thread(target=dashboards.serve_forever, daemon=True).start()
    made = Kept(project, tmp_path_factory.mktemp("keeper"), dashboards, now)
    project.write(ENV, environment=environment(lab, now))
    project.up(ENV)
    project.write(OWN, engineer={"environment": ENV, "lifecycle": {"idle": "3h"}})
    project.up(OWN)
    made.install()
    yield made
    dashboards.shutdown()
    project.destroy(OWN)
    project.destroy(ENV)


HOUR = timedelta(hours=1)
NIGHT, NEXT_MORNING = 24 * HOUR, 28 * HOUR


def test_the_keeper_may_do_its_work_and_nothing_else(kept: Kept) -> None:
    def may(*what: str) -> bool:
        return kept.as_keeper("auth", "can-i", *what).stdout.strip() == "yes"

    assert may("list", "rayclusters", "-A")
    assert may("patch", "rayclusters/bob", "-n", "berth-bob")
    assert may("get", "secrets/bob", "-n", "berth-bob")
    assert not may("patch", "rayclusters/train", "-n", "berth-train")
    assert not may("get", "secrets/train", "-n", "berth-train")
    assert not may("list", "secrets", "-n", "berth-bob")
    assert not may("delete", "rayclusters/bob", "-n", "berth-bob")
    assert not may("create", "pods", "-n", "berth-keeper")
    before = kept.cluster("bob")["metadata"]["resourceVersion"]
    for change in (
        {"spec": {"rayVersion": "2.59.0"}},
        {"spec": {"suspend": True, "upgradeStrategy": None}},
        {"spec": {"managedBy": "ray.io/kuberay-operator"}},
        {"metadata": {"labels": {"berth/environment": "other"}}},
        {"metadata": {"finalizers": ["berth/never"]}},
    ):
        done = kept.as_keeper("patch", "raycluster", "bob", "-n", "berth-bob", "--type=merge", "-p", json.dumps(change))
        assert "may suspend, wake and annotate RayClusters, and nothing else" in done.stderr
    assert kept.cluster("bob")["metadata"]["resourceVersion"] == before


def test_working_hours(kept: Kept) -> None:
    assert kept.cluster("train")["metadata"].get("annotations", {}).keys().isdisjoint({"berth/idle", "berth/expires"})
    # Made outside of its hours, it is there; in the night after that a job keeps it.
    assert kept.did(timedelta(0)) == {}
    kept.dashboards.jobs["bob"] = [JOB]
    told = kept.look(NIGHT)["bob"]
    assert (told["did"], told["running"]) == ("", ["job raysubmit_1 (running): python train.py"])
    assert "bob is to be suspended: it is outside of its working hours, but job raysubmit_1" in kept.status()
    # When the job has ended it is suspended, and nobody asks the cluster that has no lifecycle.
    kept.dashboards.jobs["bob"] = [JOB | {"status": "SUCCEEDED", "end_time": 1000 * kept.now.timestamp()}]
    secret = kept.project.get("secrets", "-n", "berth-bob")[0]["metadata"]["uid"]
    assert kept.did(NIGHT) == {"bob": "suspended"}
    eventually(lambda: kept.is_suspended("bob"), "bob is suspended")
    assert kept.project.get("secrets", "-n", "berth-bob")[0]["metadata"]["uid"] == secret
    assert "train" not in kept.dashboards.asked
    # Neither the engine nor a person has anything to do with it.
    kept.nothing_drifts()
    assert kept.is_suspended("bob")
    assert re.search(r"bob is suspended outside of its working hours until \w+ [-\d]+ \d\d:\d\d UTC", kept.status())
    assert kept.did(NIGHT + HOUR) == {}
    assert kept.did(NEXT_MORNING) == {"bob": "woken"}
    eventually(lambda: kept.state("bob") == "ready", "bob is awake")
    # Woken by a person at night, it stays; a berth that a person suspended stays so in the morning.
    assert kept.did(NIGHT) == {"bob": "suspended"}
    eventually(lambda: kept.is_suspended("bob"), "bob is suspended again")
    kept.project.run("berth", "wake", "bob", "--stack", ENV)
    assert kept.did(timedelta(minutes=5)) == {}
    kept.project.run("berth", "suspend", "bob", "--stack", ENV, "--yes")
    assert kept.did(NEXT_MORNING) == {}
    assert "bob was suspended by hand" in kept.status()
    kept.project.run("berth", "wake", "bob", "--stack", ENV)


def test_idleness(kept: Kept) -> None:
    # Ray can't be asked: nobody is idle.
    for after in (4 * HOUR, 8 * HOUR):
        assert kept.did(after, dashboard="http://127.0.0.1:1") == {}
    # An attached session on one, then nothing for as long as each says.
    kept.dashboards.jobs[OWN] = [
        {"type": "DRIVER", "job_id": "02000000", "status": "RUNNING", "entrypoint": "notebook"}
    ]
    assert kept.did(4 * HOUR) == {}
    assert kept.did(6 * HOUR) == {"bob": "suspended"}
    kept.dashboards.jobs[OWN] = []
    assert kept.did(6 * HOUR) == {}
    assert kept.did(8 * HOUR) == {}
    assert kept.did(9 * HOUR) == {OWN: "suspended"}
    eventually(lambda: kept.is_suspended("bob") and kept.is_suspended(OWN), "both are suspended")
    kept.nothing_drifts(OWN)
    assert "bob is suspended, as nothing ran on it for 2h" in kept.status()
    assert kept.did(NEXT_MORNING) == {}
    # A wake counts as activity.
    kept.project.run("berth", "wake", "bob", "--stack", ENV)
    kept.project.run("berth", "wake", "--stack", OWN)
    assert kept.did(5 * HOUR) == {}


def test_expiry(kept: Kept) -> None:
    days = timedelta(days=1)
    assert "carol" not in kept.did(29 * days)
    told = kept.look(31 * days)["carol"]
    assert (told["did"], told["suspendedBy"]) == ("suspended", "expired")
    eventually(lambda: kept.is_suspended("carol"), "carol is suspended")
    assert "carol is suspended, as it expired on" in kept.status()
    kept.look(41 * days)
    assert "berth/delete-due" in kept.cluster("carol")["metadata"]["annotations"]
    assert "carol is due to be deleted" in kept.status()
    kept.project.run("berth", "wake", "carol", "--stack", ENV)
    # By its own clock the berth has not expired, and it says so no more.
    kept.look(timedelta(0))
    assert (
        kept.cluster("carol")["metadata"]["annotations"].keys().isdisjoint({"berth/delete-due", "berth/suspended-by"})
    )


def test_an_edit_of_the_image_has_reached_every_pod_when_the_update_returns(kept: Kept) -> None:
    changed = environment(kept.project.lab, kept.now)
    changed["engineers"]["carol"]["image"] = "rayproject/ray:2.60.0-py311-cpu"
    kept.project.write(ENV, environment=changed)
    before = {pod["metadata"]["uid"] for pod in kept.pods("carol")}
    kept.project.up(ENV)
    alive = [pod for pod in kept.pods("carol") if "deletionTimestamp" not in pod["metadata"]]
    assert {pod["spec"]["containers"][0]["image"] for pod in alive} == {"rayproject/ray:2.60.0-py311-cpu"}
    assert [pod["status"]["phase"] for pod in alive] == ["Running", "Running"]
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in alive)
