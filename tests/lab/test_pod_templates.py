"""Patches of pod templates and values of charts.

Real: API server with its admission and quotas, scheduler, KubeRay, helm. The containers are
simulated. Long: an environment of its own, and the unit tests have the templates.
"""

import json
from typing import Any

import pytest

from berth.components.isolation.pod_security import ENFORCE
from tests.lab.conftest import Lab
from tests.lab.project import SMALL, Project, Settings, brought_up, environment_settings, eventually

pytestmark = [pytest.mark.lab, pytest.mark.long]

STACK = "patched"
LOGS = {
    "name": "logs",
    "image": "example.invalid/logs",
    "resources": {"requests": {"cpu": 3, "memory": "5Gi"}},
}
PROXY = {"name": "proxy", "image": "example.invalid/proxy", "restartPolicy": "Always"}
MOUNT = {"name": "logs", "mountPath": "/logs"}
TEMPLATE: Settings = {
    "metadata": {"annotations": {"example.com/scrape": "true"}, "labels": {"team": "ml"}},
    "spec": {
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "terminationGracePeriodSeconds": 45,
        "volumes": [{"name": "logs", "emptyDir": {"sizeLimit": "1536Mi"}}],
        "initContainers": [PROXY],
        "containers": [LOGS | {"volumeMounts": [MOUNT]}],
    },
}
ROOT: Settings = {
    "spec": {
        "containers": [
            {"name": "root", "image": "example.invalid/root", "securityContext": {"runAsUser": 0}}
        ]
    }
}


def environment(lab: Lab) -> Settings:
    settings = environment_settings(
        lab,
        {
            "cpu": {"machineType": "n2-standard-32", "nodes": 2},
            "gpu": {"machineType": "g2-standard-8", "nodes": 4},
        },
        defaults=SMALL | {"head": SMALL["head"] | {"podTemplate": TEMPLATE}},
        engineers={
            "alice": {"workers": 2, "worker": {"podTemplate": TEMPLATE}},
            "bob": {"workers": 0, "head": {"podTemplate": ROOT}},
        },
        services={
            "chat": {
                "serveConfig": {"applications": [{"name": "chat", "import_path": "chat:app"}]},
                "workers": 0,
                "worker": {"gpus": 1, "cpu": 1, "memory": "4Gi"},
                # There is no such application: its pods are what the tests look at.
                "wait": {"until": "submitted"},
            }
        },
    )
    # One value that berth leaves alone, and a default of the chart that null removes.
    settings["operators"]["kuberay"]["values"] = {
        "labels": {"team": "ml"},
        "podSecurityContext": None,
    }
    return settings


@pytest.fixture(scope="module")
def patched(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return brought_up(tmp_path_factory.mktemp("patched"), lab, STACK, environment(lab))


def pods(patched: Project, owner: str, kind: str) -> list[dict[str, Any]]:
    return patched.get("pods", "-n", f"berth-{owner}", "-l", f"ray.io/node-type={kind}")


def test_kuberay_makes_pods_with_the_patches_and_the_quota_admits_them(patched: Project) -> None:
    eventually(
        lambda: (
            len(running(pods(patched, "alice", "worker"))) == 2
            and running(pods(patched, "alice", "head")) != []
        ),
        "alice's pods run",
    )
    for pod in (*pods(patched, "alice", "worker"), *pods(patched, "alice", "head")):
        metadata = pod["metadata"]
        spec = pod["spec"]
        assert metadata["annotations"]["example.com/scrape"] == "true"
        assert (metadata["labels"]["team"], metadata["labels"]["berth/engineer"]) == ("ml", "alice")
        assert {"key": "spot", "operator": "Exists"} in spec["tolerations"]
        assert spec["terminationGracePeriodSeconds"] == 45
        assert [container["name"] for container in spec["containers"]][1:] == ["logs"]
        assert spec["initContainers"][0]["name"] == "proxy"
        for container in (spec["initContainers"][0], spec["containers"][1]):
            assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
    (quota,) = patched.get("resourcequotas", "-n", "berth-alice")
    # Three sidecars of three cores: more than the reserve of the quota, which counts them.
    assert quota["status"]["used"]["requests.cpu"] == "12300m"


def running(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [pod for pod in found if pod["status"].get("phase") == "Running"]


def test_the_level_follows_from_the_patch(patched: Project) -> None:
    levels = {
        item["metadata"]["name"]: item["metadata"]["labels"].get(ENFORCE)
        for item in patched.get("namespaces")
    }
    assert (levels["berth-alice"], levels["berth-bob"]) == ("restricted", "baseline")
    eventually(lambda: running(pods(patched, "bob", "head")) != [], "bob's head runs")
    (head,) = pods(patched, "bob", "head")
    # The patch of `defaults` is there too.
    assert [container["name"] for container in head["spec"]["containers"]] == [
        "ray-head",
        "logs",
        "root",
    ]


def test_a_second_up_and_a_refresh_change_nothing(patched: Project) -> None:
    patched.up(STACK, "--refresh", "--expect-no-changes")


def test_values_reach_the_chart(patched: Project) -> None:
    (deployment,) = patched.get("deployments", "-n", "kuberay-operator")
    assert deployment["metadata"]["labels"]["team"] == "ml"
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":v1.6.2")


def test_the_preview_names_the_restart_of_an_edit(patched: Project, lab: Lab) -> None:
    edited = environment(lab)
    edited["engineers"]["alice"]["worker"] = {
        "podTemplate": TEMPLATE | {"metadata": {"annotations": {"example.com/scrape": "false"}}}
    }
    patched.write(STACK, environment=edited)
    report = json.loads(patched.run("berth", "preview", "-s", STACK, "--json", check=False).stdout)
    patched.write(STACK, environment=environment(lab))
    (change,) = report["changes"]
    assert "restart" in json.dumps(change["effects"])
    assert "alice" in json.dumps(change)
