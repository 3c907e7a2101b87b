"""Life of berths, end to end: the keeper's own program with its own rights, against a real API
server and operator.

Simulated nodes run no containers, so the keeper's pod and Ray's dashboards don't run here: the
program is started as a process of the test, with the files of its ConfigMap and a token of its
ServiceAccount, and asks a dashboard of the test's that answers as Ray's does. On a real node it is
real: tests/real/test_lifecycle.py.
"""

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

from berth.components.programs.keeper import CLOSING
from tests.lab.bad_pods import OBJECTS, over
from tests.lab.conftest import Lab
from tests.lab.project import Done, Project, Settings, environment_settings, eventually

pytestmark = pytest.mark.lab

ENV = "life"
OWN = "life-alice"
EVE = "eve@example.com"
"""Engineer whom hours and expiry bind, and who would rather they did not."""
JOB = {
    "type": "SUBMISSION",
    "submission_id": "raysubmit_1",
    "status": "RUNNING",
    "entrypoint": "python train.py",
}
SESSION = {"type": "DRIVER", "job_id": "02000000", "status": "RUNNING", "entrypoint": "notebook"}
NOBODYS = {
    "class_name": "_StatsActor",
    "name": "datasets_stats_actor",
    "ray_namespace": "_dataset_stats_actor",
}


def clock(moment: datetime) -> str:
    return f"{moment:%H:%M}"


def environment(lab: Lab, now: datetime) -> Settings:
    # Outside of its hours from an hour ago until in three hours, whatever the time is.
    hours = {
        "days": "mon-sun",
        "from": clock(now + timedelta(hours=3)),
        "to": clock(now - timedelta(hours=1)),
    }
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
            "eve": {
                "lifecycle": {"idle": "never", "expires": "20d"},
                "access": {"users": [EVE]},
                "workers": 0,
            },
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

    def __init__(
        self, project: Project, folder: Path, dashboards: Dashboards, now: datetime
    ) -> None:
        self.project = project
        self.dashboards = dashboards
        self.now = now
        self._folder = folder

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
        token = lab.run(
            ["kubectl", "create", "token", "keeper", "-n", "berth-keeper"]
        ).stdout.strip()
        config["users"] = [
            {"name": user["name"], "user": {"token": token}} for user in config["users"]
        ]
        self.kubeconfig.write_text(json.dumps(config))
        self.refresh_tokens()

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    def refresh_tokens(self) -> None:
        for name in ("bob", "carol", "eve", "train", OWN):
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

    def look(
        self, after: timedelta, *options: str, dashboard: str = ""
    ) -> dict[str, dict[str, Any]]:
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
        return {
            name: option["did"]
            for name, option in self.look(after, **options).items()
            if option["did"]
        }

    def cluster(self, name: str) -> dict[str, Any]:
        clusters = self.project.get("rayclusters", "-n", f"berth-{name}")
        (found,) = [cluster for cluster in clusters if cluster["metadata"]["name"] == name]
        return found

    def state(self, name: str) -> str:
        return str(self.cluster(name).get("status", {}).get("state"))

    def pods(self, name: str) -> list[dict[str, Any]]:
        return self.project.get("pods", "-n", f"berth-{name}", "-l", f"ray.io/cluster={name}")

    def is_suspended(self, name: str) -> bool:
        return self.state(name) == "suspended" and not self.pods(name)

    def as_keeper(self, *command: str) -> Done:
        return self.project.run(
            "kubectl", "--kubeconfig", str(self.kubeconfig), *command, check=False
        )

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


ONLY = "may suspend, wake and annotate what makes pods, and close a quota, and nothing else"
HOUR = timedelta(hours=1)
NIGHT = 24 * HOUR
NEXT_MORNING = 28 * HOUR


