"""Stand-in kubernetes plugin where there is no recording: conflicts, interrupts,
bad clusters.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.lab.project import eventually

if TYPE_CHECKING:
    from tests.lab.conftest import Lab

pytestmark = pytest.mark.lab

PROGRAM = Path(__file__).parent / "programs" / "resources"


@dataclass
class Stack:
    """The program as one stack, in a namespace of the same name."""

    lab: Lab
    folder: Path
    name: str

    def run(self, *command: str, check: bool = True) -> str:
        result = self.lab.run(list(command), cwd=self.folder, check=check)
        return result.stdout + result.stderr

    def pulumi(self, *command: str, check: bool = True) -> str:
        return self.run("pulumi", *command, "-s", self.name, "--non-interactive", "--color", "never", check=check)

    def config(self, **values: str) -> None:
        for key, value in values.items():
            self.run("pulumi", "config", "set", key, value, "-s", self.name)

    def up(self, *options: str, check: bool = True) -> str:
        return self.pulumi("up", "--yes", "--skip-preview", *options, check=check)

    def start_up(self) -> subprocess.Popen[str]:
        command = ["pulumi", "up", "-s", self.name, "--yes", "--skip-preview", "--non-interactive"]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.lab.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def plan(self) -> dict[str, dict[str, str]]:
        """Kinds of difference by resource and path; a creation has none."""
        steps = json.loads(self.lab.run(["pulumi", "preview", "-s", self.name, "--json"], cwd=self.folder).stdout)[
            "steps"
        ]
        return {
            step["urn"].rsplit("::", 1)[-1]: {path: one["kind"] for path, one in (step["detailedDiff"] or {}).items()}
            for step in steps
            if step["op"] != "same"
        }

    def get(self, *what: str) -> dict[str, Any]:
        return dict(json.loads(self.lab.run(["kubectl", "get", *what, "-n", self.name, "-o", "json"]).stdout))

    def releases(self) -> str:
        return self.run("helm", "list", "--all", "--namespace", self.name)

    def resources(self) -> dict[str, dict[str, Any]]:
        state = json.loads(self.lab.run(["pulumi", "stack", "export", "-s", self.name], cwd=self.folder).stdout)
        return {one["urn"].rsplit("::", 1)[-1]: one for one in state["deployment"]["resources"]}


@pytest.fixture
def make(lab: Lab, tmp_path: Path) -> Iterator[Callable[[str], Stack]]:
    created: list[Stack] = []

    def make(name: str) -> Stack:
        folder = tmp_path / name
        shutil.copytree(PROGRAM, folder)
        stack = Stack(lab, folder, name)
        created.append(stack)
        stack.run("pulumi", "stack", "init", name)
        stack.config(kubeconfig=str(lab.kubeconfig), namespace=name)
        return stack

    yield make
    # A namespace takes all that is in it along, and no other test has one of this name.
    for stack in created:
        stack.run("kubectl", "delete", "namespace", stack.name, "--ignore-not-found", "--wait=false")


def test_life_of_objects_with_names_of_their_own(make: Callable[[str], Stack]) -> None:
    stack = make("life")
    stack.config(unknown="true")
    assert set(stack.plan()) == {"resources-life", "first", "provider", "namespace", "fixed", "deployment"}
    stack.up()
    assert stack.get("configmap", "fixed")["data"] == {"key": "1"}
    assert stack.plan() == {}, "quantities that mean the same are no difference"
    stack.config(data="2")
    assert stack.plan() == {"fixed": {"data.key": "update-replace"}}
    output = stack.up()
    assert output.index("fixed deleted original") < output.index("fixed created replacement")
    stack.pulumi("destroy", "--yes", "--skip-preview")
    assert "NotFound" in stack.run("kubectl", "get", "namespace", "life", check=False)


def test_a_conflict_names_the_field_and_its_owner(make: Callable[[str], Stack]) -> None:
    stack = make("conflict")
    stack.up()
    scale = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "deployment", "namespace": "conflict"},
        "spec": {"replicas": 3},
    }
    file = stack.folder / "scale.json"
    file.write_text(json.dumps(scale))
    apply = ["kubectl", "apply", "--server-side", "--field-manager", "autoscaler", "--force-conflicts", "-f"]
    stack.run(*apply, str(file))
    stack.config(replicas="1")
    # The first plan cannot see it: until the first update, the fields are still those of the
    # creation.
    for output in (stack.up(check=False), stack.pulumi("preview", check=False)):
        assert 'Apply failed with 1 conflict: conflict with "autoscaler": .spec.replicas' in output
        assert "Traceback" not in output
    assert stack.get("deployment", "deployment")["spec"]["replicas"] == 3


def test_an_object_that_no_state_knows_is_taken_over_only_by_an_upsert(make: Callable[[str], Stack]) -> None:
    """The real plugin's `Creation` (pulumi-kubernetes 4.29.0, provider/pkg/await/await.go)."""
    stack = make("upsert")
    stack.up()
    uid = stack.get("configmap", "fixed")["metadata"]["uid"]
    upsert = "PULUMI_K8S_UPSERT_EXISTING_OBJECTS=true"

    def create_again(*environment: str, check: bool = True) -> str:
        known = stack.resources()
        if "fixed" in known:
            stack.pulumi("state", "delete", known["fixed"]["urn"], "--yes")
        command = ["pulumi", "up", "-s", stack.name, "--yes", "--skip-preview", "--non-interactive"]
        return stack.run("env", *environment, *command, check=check)

    assert 'configmaps "fixed" already exists' in create_again(check=False)
    create_again(upsert)
    assert stack.get("configmap", "fixed")["metadata"]["uid"] == uid
    stack.config(data="2")
    assert "server-side apply field conflict detected" in create_again(upsert, check=False)
    stack.config(data="1", upsert="false")
    assert "already exists" in create_again(upsert, check=False)
    stack.config(upsert="true")
    create_again()
    assert stack.get("configmap", "fixed")["metadata"]["uid"] == uid


