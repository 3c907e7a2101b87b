"""A day of an engineer and an admin with `berth`, on one small environment, without a call of
`pulumi up`.
"""

import base64
import json
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import commands_of_messages
from tests.lab.conftest import Lab
from tests.lab.project import (
    SMALL,
    Done,
    Project,
    Settings,
    environment_settings,
    eventually,
    started,
)

pytestmark = pytest.mark.lab

CANARY = "canary-5b1f9e"
ENV = {"WANDB_API_KEY": CANARY, "GREETING": CANARY, "NCCL_DEBUG": "WARN"}
LOSSES = """\
    warning: berth bob restarts: KubeRay recreates all its pods, and what runs in them is lost; \
affects, as of the last update: berth bob (3 pods, 2 × L4)
    warning: berth dora is deleted, with everything that runs in it; \
affects, as of the last update: berth dora (1 pod)
"""
DORA = {
    "home": "5Gi",
    "workers": 0,
    "volumes": {"data": {"bucket": "my-bucket", "at": "/data", "readOnly": True}},
}

OF_THE_PLUGIN = re.compile("await logic|scheduled for deletion|initialization complete|Retry #")
"""Words of Pulumi's kubernetes plugin about objects of which there is no news."""


def environment(lab: Lab) -> Settings:
    settings = environment_settings(
        lab,
        {"dev": {"machineType": "g2-standard-48", "nodes": 1}},
        defaults=SMALL | {"worker": SMALL["worker"] | {"pool": "dev"}},
        engineers={"bob": {"workers": 2}, "dora": DORA},
    )
    return settings | {"cluster": settings["cluster"] | {"gcsFuse": True}}