def test_the_keeper_may_do_its_work_and_nothing_else(keeper: Keeper) -> None:
    def may(*what: str) -> bool:
        return keeper.as_keeper("auth", "can-i", *what).stdout.strip() == "yes"

    assert may("list", "rayclusters", "-A")
    assert may("patch", "rayclusters/bob", "-n", "berth-bob")
    assert may("get", "secrets/bob", "-n", "berth-bob")
    assert not may("patch", "rayclusters/train", "-n", "berth-train")
    assert not may("get", "secrets/train", "-n", "berth-train")
    assert not may("list", "secrets", "-n", "berth-bob")
    assert not may("patch", "rayjobs", "--subresource=status", "-n", "berth-bob")
    for kind in ("rayclusters", "rayjobs", "rayservices", "jobs", "resourcequotas", "pods"):
        assert not may("delete", kind, "-n", "berth-bob")
        assert not may("create", kind, "-n", "berth-bob")
        assert not may("patch", kind, "-n", "berth-train")
    assert not may("patch", "resourcequotas/berth", "-n", "berth-bob")
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
            "patch",
            "raycluster",
            "bob",
            "-n",
            "berth-bob",
            "--type=merge",
            "-p",
            json.dumps(change),
        )
        assert ONLY in done.stderr
    assert keeper.cluster("bob")["metadata"]["resourceVersion"] == before
    for hard in ({"pods": "9"}, {"pods": "0", "requests.cpu": "0"}):
        change = {"spec": {"hard": hard}}
        done = keeper.as_keeper(
            "patch", f"quota/{CLOSING}", "-n", "berth-bob", "--type=merge", "-p", json.dumps(change)
        )
        assert ONLY in done.stderr


def test_working_hours(keeper: Keeper) -> None:
    assert (
        keeper.cluster("train")["metadata"]
        .get("annotations", {})
        .keys()
        .isdisjoint({"berth/idle", "berth/expires"})
    )
    # Created outside of its hours, the berth runs; in the next night a job keeps it awake.
    assert keeper.did(timedelta(0)) == {}
    keeper.dashboards.jobs["bob"] = [JOB]
    report = keeper.look(NIGHT)["bob"]
    assert (report["did"], report["running"]) == (
        "",
        ["job raysubmit_1 (running): python train.py"],
    )
    assert (
        "bob is to be suspended: it is outside of its working hours, but job raysubmit_1"
        in keeper.status()
    )
    # Once the job has ended the berth is suspended; the cluster without a lifecycle is not asked.
    keeper.dashboards.jobs["bob"] = [
        JOB | {"status": "SUCCEEDED", "end_time": 1000 * keeper.now.timestamp()}
    ]
    secret = keeper.project.get("secrets", "-n", "berth-bob")[0]["metadata"]["uid"]
    assert keeper.did(NIGHT) == {"bob": "suspended"}
    eventually(lambda: keeper.is_suspended("bob"), "bob is suspended")
    assert keeper.project.get("secrets", "-n", "berth-bob")[0]["metadata"]["uid"] == secret
    assert "train" not in keeper.dashboards.asked
    # The engine sees no difference.
    keeper.nothing_drifts()
    assert keeper.is_suspended("bob")
    assert re.search(
        r"bob is suspended outside of its working hours until \w+ [-\d]+ \d\d:\d\d UTC",
        keeper.status(),
    )
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
    eventually(
        lambda: keeper.is_suspended("bob") and keeper.is_suspended(OWN), "both are suspended"
    )
    assert "bob is suspended, as nothing ran on it for 2h" in keeper.status()
    assert keeper.did(NEXT_MORNING) == {}
    # A wake counts as activity.
    keeper.project.run("berth", "wake", "bob", "--stack", ENV)
    keeper.project.run("berth", "wake", "--stack", OWN)
    assert keeper.did(5 * HOUR) == {}


def test_what_kueue_holds_back_is_named_and_not_woken(keeper: Keeper) -> None:
    def kueue_writes(*, suspend: bool) -> None:
        patch = [
            "--type=merge",
            "-p",
            json.dumps({"spec": {"suspend": suspend}}),
            "--field-manager=kueue",
        ]
        keeper.project.run("kubectl", "patch", "raycluster", "bob", "-n", "berth-bob", *patch)

    kueue_writes(suspend=True)
    assert "bob waits for room in its queue: Kueue suspends and starts it" in keeper.status()
    woken = keeper.project.run("berth", "wake", "bob", "--stack", ENV, check=False)
    assert (woken.returncode, "bob waits for room in its queue" in woken.stderr) == (1, True)
    kueue_writes(suspend=False)


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
        keeper.cluster("carol")["metadata"]["annotations"]
        .keys()
        .isdisjoint({"berth/delete-due", "berth/suspended-by"})
    )