def test_credentials_of_a_program(make: Callable[[str], Stack]) -> None:
    stack = make("credentials")
    document = yaml.safe_load(stack.lab.kubeconfig.read_text())
    user = document["users"][0]["user"]
    status: dict[str, str] = {}
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
    for ours, theirs in (("client-certificate", "clientCertificateData"), ("client-key", "clientKeyData")):
        if f"{ours}-data" in user:
            status[theirs] = base64.b64decode(user[f"{ours}-data"]).decode()
        else:
            status[theirs] = (stack.lab.kubeconfig.parent / user[ours]).read_text()
    (stack.folder / "answer.json").write_text(json.dumps(answer))
    command = {"apiVersion": answer["apiVersion"], "command": "cat", "args": [str(stack.folder / "answer.json")]}
    document["users"][0]["user"] = {"exec": command | {"interactiveMode": "Never"}}
    for entry in document["clusters"]:
        authority = entry["cluster"].get("certificate-authority")
        if authority:
            entry["cluster"]["certificate-authority"] = str(stack.lab.kubeconfig.parent / authority)
    (stack.folder / "exec.yaml").write_text(yaml.safe_dump(document))
    stack.config(kubeconfig=str(stack.folder / "exec.yaml"), release="0")
    stack.up()
    assert "deployed" in stack.releases()


def test_a_server_that_is_down_is_one_clear_error(make: Callable[[str], Stack]) -> None:
    stack = make("down")
    document = yaml.safe_load(stack.lab.kubeconfig.read_text())
    # Nothing ever listens on port 1.
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (stack.folder / "dead.yaml").write_text(yaml.safe_dump(document))
    stack.config(kubeconfig=str(stack.folder / "dead.yaml"))
    output = stack.up(check=False)
    diagnostics = output.partition("Diagnostics:")[2]
    assert diagnostics.count("the API server https://127.0.0.1:1 does not answer: ") == 1
    assert "Connection refused" in diagnostics
    assert "Retry" not in output


def test_a_failed_release_can_be_repaired(make: Callable[[str], Stack]) -> None:
    stack = make("mended")
    stack.config(release="1")
    output = stack.up(check=False)
    assert 'Helm release "mended/release" was created, but failed to initialize completely.' in output
    assert "context deadline exceeded" in output
    assert stack.resources()["release"]["outputs"]["status"]["status"] == "failed"
    stack.config(release="0")
    stack.up()
    assert stack.resources()["release"]["outputs"]["status"]["status"] == "deployed"
    assert stack.plan() == {}


def test_a_release_whose_helm_was_killed_is_repaired(make: Callable[[str], Stack]) -> None:
    stack = make("killed")
    stack.config(release="0")
    stack.up()
    stack.config(release="1", timeout="120")
    running = stack.start_up()
    eventually(lambda: "pending-upgrade" in stack.releases(), "helm is in the middle of its upgrade")
    helm = subprocess.run(
        ["pgrep", "--full", "helm upgrade release .*--namespace killed"], capture_output=True, text=True, check=True
    )
    os.kill(int(helm.stdout.split()[0]), signal.SIGKILL)
    output, _ = running.communicate(timeout=60)
    assert "helm upgrade was killed by signal 9" in output
    assert "pending-upgrade" in stack.releases()
    stack.config(release="0")
    assert 'an earlier helm did not finish with release "killed/release"; repairing it' in stack.up()
    assert "deployed" in stack.releases()


def test_a_killed_update_of_a_release_is_taken_up_again(make: Callable[[str], Stack]) -> None:
    stack = make("again")
    stack.config(release="1", timeout="120")
    running = stack.start_up()
    eventually(lambda: "pending-install" in stack.releases(), "helm is in the middle of its installation")
    # An object that the state does not have would be in the way of the next update.
    eventually(lambda: stack.resources().keys() >= {"fixed", "deployment"}, "the state has the other objects")
    running.kill()
    running.wait()
    # Sooner than helm's own time-out.
    eventually(lambda: "pending" not in stack.releases(), "the plugin has noticed and stopped helm", seconds=100)
    stack.pulumi("cancel", "--yes", check=False)
    stack.config(release="0")
    stack.up()
    assert stack.resources()["release"]["outputs"]["status"]["status"] == "deployed"


def test_an_interrupt_ends_waits_and_keeps_what_was_made(make: Callable[[str], Stack]) -> None:
    stack = make("interrupt")
    stack.config(replicas="1")
    running = stack.start_up()
    for line in running.stdout or []:
        if "Pods available" in line:
            break
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=60)
    assert 'Resource operation was cancelled for "deployment"' in output
    assert stack.resources()["deployment"]["id"] == "interrupt/deployment"
    stack.config(replicas="0")
    stack.up()
