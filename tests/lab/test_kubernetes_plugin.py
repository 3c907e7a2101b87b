"""The stand-in kubernetes plugin compared with recordings of the real one.

The program of the recordings ran with the real plugin (4.29, SDK 4.34.2, Kubernetes 1.36); its
plans, states and messages are here as expected values. Where the recordings are beside the clone,
whole states are compared too. `programs/kubernetes` is that program without the parts that berth
never registers: a Patch resource and waits by annotation.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.project import eventually

if TYPE_CHECKING:
    from tests.lab.conftest import Lab

pytestmark = pytest.mark.lab

HERE = Path(__file__).parent
RECORDINGS = HERE.parents[2] / "shared" / "upstream" / "kubernetes-plugin"
STACK = "contract"
WAITS = {"pulumi.com/waitFor", "pulumi.com/timeoutSeconds"}
SIGNATURE = "4dabf18193072939515e22adb298388d"

IMMUTABLE = (
    'the Kubernetes API server reported that "rec/nics" failed to fully initialize or become live: '
    'ResourceClaimTemplate.resource.k8s.io "nics" is invalid: spec: Invalid value: '
    '{"Spec":{"Devices":{"Requests":[{"Name":"nic","Exactly":{"DeviceClassName":"rec-dranet","Selectors":null,'
    '"AllocationMode":"ExactCount","Count":4,"AdminAccess":null,"Tolerations":null,"Capacity":null},'
    '"FirstAvailable":null}],"Constraints":null,"Config":null}}}: field is immutable'
)
NOT_CREATED = 'resource "{urn}" was not successfully created by the Kubernetes API server: '


@dataclass
class Project:
    """The program in a folder of its own, as one stack of the lab."""

    lab: Lab
    folder: Path
    stack: str

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.lab.run(list(command), cwd=self.folder, check=check)

    def pulumi(self, *command: str, check: bool = True) -> str:
        result = self.run("pulumi", *command, "-s", self.stack, "--non-interactive", "--color", "never", check=check)
        return result.stdout + result.stderr

    def step(self, name: str) -> None:
        self.run("pulumi", "config", "set", "step", name, "-s", self.stack)

    def plan(self, *options: str, check: bool = True) -> dict[str, Any]:
        plan = self.run("pulumi", "preview", "-s", self.stack, "--json", *options, check=check).stdout
        return dict(json.loads(plan))

    def up(self, *options: str, check: bool = True) -> str:
        return self.pulumi("up", "--yes", "--skip-preview", *options, check=check)

    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.run("pulumi", "stack", "export", "-s", self.stack, "--show-secrets").stdout))

    def kubectl(self, *command: str) -> str:
        return self.run("kubectl", *command).stdout


def make_project(lab: Lab, folder: Path, stack: str) -> Project:
    shutil.copytree(HERE / "programs" / "kubernetes", folder)
    project = Project(lab, folder, stack)
    project.run("pulumi", "stack", "init", stack)
    for key, value in (("kubeconfig", str(lab.kubeconfig)), ("step", "create")):
        project.run("pulumi", "config", "set", key, value, "-s", stack)
    return project


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Lab]:
    """The lab with the kind RayCluster, and nothing that acts on its objects."""
    if lab.run(["kubectl", "get", "crd", "rayclusters.ray.io"], check=False).returncode == 0:
        yield lab
        return
    file = str(next(lab.home.charts.rglob("*rayclusters.yaml")))
    # Too long for the annotation of `kubectl apply`.
    lab.run(["kubectl", "create", "-f", file])
    # `kubectl wait` fails on an object that has no status yet.
    established = ["kubectl", "wait", "--for=condition=Established", "crd/rayclusters.ray.io", "--timeout=10s"]
    eventually(lambda: lab.run(established, check=False).returncode == 0, "the kind RayCluster is established")
    yield lab
    lab.run(["kubectl", "delete", "-f", file])


@pytest.fixture(scope="module")
def replay(cluster: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Recorded sequence, run once: plan, output and state of each step."""
    project = make_project(cluster, tmp_path_factory.mktemp("replay") / "project", STACK)
    seen: dict[str, Any] = {"project": project}
    try:
        seen["plan create"] = project.plan()
        seen["up create"] = project.up()
        seen["state"] = project.state()
        seen["plan again"] = project.plan()
        project.step("update")
        seen["plan update"] = project.plan(check=False)
        # A plan ends at its first error, with whatever it has seen by then.
        seen["plan update of others"] = project.plan("--exclude", "**::rct")
        seen["up update"] = project.up("--continue-on-error", check=False)
        seen["state updated"] = project.state()
        project.kubectl("label", "namespace", "rec", "team=drift", "--overwrite")
        replicas = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 3}]
        project.kubectl("patch", "raycluster", "dev", "-n", "rec", "--type=json", "-p", json.dumps(replicas))
        project.kubectl("delete", "secret", "tok", "-n", "rec")
        seen["refresh"] = project.pulumi("refresh", "--preview-only", "--diff")
        seen["up after drift"] = project.up("--refresh", "--continue-on-error", check=False)
        seen["label after drift"] = project.kubectl("get", "namespace", "rec", "-o", "jsonpath={.metadata.labels.team}")
        seen["managers after drift"] = json.loads(
            project.kubectl("get", "raycluster", "dev", "-n", "rec", "-o", "json", "--show-managed-fields")
        )["metadata"].get("managedFields")
        project.step("errors")
        seen["errors"] = project.up(check=False)
        seen["state errors"] = project.state()
        seen["destroy"] = project.pulumi("destroy", "--yes", "--skip-preview")
        seen["left"] = project.kubectl("get", "namespaces,deviceclasses", "-o", "name")
        yield seen
    finally:
        project.pulumi("destroy", "--yes", "--skip-preview", check=False)