LATER = timedelta(days=21)
"""Time after eve's berth has expired."""


@pytest.fixture(scope="module")
def eve(keeper: Keeper) -> str:
    """Namespace of eve, who has the rights of an owner here, and a RayCluster of an older form."""
    namespace = "berth-eve"
    project = keeper.project
    for command in (
        "create role owner --verb=create,delete --resource=rayclusters.ray.io -n berth-eve",
        f"create rolebinding owner --role=owner --user={EVE} -n berth-eve",
        "annotate raycluster/eve berth/expires=20d berth/working-hours=mon-fri -n berth-eve",
    ):
        project.run("kubectl", *command.split())
    awake(keeper)
    return namespace


def awake(keeper: Keeper) -> None:
    """Wake eve's berth; a look of the keeper opens a closed one."""
    keeper.project.run("berth", "wake", "eve", "--stack", ENV, "--timeout", "1s", check=False)
    assert keeper.look(timedelta(minutes=5))["eve"]["closed"] == ""
    eventually(lambda: keeper.state("eve") == "ready", "eve is awake")


def as_eve(keeper: Keeper, *command: str) -> Done:
    return keeper.project.run("kubectl", f"--as={EVE}", *command, "-n", "berth-eve", check=False)


def created_by_eve(keeper: Keeper, folder: Path, *manifests: dict[str, Any]) -> None:
    path = folder / "manifests.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    done = as_eve(keeper, "create", "-f", str(path))
    assert done.returncode == 0, done.stderr


def pods_of_eve(keeper: Keeper) -> set[str]:
    """Names of pods in eve's namespace that have not finished."""
    pods = keeper.project.get("pods", "-n", "berth-eve")
    return {
        pod["metadata"]["name"]
        for pod in pods
        if pod["status"].get("phase") not in {"Succeeded", "Failed"}
    }


