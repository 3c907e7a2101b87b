"""Leftovers of a killed update, a lost state or somebody's hand: the next update repairs them, or
says at once what does. `make chaos PART=releases` kills inside Helm operations at random.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from berth.components.cluster.api import ClusterApi
from berth.components.cluster.conflicts import conflict_advice
from berth.components.operators.record import Revision, revisions_of
from chaos.fleet import CASE, marked
from tests.lab.conftest import Lab
from tests.lab.project import SMALL, Project, brought_up, environment_settings, started

pytestmark = pytest.mark.lab

ENV = "left"
KUBERAY = "kuberay-operator"


def settings(lab: Lab, edit: str = "", **more: Any) -> dict[str, Any]:
    found = environment_settings(
        lab, {}, defaults={"worker": {"pool": "cpu", "gpus": 0, **SMALL["worker"]}}
    )
    found["operators"]["kuberay"] |= (
        {"values": {"annotations": {"berth-test/edit": edit}}} if edit else {}
    )
    return found | {"engineers": {"bob": {}, "carol": {}}} | more


@pytest.fixture(scope="module")
def project(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An environment that is up."""
    return brought_up(tmp_path_factory.mktemp("left"), lab, ENV, settings(lab))


def record(lab: Lab) -> list[Revision]:
    return revisions_of(ClusterApi(lab.kubeconfig.read_text()), KUBERAY, KUBERAY)


def statuses(lab: Lab) -> list[str]:
    return [revision.status for revision in record(lab)]


def edit_of(lab: Lab) -> str:
    """The edit that the operator's Deployment has."""
    (deployment,) = lab.get("deployments", "-n", KUBERAY)["items"]
    return str(
        deployment["spec"]["template"]["metadata"].get("annotations", {}).get("berth-test/edit", "")
    )