@pytest.fixture(scope="module")
def day(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Environment with bob and dora, and amy with her own stack, created and destroyed by berth's
    commands.
    """
    project = Project.make(tmp_path_factory.mktemp("commands") / "project", lab)
    project.write("day", environment=environment(lab))
    project.run("pulumi", "stack", "init", "day", "--no-select")
    up = berth(project, "up", "-s", "day", "--yes", "--json")
    report = json.loads(up.stdout)
    assert report["result"] == "succeeded"
    done = {component["title"]: component["done"] for component in report["components"]}
    assert {"node pool dev", "KubeRay operator", "berth bob"} <= done.keys()
    assert all(done.values())
    assert "bob" in report["outputs"]["berths"]
    assert "kubeconfig" not in report["outputs"]
    own = berth(project, "create", "amy", "--environment", "day", "--yes")
    assert "✓ berth amy" in own.stderr
    assert "berth connect amy" in own.stdout
    assert not OF_THE_PLUGIN.search(up.stderr + own.stderr)
    yield project
    project.destroy("amy")
    gone = berth(project, "destroy", "-s", "day", "--yes", "--allow-destroy", "--json")
    assert json.loads(gone.stdout)["result"] == "succeeded"
    assert not OF_THE_PLUGIN.search(gone.stderr)
    assert project.resources("day") == []


def berth(project: Project, *arguments: str, code: int = 0) -> Done:
    done = project.run("berth", *arguments, check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def pods(day: Project, name: str) -> list[dict[str, Any]]:
    return day.get("pods", "-n", f"berth-{name}")


def test_an_engineer_comes_and_goes(day: Project) -> None:
    """The engineer is added while there is no room: the update waits, is watched, and is
    interrupted.
    """
    file = day.folder / "stacks" / "Pulumi.day.yaml"
    before = day.versions()
    text = file.read_text()
    nodes = [
        node["metadata"]["name"]
        for node in day.get("nodes", "-l", "cloud.google.com/gke-nodepool=dev")
    ]
    day.run("kubectl", "cordon", *nodes)
    berth(day, "engineer", "add", "carol", "-s", "day", "--gpus", "1")
    with started(day, "berth", "up", "-s", "day", "--yes") as update:
        with started(
            day, "berth", "status", "-s", "day", "--watch", "--interval", "0.5", "--json"
        ) as watch:
            waits = (item for line in watch.stdout or () for item in json.loads(line)["waiting"])
            # For a moment the head waits too, and the scheduler has not judged the worker yet.
            stuck = (
                item
                for item in waits
                if item["kind"] == "worker" and "cannot be scheduled" in item["reason"]
            )
            waiting = next(stuck, None)
            assert waiting, watch.stderr.read() if watch.stderr else ""
            watch.send_signal(signal.SIGINT)
            assert watch.wait(timeout=300) == 0
        assert (waiting["name"], waiting["kind"], waiting["pods"]) == ("carol", "worker", 1)
        output = ""
        for line in update.stderr or ():
            output += line
            if "carol: head ready, 0/1 workers ready" in line:
                update.send_signal(signal.SIGINT)
        assert update.wait(timeout=300) == 130, output
        assert "go on with: berth up -s day" in output
    day.run("kubectl", "uncordon", *nodes)
    removed = berth(day, "engineer", "remove", "carol", "-s", "day")
    assert (
        "RayCluster carol is up now, with 2 pods and 1 × L4, and what runs there is lost"
        in removed.stdout
    )
    assert yaml.safe_load(file.read_text()) == yaml.safe_load(text)
    day.up("day")  # no lock is left
    eventually(lambda: pods(day, "carol") == [], "carol's pods are gone")
    assert day.versions() == before


def test_an_edit_while_an_update_begins_is_not_done(day: Project) -> None:
    """The edit comes after the plan, and before the engine and its program read the settings."""
    file = day.folder / "stacks" / "Pulumi.day.yaml"
    text = file.read_text()
    before = day.versions()
    berth(day, "engineer", "add", "carol", "-s", "day", "--workers", "0")
    settings = yaml.safe_load(file.read_text())
    engineers = settings["config"]["berth:environment"]["engineers"]
    engineers["bob"]["env"] = {"SEEN": "1"}
    del engineers["dora"]
    edit = day.folder / "edit.yaml"
    edit.write_text(yaml.safe_dump(settings))
    late = day.folder / "late" / "pulumi"
    late.parent.mkdir()
    engine = shutil.which("pulumi", path=day.lab.env["PATH"])
    late.write_text(f'#!/bin/sh\n[ "$1" = up ] && cp {edit} {file}\nexec {engine} "$@"\n')
    late.chmod(0o755)
    path = f"PATH={late.parent}:{day.lab.env['PATH']}"
    done = day.run("env", path, "berth", "up", "-s", "day", "--yes", check=False)
    assert done.returncode == 1, done.stderr
    assert "were edited after this command had judged them; nothing of the edit" in done.stderr
    assert day.versions() == before
    # Plain Pulumi does the edit, and says first what it takes.
    preview = day.run("pulumi", "preview", "-s", "day")
    said = preview.stdout.partition("Diagnostics:")[2]
    assert LOSSES in said
    assert said.count("warning: ") == 2
    file.write_text(text)
    assert day.preview("day") == {}


def test_a_berth_sleeps_and_wakes_and_pulumi_does_not_mind(day: Project) -> None:
    report = berth(day, "suspend", "bob")
    assert "bob is suspended; back with: berth wake bob" in report.stdout
    assert "simulated" in report.stderr
    assert pods(day, "bob") == []
    assert json.loads(berth(day, "suspend", "bob", "--json").stdout)["changed"] is False
    # Pulumi's own commands see no difference, and an update leaves the berth suspended.
    day.up("day", "--refresh", "--expect-no-changes")
    assert pods(day, "bob") == []
    assert "berth wake bob" in berth(day, "connect", "bob", code=1).stderr
    assert "bob is ready" in berth(day, "wake", "bob").stdout
    assert len(pods(day, "bob")) == 3
    assert "awake already" in berth(day, "wake", "bob").stdout


def test_status_says_what_restarted_and_why(day: Project) -> None:
    """The lab's nodes evict nobody: the pod's state and the event are those of a kubelet."""
    (head,) = [pod for pod in pods(day, "bob") if "-head-" in pod["metadata"]["name"]]
    name = head["metadata"]["name"]
    words = "The node was low on resource: ephemeral-storage."
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    evicted = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.evicted", "namespace": "berth-bob"},
        "involvedObject": {"kind": "Pod", "name": name, "namespace": "berth-bob"},
        "type": "Warning",
        "reason": "Evicted",
        "message": words,
        "lastTimestamp": at,
    }
    (day.folder / "event.json").write_text(json.dumps(evicted))
    day.run("kubectl", "create", "-f", "event.json")
    failed = json.dumps({"status": {"phase": "Failed", "reason": "Evicted", "message": words}})
    day.run(
        "kubectl", "patch", "pod", name, "-n", "berth-bob", "--subresource=status", f"-p={failed}"
    )
    eventually(lambda: name not in str(pods(day, "bob")), "KubeRay replaced the head")
    status = day.run("berth", "status", "-s", "day", check=False)
    assert "bob: its head restarted" in status.stdout
    assert f"jobs from before are lost: Evicted: {words}" in status.stdout
    eventually(
        lambda: not day.run("berth", "status", "-s", "day", check=False).returncode,
        "bob is ready again",
    )


@pytest.mark.parametrize("program", ["kubectl", "pulumi", "helm"])
def test_commands_that_messages_show_are_the_programs_own(day: Project, program: str) -> None:
    """kubectl's are typed, those that change something as a dry run; of the others the help is
    asked, which is refused for an option or a command that they do not have.
    """
    commands = [typed for shown in commands_of_messages(program) if (typed := _typed(shown.text))]
    assert commands
    wrong = {}
    for command in sorted(set(commands)):
        done = day.run(*command, check=False)
        lines = done.stderr.splitlines()
        if program == "helm" and done.returncode:
            wrong[command] = lines
        elif problems := [line for line in lines if _NOT_A_COMMAND.search(line)]:
            wrong[command] = problems
    assert wrong == {}


_VERBS = {
    "kubectl": {
        *("config", "create", "delete", "describe", "exec", "get", "label", "logs", "patch"),
        *("port-forward",),
    },
    "pulumi": {"destroy", "login", "preview", "refresh", "stack", "up", "version", "whoami"},
    "helm": {"show", "uninstall"},
}
_CHANGES = {"create", "delete", "label", "patch"}
_NOT_A_COMMAND = re.compile(
    # A kind that is not berth's is in no lab, and `1` stands for a value.
    r"unknown (flag|shorthand flag|command)"
    r"|doesn't have a resource type \"(?!1\"|workloads|cluster)"
)


def _typed(text: str) -> tuple[str, ...]:
    """Return the words of a command as it is typed here; none of a text that is no command."""
    try:
        program, *words = shlex.split(re.split(r", | \(|…| > ", text)[0])
    except ValueError:
        return ()
    if len(words) < 2 or words[0] not in _VERBS[program]:
        return ()
    if program != "kubectl":
        return (program, *words, "--help")
    options = ["--dry-run=server"] if words[0] in _CHANGES else []
    return (program, words[0], *options, *words[1:])


def test_connect_and_logs_name_the_simulated_parts(day: Project) -> None:
    by_hand = berth(day, "connect", "-s", "amy", "--print").stdout
    assert (
        "kubectl port-forward --namespace berth-amy service/amy-head-svc 8265:8265 10001:10001"
        in by_hand
    )
    assert "RAY_AUTH_TOKEN_PATH=token ray job submit --address http://127.0.0.1:8265" in by_hand
    assert (
        "is on a simulated node and has no log"
        in berth(day, "logs", "bob", "--worker", "2", code=1).stderr
    )
    lines = berth(day, "logs", "bob", "--operator", "--tail", "5").stdout.splitlines()
    assert len(lines) == 5
    assert all(line.startswith("20") for line in lines), "time, level and text, no JSON"


def test_a_stack_that_nobody_names_is_the_selected_one_or_the_only_one_that_is_up(
    day: Project,
) -> None:
    """Stacks `day` and `later` have bob, and `later` was never brought up."""
    later = day.folder / "stacks" / "Pulumi.later.yaml"
    later.write_text((day.folder / "stacks" / "Pulumi.day.yaml").read_text())
    try:
        several = berth(day, "status", code=2).stderr
        assert "no stack is named or selected, and amy, day are up" in several
        assert "pulumi stack select STACK" in several
        day.run("pulumi", "stack", "select", "day")
        assert [
            row["name"] for row in json.loads(berth(day, "status", "--json").stdout)["berths"]
        ] == [
            "amy",
            "bob",
            "dora",
        ]
        assert "berth-bob" in berth(day, "connect", "bob", "--print").stdout
    finally:
        later.unlink()
        day.run("pulumi", "stack", "unselect")


MORE = f"    secrets: {{HF_TOKEN: {{}}}}\n    env: {json.dumps(ENV)}\n"


def own_file(day: Project) -> Path:
    return day.folder / "stacks" / "Pulumi.amy.yaml"


def test_a_berth_waits_for_its_secret_and_every_command_says_how_to_set_it(day: Project) -> None:
    file = own_file(day)
    assert (
        "no setting of amy names" in berth(day, "secret", "set", "amy", "HF_TOKEN", code=2).stderr
    )
    file.write_text(
        file.read_text().replace("    environment: day\n", f"    environment: day\n{MORE}")
    )
    command = "berth secret set amy HF_TOKEN"
    with started(day, "berth", "up", "-s", "amy", "--yes", "--allow-destroy") as update:
        waits = next((line for line in update.stderr or () if command in line), "")
        assert 'CreateContainerConfigError: secret "hf-token" not found' in waits
        assert command in day.run("berth", "status", "-s", "amy", check=False).stdout
        assert command in berth(day, "secret", "list", "amy", code=3).stderr
        assert "is empty" in berth(day, "secret", "set", "amy", "HF_TOKEN", code=2).stderr
        done = subprocess.run(
            command.split(),
            cwd=day.folder,
            env=day.lab.env,
            input=f"{CANARY}\n",
            text=True,
            capture_output=True,
            check=True,
        )
        assert "HF_TOKEN of amy is set, in Secret hf-token" in done.stderr
        assert update.wait(timeout=300) == 0
    (row,) = json.loads(berth(day, "secret", "list", "amy", "--json").stdout)
    place = {
        "variable": "HF_TOKEN",
        "secret": "hf-token",
        "key": "value",
        "login": False,
        "secret_manager": "",
    }
    assert row == {**place, "present": True}
    (secret,) = [
        item
        for item in day.get("secrets", "-n", "berth-amy")
        if item["metadata"]["name"] == "hf-token"
    ]
    assert base64.b64decode(secret["data"]["value"]).decode() == CANARY
    assert secret["data"]["value"] not in day.run("pulumi", "stack", "export", "-s", "amy").stdout


def test_a_diagnosis_has_everything_but_secrets(day: Project) -> None:
    """Amy's stack has more settings and a secret, by the test before."""
    secrets = {
        item["metadata"]["name"]: item.get("data", {})
        for item in day.get("secrets", "-n", "berth-amy")
    }
    encoded = secrets["amy"]["auth_token"], secrets["hf-token"]["value"]
    kubeconfig = yaml.safe_load(day.outputs("day")["kubeconfig"])
    keys = [
        str(value)
        for user in kubeconfig["users"]
        for value in user["user"].values()
        if isinstance(value, str)
    ]
    report = json.loads(berth(day, "diagnose", "amy", "-o", "amy.md", "--json").stdout)
    assert report["missing"] == []
    text = (day.folder / "amy.md").read_text()
    for title in (
        "Settings of stack amy",
        "Plan of stack amy",
        "RayCluster",
        "Pods",
        "Events",
        "The operator's log",
    ):
        assert f"## {title}" in text
    assert all(name in text for name in ("GREETING", "WANDB_API_KEY", "WARN", "hf-token"))
    for planted in (
        CANARY,
        *encoded,
        *(base64.b64decode(value).decode() for value in encoded),
        *keys,
    ):
        assert planted not in text


def test_a_secret_is_removed_once(day: Project) -> None:
    assert "is removed" in berth(day, "secret", "remove", "amy", "HF_TOKEN").stderr
    assert "has no value" in berth(day, "secret", "remove", "amy", "HF_TOKEN").stderr
    own_file(day).write_text(own_file(day).read_text().replace(MORE, ""))


def test_a_home_outlives_the_pods_and_the_berth(day: Project) -> None:
    def claims() -> list[tuple[str, str, str]]:
        found = day.get("persistentvolumeclaims", "-n", "berth-dora")
        return [
            (item["metadata"]["uid"], item["spec"]["volumeName"], item["status"]["phase"])
            for item in found
        ]

    (home,) = claims()
    assert home[2] == "Bound"
    (head,) = pods(day, "dora")
    assert {"name": "home", "mountPath": "/mnt/home"} in head["spec"]["containers"][0][
        "volumeMounts"
    ]
    # The API server and KubeRay take the pod with its bucket, in the strictest level.
    assert head["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"
    (bucket,) = [volume["csi"] for volume in head["spec"]["volumes"] if "csi" in volume]
    assert bucket["volumeAttributes"]["bucketName"] == "my-bucket"
    assert (
        "is still there"
        in berth(day, "home", "remove", "dora", "-s", "day", "--yes", code=2).stderr
    )

    removed = berth(day, "engineer", "remove", "dora", "-s", "day")
    assert "but the home (5Gi" in removed.stdout
    day.up("day")
    assert pods(day, "dora") == []
    assert day.get("resourcequotas", "-n", "berth-dora") == []
    assert claims() == [home]
    (listed,) = json.loads(berth(day, "home", "list", "-s", "day", "--json").stdout)
    assert (listed["name"], listed["size"], listed["in_use"]) == ("dora", "5Gi", False)
    berth(day, "home", "remove", "dora", "-s", "day", code=3)

    day.write("day", environment=environment(day.lab))
    day.up("day")
    assert claims() == [home]
    assert len(pods(day, "dora")) == 1

    forgotten = berth(day, "engineer", "remove", "dora", "-s", "day", "--forget-home")
    assert "also the home (5Gi" in forgotten.stdout
    # The running head keeps the home until the update has deleted the head.
    assert len(claims()) == 1
    day.up("day")
    eventually(lambda: claims() == [], "the home is gone with the pods")
    assert "is deleted" in berth(day, "home", "remove", "dora", "-s", "day", "--yes").stderr
    eventually(lambda: day.get("persistentvolumes") == [], "the disk is gone")


AMYS = ("berth/stack=amy", "berth/engineer=amy", "berth/environment=day")
NOBODYS = ("berth/stack-", "berth/engineer-", "berth/environment=other")


@pytest.mark.parametrize("labels", [AMYS, pytest.param(NOBODYS, marks=pytest.mark.long)])
def test_labels_that_an_engineer_may_set_change_nothing(
    day: Project, labels: tuple[str, ...]
) -> None:
    """Bob claims to be amy's, or to be nobody's; his namespace says whose he is."""
    before = day.status("day")
    day.run(
        "kubectl", "label", "rayclusters,pods", "--all", "-n", "berth-bob", "--overwrite", *labels
    )
    after = day.status("day")
    # An earlier test removes dora; the long one may run alone.
    found = [(ray["name"], ray["stack"]) for ray in after["berths"] if ray["name"] != "dora"]
    assert found == [("amy", "amy"), ("bob", "day")]
    assert [node["holders"] for node in after["nodes"]] == [
        node["holders"] for node in before["nodes"]
    ]
    assert [(ray["name"], ray["namespace"]) for ray in day.status("amy")["berths"]] == [
        ("amy", "berth-amy")
    ]
    own = json.loads(berth(day, "destroy", "-s", "amy", "--yes", "--json", code=3).stdout)
    assert [(loss["name"], loss["namespace"]) for loss in own["lost"]] == [("amy", "berth-amy")]
    assert "--namespace berth-bob " in berth(day, "connect", "bob", "--print").stdout


def test_destroy_names_all_berths_first(day: Project) -> None:
    before = day.versions()
    refused = berth(day, "destroy", "-s", "day", "--yes", "--json", code=3)
    report = json.loads(refused.stdout)
    assert (report["result"], [item["name"] for item in report["lost"]]) == (
        "refused",
        ["amy", "bob"],
    )
    assert "amy: ready, 2 pods, of stack amy" in refused.stderr
    assert "bob: ready, 3 pods, of stack day" in refused.stderr
    assert "first, for each: berth destroy -s amy" in refused.stderr
    assert day.versions() == before