def ray(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def without_work(keeper: Keeper) -> dict[str, Any]:
    """Spec of eve's RayCluster with a head that fits many times into her quota."""
    written = keeper.cluster("eve")["spec"]
    spec = {
        key: value for key, value in written.items() if key not in {"suspend", "upgradeStrategy"}
    }
    small = {
        "resources": {kind: {"cpu": "50m", "memory": "64Mi"} for kind in ("requests", "limits")}
    }
    return dict(over(spec, {"headGroupSpec": {"template": {"spec": {"containers": [small]}}}}))


@pytest.mark.usefixtures("eve")
def test_nobody_changes_the_facts_of_their_berths_life(keeper: Keeper) -> None:
    answers = {trick: as_eve(keeper, *trick.split()).stderr for trick in OBJECTS["tricks"]}
    assert {
        trick: answer for trick, answer in answers.items() if OBJECTS["tricks"][trick] not in answer
    } == {}
    # Her own stack takes away what stands on the namespace now.
    assert as_eve(keeper, "annotate", "raycluster/eve", "berth/expires-").stderr == ""


@pytest.mark.usefixtures("eve")
@pytest.mark.parametrize("larges", [0, pytest.param(12, marks=pytest.mark.long)])
def test_nothing_in_a_namespace_outlives_its_berth(
    keeper: Keeper, tmp_path: Path, larges: int
) -> None:
    assert keeper.look(LATER)["eve"]["did"] == "suspended"
    eventually(lambda: keeper.is_suspended("eve"), "eve is suspended")
    spec = without_work(keeper)
    job = {"entrypoint": "sleep infinity", "rayClusterSpec": spec}
    kept = {"shutdownAfterJobFinishes": True}
    # Lists of large objects must not end the keeper's pass over her berth, nor over the others.
    large = [
        ray(
            "RayJob", f"large-{number}", **job, **kept, suspend=True, runtimeEnvYAML="#" * 1_300_000
        )
        for number in range(larges)
    ]
    for manifest in large:
        created_by_eve(keeper, tmp_path, manifest)
    created_by_eve(
        keeper,
        tmp_path,
        ray("RayService", "forever", serveConfigV2="applications: []", rayClusterConfig=spec),
        ray("RayJob", "night", **job, **kept),
        # KubeRay takes these for invalid once they are suspended, and leaves their pods alone.
        ray("RayJob", "keeps", **job),
        ray("RayJob", "waits", **job, submissionMode="InteractiveMode"),
        ray("RayCluster", "own", **spec),
    )
    eventually(lambda: len(pods_of_eve(keeper)) > 4, "pods of all of them")
    report = keeper.look(LATER)["eve"]
    ended = {" ".join(line.split()[1:3]).partition("-")[0] for line in report["beside"]}
    assert {
        "RayService forever",
        "RayJob night",
        "RayCluster own",
        "RayCluster keeps",
        "RayCluster waits",
    } <= ended
    assert report["closed"] == "something was started in it while it slept"
    assert "eve is closed: something was started in it while it slept" in keeper.status()
    eventually(lambda: not pods_of_eve(keeper), "no pod is left")
    # Whatever she starts now has no pod, by a refusal that says what to do.
    created_by_eve(keeper, tmp_path, ray("RayJob", "again", **job, **kept))
    words = f"exceeded quota: {CLOSING}"
    eventually(
        lambda: words in as_eve(keeper, "get", "events", "-o", "json").stdout,
        "the event of a refusal",
    )
    # Nor does she by waking it in the keeper's name.
    wakes = [
        "--type=merge",
        "-p",
        '{"spec":{"rayClusterConfig":{"suspend":null}}}',
        "--field-manager=berth-keeper",
    ]
    assert as_eve(keeper, "patch", "rayservice", "forever", *wakes).returncode == 0
    assert "suspended RayService forever" in keeper.look(LATER)["eve"]["beside"]
    assert not pods_of_eve(keeper)
    # Who wakes the berth has everything back.
    awake(keeper)
    eventually(lambda: any("forever" in pod for pod in pods_of_eve(keeper)), "the service is back")
    for kind in ("rayjobs", "rayservices", "rayclusters/own"):
        as_eve(keeper, "delete", *kind.split("/"), *(["--all"] if "/" not in kind else []))
    eventually(
        lambda: all(pod.startswith("eve-") for pod in pods_of_eve(keeper)),
        "only the berth's pods are left",
    )


@pytest.mark.usefixtures("eve")
def test_pods_that_do_not_end_are_named_and_close_the_berth(keeper: Keeper) -> None:
    """KubeRay ignores an object of another controller, as older policies let one become."""

    def patched(*patch: str) -> None:
        keeper.project.run("kubectl", "patch", "raycluster", "eve", "-n", "berth-eve", *patch)

    patched("--type=merge", "-p", '{"spec":{"managedBy":"kueue.x-k8s.io/multikueue"}}')
    assert keeper.look(LATER)["eve"]["did"] == "suspended"
    (name,) = pods_of_eve(keeper)
    assert keeper.look(LATER)["eve"]["closed"] == f"pod {name} does not end"
    assert (
        f"eve is closed: pod {name} does not end; after berth wake eve, pods start"
        in keeper.status()
    )
    patched("--type=json", "-p", '[{"op":"remove","path":"/spec/managedBy"}]')
    eventually(lambda: keeper.is_suspended("eve"), "eve is suspended")
    awake(keeper)


@pytest.mark.usefixtures("eve")
def test_who_creates_the_raycluster_again_resets_no_clock(keeper: Keeper, tmp_path: Path) -> None:
    before = keeper.cluster("eve")
    began = datetime.fromisoformat(before["metadata"]["creationTimestamp"])
    as_eve(keeper, "delete", "raycluster", "eve")
    eventually(lambda: not pods_of_eve(keeper), "the pods of the deleted RayCluster are gone")
    labels = before["metadata"]["labels"]
    again = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "eve", "labels": labels},
    }
    created_by_eve(keeper, tmp_path, again | {"spec": {**before["spec"], "suspend": False}})
    eventually(lambda: keeper.state("eve") == "ready", "the new RayCluster is ready")
    keeper.refresh_tokens()
    created = datetime.fromisoformat(keeper.cluster("eve")["metadata"]["creationTimestamp"])
    moment = began + timedelta(days=20, seconds=1)
    assert moment < created + timedelta(days=20)
    report = keeper.look(moment - keeper.now)["eve"]
    assert (report["did"], report["suspendedBy"]) == ("suspended", "expired")