def by_name(steps: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {step["urn"].rsplit("::", 1)[-1]: step for step in steps if not step.get("delete")}


def resources(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return by_name(state["deployment"]["resources"])


def details(plan: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {
        name: {path: difference["kind"] for path, difference in step["detailedDiff"].items()}
        for name, step in by_name(plan["steps"]).items()
        if step["detailedDiff"]
    }


def operations(plan: dict[str, Any]) -> dict[str, str]:
    return {name: step["op"] for name, step in by_name(plan["steps"]).items() if step["op"] != "same"}


def comparable(value: Any) -> Any:
    """A state's value without what differs from run to run, and without annotations that the
    stand-in refuses.
    """
    if isinstance(value, dict):
        return {
            key: comparable(item)
            for key, item in without_waits(value).items()
            if key not in {"uid", "resourceVersion", "managedFields", "status", "kubeconfig"} and "imestamp" not in key
        }
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"(pulumi-kubernetes-|cm-)[0-9a-f]{8}", r"\1########", value)
    return value


def without_waits(value: Any) -> Any:
    """A recorded value without the annotations by which the recorded program waits."""
    if isinstance(value, list):
        return [without_waits(item) for item in value]
    if not isinstance(value, dict):
        return value
    remaining = {key: without_waits(item) for key, item in value.items() if key not in WAITS}
    return {key: item for key, item in remaining.items() if key != "annotations" or item}


def test_first_plan_creates_everything(replay: dict[str, Any]) -> None:
    names = {"contract-contract", "lab", "ns", "cm", "dc", "rct", "ray", "rel", "sec"}
    assert operations(replay["plan create"]) == dict.fromkeys(names, "create")
    config_map = by_name(replay["plan create"]["steps"])["cm"]["newState"]["inputs"]["metadata"]
    assert re.fullmatch(r"cm-[0-9a-f]{8}", config_map["name"])
    assert config_map["annotations"] == {"pulumi.com/autonamed": "true"}


def test_a_plan_never_shows_a_secret(replay: dict[str, Any]) -> None:
    assert by_name(replay["plan create"]["steps"])["sec"]["newState"]["inputs"]["data"] == "[secret]"
    assert "canary" not in json.dumps(replay["plan create"])


def test_second_plan_changes_nothing(replay: dict[str, Any]) -> None:
    assert operations(replay["plan again"]) == {}
    assert replay["plan again"]["changeSummary"] == {"same": 9}


def test_plan_of_an_update_names_only_what_changed(replay: dict[str, Any]) -> None:
    assert details(replay["plan update of others"]) == {
        "ns": {"metadata.labels.team": "update"},
        "cm": {"data.k": "update-replace"},
        "ray": {"spec.workerGroupSpecs[0].replicas": "update"},
        "rel": {"values.color": "update"},
    }
    assert details(replay["plan update"])["rct"] == {"spec.spec.devices.requests[0].exactly.count": "update"}
    flags = [
        one["inputDiff"] for step in replay["plan update"]["steps"] for one in (step["detailedDiff"] or {}).values()
    ]
    assert not any(flags)


def test_plan_asks_the_server_and_shows_its_refusal(replay: dict[str, Any]) -> None:
    messages = [one["message"] for one in replay["plan update"]["diagnostics"] if one["severity"] == "error"]
    assert messages[0] == f"error: Preview failed: 1 error occurred:\n\t* {IMMUTABLE}\n\n\n"


def test_ids_and_hidden_fields_of_the_state(replay: dict[str, Any]) -> None:
    state = resources(replay["state"])
    assert state["ns"]["id"] == "rec"
    assert state["rct"]["id"] == "rec/nics"
    assert state["ray"]["id"] == "rec/dev"
    assert state["rel"]["id"] == "rec/rec-rel"
    for name in ("ns", "cm", "dc", "rct", "ray", "sec"):
        outputs = state[name]["outputs"]
        assert re.fullmatch(r"pulumi-kubernetes-[0-9a-f]{8}", outputs["__fieldManager"])
        assert outputs["__initialApiVersion"] == state[name]["inputs"]["apiVersion"]
        assert outputs["__inputs"] == state[name]["inputs"]
    assert set(state["ns"]["outputs"]) == {
        *("__fieldManager", "__initialApiVersion", "__inputs", "apiVersion", "kind", "metadata", "spec", "status"),
    }


def test_secrets_are_secret_in_the_state(replay: dict[str, Any]) -> None:
    secret = resources(replay["state"])["sec"]
    assert "stringData" not in secret["inputs"]
    for data in (secret["inputs"]["data"], secret["outputs"]["data"], secret["outputs"]["__inputs"]["data"]):
        assert json.loads(data["plaintext"]) == {"t": "Y2FuYXJ5"}
        assert data[SIGNATURE]


def test_creation_is_one_request_and_updates_are_applied(replay: dict[str, Any]) -> None:
    first = resources(replay["state"])["ns"]["outputs"]
    assert [(one["manager"], one["operation"]) for one in first["metadata"]["managedFields"]] == [
        ("pulumi-kubernetes", "Update")
    ]
    updated = resources(replay["state updated"])["ns"]["outputs"]
    assert updated["__fieldManager"] == first["__fieldManager"]
    assert [(one["manager"], one["operation"]) for one in updated["metadata"]["managedFields"]] == [
        (first["__fieldManager"], "Apply")
    ]


def test_release_in_the_state(replay: dict[str, Any]) -> None:
    first, updated = (resources(replay[key])["rel"]["outputs"] for key in ("state", "state updated"))
    assert first["resourceNames"] == {"ConfigMap/v1": ["rec-rel-cm"]}
    assert first["status"] == {
        "appVersion": "1",
        "chart": "demo",
        "name": "rec-rel",
        "namespace": "rec",
        "revision": 1,
        "status": "deployed",
        "version": "0.1.0",
    }
    assert json.loads(first["__inputs"]["plaintext"]) == resources(replay["state"])["rel"]["inputs"]
    assert (updated["status"]["revision"], updated["values"]) == (2, {"color": "green"})


def test_replacement_of_an_autonamed_object_is_created_first(replay: dict[str, Any]) -> None:
    output = replay["up update"]
    assert output.index("ConfigMap cm created replacement") < output.index("ConfigMap cm replaced")
    old, new = (resources(replay[key])["cm"]["id"] for key in ("state", "state updated"))
    assert old != new
    assert re.fullmatch(r"rec/cm-[0-9a-f]{8}", new)


def test_a_refused_update_is_recorded_as_failed(replay: dict[str, Any]) -> None:
    assert resources(replay["state updated"])["rct"]["initErrors"] == [IMMUTABLE]
    assert f"error: 1 error occurred:\n    \t* {IMMUTABLE}" in replay["up update"]


def test_refresh_finds_drift(replay: dict[str, Any]) -> None:
    assert '~ team: "b" => "drift"' in replay["refresh"]
    assert "~ replicas: 2 => 3" in replay["refresh"]
    assert "- kubernetes:core/v1:Secret: (delete)" in replay["refresh"]
    assert "canary" not in replay["refresh"]
    assert "Y2FuYXJ5" not in replay["refresh"]
    assert "    ~ 2 to update\n    - 1 to delete\n    3 changes." in replay["refresh"]


def test_the_next_update_undoes_drift_and_takes_kubectls_fields(replay: dict[str, Any]) -> None:
    assert replay["label after drift"] == "b"
    assert "Secret sec created" in replay["up after drift"]
    managers = {one["manager"] for one in replay["managers after drift"] if not one.get("subresource")}
    assert managers == {resources(replay["state"])["ray"]["outputs"]["__fieldManager"]}


def failed(output: str, name: str) -> str:
    """Text of the diagnostics about one resource."""
    text = output.partition("Diagnostics:\n")[2]
    found = re.search(rf"\({name}\):\n(.*?)(?=\n  \S+ \(|\nResources:)", text, re.DOTALL)
    assert found, f"nothing of {name} in:\n{output}"
    return found.group(1)


def test_an_existing_object(replay: dict[str, Any]) -> None:
    urn = f"urn:pulumi:{STACK}::contract::kubernetes:core/v1:Namespace::dup"
    output = failed(replay["errors"], "dup")
    assert NOT_CREATED.format(urn=urn) + 'namespaces "rec" already exists' in output
    assert "The resource already exists in the cluster. This can happen when:" in output
    assert "set upsertExistingObjects on the provider" in output


def test_an_object_that_the_server_refuses(replay: dict[str, Any]) -> None:
    assert 'spec.headGroupSpec.rayStartParams in body must be of type object: "integer"' in failed(
        replay["errors"], "invalid"
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [("nocrd", 'no matches for kind "Thing" in version "nope.io/v1"'), ("nons", 'namespaces "absent" not found')],
)
def test_a_missing_prerequisite_is_retried(replay: dict[str, Any], name: str, reason: str) -> None:
    for attempt in range(6):
        assert f"Retry #{attempt}; creation failed: {reason}" in replay["errors"]
    assert "Retry #6" not in replay["errors"]
    assert failed(replay["errors"], name).endswith(f"{reason}\n")


def test_destroy_leaves_nothing(replay: dict[str, Any]) -> None:
    assert "namespace/rec\n" not in replay["left"]
    assert "rec-dranet" not in replay["left"]


needs_recordings = pytest.mark.skipif(
    not RECORDINGS.exists(), reason=f"no recordings of the real plugin at {RECORDINGS}"
)


@needs_recordings
def test_states_agree_with_the_recorded_ones(replay: dict[str, Any]) -> None:
    for ours, file in (("state", "2-state.json"), ("state updated", "6-state-updated.json")):
        recorded = resources(json.loads((RECORDINGS / file).read_text()))
        for name in ("ns", "cm", "dc", "rct", "ray", "rel", "sec"):
            mine = resources(replay[ours])[name]
            assert comparable(mine["inputs"]) == comparable(recorded[name]["inputs"]), (file, name)
            assert comparable(mine["outputs"]) == comparable(recorded[name]["outputs"]), (file, name)


@needs_recordings
def test_plans_agree_with_the_recorded_ones(replay: dict[str, Any]) -> None:
    recorded = json.loads((RECORDINGS / "4-preview-update.json").read_text())
    theirs = by_name(recorded["steps"])
    for name, plan in (("ns", "plan update of others"), ("rct", "plan update")):
        mine = by_name(replay[plan]["steps"])
        assert mine[name]["op"] == theirs[name]["op"]
        assert mine[name]["detailedDiff"] == theirs[name]["detailedDiff"]
    created = by_name(json.loads((RECORDINGS / "1-preview-create.json").read_text())["steps"])
    for name, step in by_name(replay["plan create"]["steps"]).items():
        if name in created and name != "lab":
            assert comparable(step["newState"].get("inputs")) == comparable(created[name]["newState"].get("inputs"))


def recorded(file: str) -> str:
    """Recorded text with the test's names in place of the recorded ones."""
    text = (RECORDINGS / file).read_text()
    return text.replace("lab::rec::", f"{STACK}::contract::").replace("rec-lab", f"contract-{STACK}")


def diagnostics(text: str) -> dict[str, str]:
    """Diagnostics that a run prints at its end, as one line by the resource's name."""
    body = text.partition("Diagnostics:\n")[2].partition("\nResources:")[0]
    found = re.findall(r"^  \S+ \(([\w-]+)\):\n(.*?)(?=^  \S+ \([\w-]+\):$|\Z)", body, re.MULTILINE | re.DOTALL)
    return {name: " ".join(output.split()) for name, output in found}


def differences(text: str) -> dict[str, list[str]]:
    """Lines of a `--diff` by the resource's type, without the parts that differ from run to run."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.partition("\n    [urn=")[2].partition("\nResources:")[0].splitlines()[1:]:
        if match := re.match(r"    \S+ ?(kubernetes:\S+): \((.*)\)$", line):
            lines = found.setdefault(match[1], [match[2]])
        elif not re.match(r"\s+(\[(id|urn|provider)=|- (creationTimestamp|time|resourceVersion|uid) *:)", line):
            lines.append(line.strip())
    return found


@needs_recordings
def test_errors_agree_with_the_recorded_ones(replay: dict[str, Any]) -> None:
    theirs, ours = diagnostics(recorded("9-errors.txt")), diagnostics(replay["errors"])
    assert set(theirs) >= {"nocrd", "nons", "invalid", "dup", "slow"}
    del theirs["slow"]
    # The engine may come to the refused update before another error ends the run.
    ours.pop("rct", None)
    assert ours == theirs


def summary(text: str) -> str:
    """The lines with which a run counts its resources."""
    return text.partition("\nResources:\n")[2].partition("\n\n")[0]


@needs_recordings
def test_a_failed_update_agrees_with_the_recorded_one(replay: dict[str, Any]) -> None:
    theirs, ours = diagnostics(recorded("5-up-update.txt")), diagnostics(replay["up update"])
    assert theirs["rct"].startswith("error: 1 error occurred:")
    assert ours["rct"] == theirs["rct"]
    after = diagnostics(recorded("8-up-after-drift.txt"))
    assert diagnostics(replay["up after drift"])["rct"] == after["rct"]
    for file, output in (("5-up-update.txt", "up update"), ("8-up-after-drift.txt", "up after drift")):
        # The recorded program has one resource more, which stays the same.
        theirs_less = re.sub(
            r"(\d+) unchanged", lambda match: f"{int(match[1]) - 1} unchanged", summary(recorded(file))
        )
        assert summary(replay[output]) == theirs_less, file


@needs_recordings
def test_drift_agrees_with_the_recorded_one(replay: dict[str, Any]) -> None:
    theirs, ours = differences(recorded("7-refresh-drift.txt")), differences(replay["refresh"])
    assert len(theirs) == 3
    assert ours == theirs


@needs_recordings
def test_a_refused_plan_agrees_with_the_recorded_one(replay: dict[str, Any]) -> None:
    theirs = json.loads(recorded("4-preview-update.json"))
    assert replay["plan update"]["diagnostics"] == theirs["diagnostics"]
    again = json.loads(recorded("3-preview-noop.json"))
    assert replay["plan again"]["changeSummary"] == {"same": again["changeSummary"]["same"] - 1}
    # The engine leaves an empty list out.
    assert replay["plan again"].get("diagnostics", []) == again["diagnostics"] == []


@needs_recordings
def test_a_state_of_the_real_plugin_is_usable(
    cluster: Lab, replay: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert "ns deleted" in replay["destroy"]
    project = make_project(cluster, tmp_path_factory.mktemp("adopted") / "project", "adopted")
    try:
        project.up()
        ours = project.state()
        adopted = adopt(ours, json.loads((RECORDINGS / "2-state.json").read_text()))
        file = project.folder / "adopted.json"
        file.write_text(json.dumps(adopted))
        project.pulumi("stack", "import", "--file", str(file))
        assert operations(project.plan()) == {}
        project.step("update")
        plan = project.plan(check=False)
        assert details(plan)["rct"] == {"spec.spec.devices.requests[0].exactly.count": "update"}
        project.step("create")
        project.up("--refresh")
        assert resources(project.state())["ns"]["outputs"]["__fieldManager"] == "pulumi-kubernetes-49a19817"
    finally:
        project.pulumi("destroy", "--yes", "--skip-preview", check=False)


def adopt(ours: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """State of the test with recorded inputs and outputs, under the test's names."""
    theirs = resources(recorded)
    for name, mine in resources(ours).items():
        if name not in {"ns", "dc", "rct", "ray", "rel", "sec", "cm"}:
            continue
        text = json.dumps({key: theirs[name][key] for key in ("inputs", "outputs")})
        if name == "cm":
            text = text.replace(theirs[name]["id"].split("/")[1], mine["id"].split("/")[1])
        mine.update(without_waits(json.loads(text)))
    return ours