def killed_inside_helm(
    project: Project, status: str, *, plugin: signal.Signals = signal.SIGKILL
) -> list[int]:
    """Kill every process of a `pulumi up` when Helm's record has a status; send the Kubernetes
    plugin another signal. Return the pids of what is left.
    """
    mark = f"left-{time.monotonic_ns()}"
    with subprocess.Popen(
        ["pulumi", "up", "-s", ENV, "--yes", "--skip-preview"],
        cwd=project.folder,
        env=project.lab.env | {CASE: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        api = ClusterApi(project.lab.kubeconfig.read_text())
        while not any(found.status == status for found in revisions_of(api, KUBERAY, KUBERAY)):
            assert process.poll() is None, f"the update ended, and Helm's record never had {status}"
            time.sleep(0.05)
        late = []
        for one in marked(mark):
            with contextlib.suppress(psutil.Error):
                if plugin != signal.SIGKILL and "resource-kubernetes" in " ".join(one.cmdline()):
                    late.append(one)
                else:
                    one.kill()
        process.wait()
        # The engine's end would hang a stopped plugin up (setpgid(2), orphaned process groups).
        for one in late:
            one.send_signal(plugin)
    project.run("pulumi", "cancel", "-s", ENV, "--yes")
    assert statuses(project.lab)[-1] == status
    return [one.pid for one in marked(mark)]


def uids(lab: Lab) -> dict[str, str]:
    found = [
        *lab.get("deployments,pods", "-n", KUBERAY)["items"],
        *lab.get("rayclusters,pods", "-A")["items"],
    ]
    return {f"{item['kind']} {item['metadata']['name']}": item["metadata"]["uid"] for item in found}


def test_a_release_that_the_state_lacks_is_adopted(
    project: Project, lab: Lab, tmp_path: Path
) -> None:
    before = uids(lab)
    state = json.loads(project.run("pulumi", "stack", "export", "-s", ENV).stdout)
    state["deployment"]["resources"] = [
        item
        for item in state["deployment"]["resources"]
        if not item["type"].startswith("kubernetes:helm.sh/")
    ]
    for item in state["deployment"]["resources"]:
        item["dependencies"] = [
            urn for urn in item.get("dependencies", ()) if "helm.sh/" not in urn
        ]
        item.pop("propertyDependencies", None)
    (tmp_path / "state.json").write_text(json.dumps(state))
    project.run("pulumi", "stack", "import", "-s", ENV, "--file", str(tmp_path / "state.json"))
    done = project.up(ENV)
    assert "this update installs it over its objects" in done.stdout + done.stderr
    assert statuses(lab) == ["deployed"]
    assert uids(lab) == before


def test_an_upgrade_that_was_killed_is_done_again(project: Project, lab: Lab) -> None:
    project.write(ENV, environment=settings(lab, "one"))
    killed_inside_helm(project, "pending-upgrade")
    assert "pending-upgrade" in project.run("berth", "doctor", "-s", ENV, check=False).stdout
    done = project.up(ENV)
    assert "an update was killed at revision" in done.stdout + done.stderr
    assert statuses(lab)[-2:] == ["failed", "deployed"]
    assert edit_of(lab) == "one"


@pytest.mark.long
def test_a_refresh_after_the_kill_loses_no_edit(project: Project, lab: Lab) -> None:
    """A refresh takes the values of the killed revision over, as though they were in effect."""
    project.write(ENV, environment=settings(lab, "two"))
    killed_inside_helm(project, "pending-upgrade")
    project.run("pulumi", "refresh", "-s", ENV, "--yes", "--skip-preview")
    project.up(ENV)
    assert statuses(lab)[-1] == "deployed"
    assert edit_of(lab) == "two"
    assert project.preview(ENV) == {}


@pytest.mark.long
def test_an_edit_that_is_taken_back_after_the_kill_is_taken_back_on_the_cluster(
    project: Project, lab: Lab
) -> None:
    project.write(ENV, environment=settings(lab, "three"))
    killed_inside_helm(project, "pending-upgrade")
    project.write(ENV, environment=settings(lab, "two"))
    project.up(ENV)
    assert statuses(lab)[-1] == "deployed"
    assert edit_of(lab) == "two"
    assert project.preview(ENV) == {}


@pytest.mark.long
def test_what_the_plugin_of_a_killed_engine_has_deployed_is_taken_back(
    project: Project, lab: Lab, tmp_path: Path
) -> None:
    """The plugin goes on without its engine, which records nothing of it."""
    project.write(ENV, environment=settings(lab, "before"))
    project.up(ENV)
    state = tmp_path / "state.json"
    project.run("pulumi", "stack", "export", "-s", ENV, "--file", str(state))
    project.write(ENV, environment=settings(lab, "killed"))
    project.up(ENV)
    project.run("pulumi", "stack", "import", "-s", ENV, "--file", str(state))
    project.write(ENV, environment=settings(lab, "before"))
    project.up(ENV)
    assert edit_of(lab) == "before"
    assert project.preview(ENV) == {}


@pytest.mark.long
def test_an_update_waits_for_the_plugin_of_a_killed_engine(project: Project, lab: Lab) -> None:
    """The plugin is stopped inside Helm, so that it has more to do when the next update begins."""
    project.write(ENV, environment=settings(lab, "orphan"))
    (plugin,) = killed_inside_helm(project, "pending-upgrade", plugin=signal.SIGSTOP)
    project.write(ENV, environment=settings(lab, "next"))
    try:
        with started(project, "berth", "up", "-s", ENV, "--yes") as update:
            assert update.stderr is not None
            working = re.compile(rf"still be at work on it \(process .*\b{plugin}\b")
            assert any(map(working.search, update.stderr))
            os.kill(plugin, signal.SIGCONT)
            _, text = update.communicate()
    finally:
        # Without its engine it would stay for minutes.
        with contextlib.suppress(ProcessLookupError):
            os.kill(plugin, signal.SIGKILL)
    assert update.returncode == 0, text
    assert statuses(lab)[-2:] == ["superseded", "deployed"]
    assert edit_of(lab) == "next"
    assert project.preview(ENV) == {}


@pytest.mark.long
def test_an_installation_that_was_killed_is_done_again(project: Project, lab: Lab) -> None:
    project.destroy(ENV)
    killed_inside_helm(project, "pending-install")
    project.up(ENV)
    assert statuses(lab) == ["deployed"]
    assert project.preview(ENV) == {}


def test_nobody_waits_for_a_deleted_namespace_and_a_refresh_brings_it_back(
    project: Project, lab: Lab
) -> None:
    lab.run(["kubectl", "delete", "namespace", "berth-bob"])
    done = project.up(ENV, check=False)
    assert done.returncode != 0
    text = done.stdout + done.stderr
    assert "RayCluster berth-bob/bob does not exist: it was deleted outside of Pulumi" in text
    assert project.status(ENV)["missing"] == [{"kind": "engineer", "name": "bob"}]
    project.up(ENV, "--refresh")
    assert project.status(ENV)["missing"] == []


def pods_of(lab: Lab, engineer: str) -> str:
    """Limit of pods in a berth's quota, which its number of workers decides."""
    (quota,) = lab.get("resourcequotas", "-n", f"berth-{engineer}")["items"]
    return str(quota["spec"]["hard"]["pods"])


@pytest.mark.long
def test_a_conflict_of_field_managers_stops_no_other_berth(project: Project, lab: Lab) -> None:
    before = pods_of(lab, "carol")
    patch = json.dumps({"spec": {"hard": {"pods": "77"}}})
    quota = ("quota", "berth", "-n", "berth-bob")
    lab.run(["kubectl", "patch", *quota, "--type=merge", "--field-manager=gkebackup", "-p", patch])
    project.write(
        ENV, environment=settings(lab, engineers={"bob": {"workers": 2}, "carol": {"workers": 2}})
    )
    failed = project.up(ENV, "--continue-on-error", check=False)
    text = failed.stdout + failed.stderr
    assert failed.returncode != 0
    assert pods_of(lab, "carol") != before
    assert pods_of(lab, "bob") == "77"
    assert conflict_advice(text, ENV)[0] == "gkebackup has set .spec.hard.pods"
    project.run(
        "env",
        "PULUMI_K8S_ENABLE_PATCH_FORCE=true",
        "pulumi",
        "up",
        "-s",
        ENV,
        "--yes",
        "--skip-preview",
    )
    assert pods_of(lab, "bob") == pods_of(lab, "carol")
