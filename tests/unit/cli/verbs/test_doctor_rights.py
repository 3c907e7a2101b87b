"""berth doctor asks a cluster for the rights that an update of the stack needs, and for no
others: the program itself tells which.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.components.hardware.names import METADATA_SERVER_LABEL, POOL_LABEL
from berth.stacks.settings.contract import contract_of
from berth.stacks.settings.resolve import resolve_environment
from tests.unit.loaded import environment_of
from tests.unit.serving import Handler, answer, body_of, kubeconfig, serving

WAITING = {"list events", "list nodes", "list pods", "watch rayclusters"}
BY_CHARTS = {
    "create clusterrolebindings",
    "create clusterroles",
    "create customresourcedefinitions",
    "patch customresourcedefinitions",
    "create daemonsets",
    "create deployments",
    "create rolebindings",
    "create roles",
    "create secrets",
    "create serviceaccounts",
    "create services",
}
BERTH = {"create limitranges", "create namespaces", "create rayclusters", "create resourcequotas"}
CLUSTER_WIDE = {
    "create configmaps",
    "create priorityclasses",
    "create validatingadmissionpolicies",
    "create validatingadmissionpolicybindings",
}
APART = {"create networkpolicies"}

BARE = {
    "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": {"min": 0, "max": 2}}},
    "operators": {"kuberay": {"source": "present"}},
    "isolation": {"networkPolicies": False, "quotas": False},
    "defaults": {"worker": {"gpus": 0, "pool": "cpu", "cpu": 1, "memory": "1Gi"}},
    "engineers": {"bob": {}},
}
FULL = {
    "pools": {
        "cpu": {"machineType": "n2-standard-16", "nodes": {"min": 0, "max": 2}},
        "train": {"machineType": "a4-highgpu-8g", "nodes": {"min": 0, "max": 2}, "rdma": "networks"},
    },
    "defaults": {
        "worker": {"gpus": 0, "pool": "cpu", "cpu": 1, "memory": "1Gi"},
        "access": {"users": ["bob@example.com"]},
        "lifecycle": {"idle": "2h"},
    },
    "engineers": {"bob": {}},
}


@dataclass
class Cluster:
    """An API server that lets its user do all but what is denied, and records what it was asked
    for.
    """

    denied: set[str] = field(default_factory=set)
    claims: bool = True
    nodes: list[dict[str, Any]] = field(default_factory=list)
    daemon_sets: list[str] = field(default_factory=lambda: ["anetd", "fluentbit"])
    asked: list[str] = field(default_factory=list)
    kubeconfig: str = ""

    def answer(self, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        if path.endswith("/selfsubjectaccessreviews"):
            attributes = body["spec"]["resourceAttributes"]
            right = f"{attributes['verb']} {attributes['resource']}"
            self.asked.append(right)
            return 201, {"status": {"allowed": right not in self.denied}}
        if path == "/version":
            return 200, {"gitVersion": "v1.36.0"}
        if path.startswith("/apis/resource.k8s.io"):
            kinds = ["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"]
            served = {"versions": [{"version": "v1"}], "resources": [{"name": kind} for kind in kinds]}
            return 200, served if self.claims else {}
        if path.startswith("/apis/apps/v1/daemonsets"):
            return 200, {"items": [{"metadata": {"name": name}} for name in self.daemon_sets], "metadata": {}}
        return 200, {"items": self.nodes if path.startswith("/api/v1/nodes") else [], "metadata": {}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    state = Cluster()

    def handle(handler: Handler) -> None:
        status, body = state.answer(handler.path, body_of(handler))
        answer(handler, body, status)

    with serving(handle) as url:
        state.kubeconfig = kubeconfig(url)
        yield state


@pytest.fixture
def project(tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "kubeconfig").write_text(cluster.kubeconfig)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(project: Path, stack: str, **config: dict[str, Any]) -> None:
    text = yaml.safe_dump({"config": {f"berth:{key}": value for key, value in config.items()}})
    (project / f"stacks/Pulumi.{stack}.yaml").write_text(text)


def environment(project: Path, settings: dict[str, Any]) -> dict[str, Any]:
    values = {**settings, "cluster": {"existing": {"kubeconfig": "kubeconfig"}}}
    write(project, "shop", environment=values)
    return values


def doctor(stack: str) -> Result:
    return CliRunner().invoke(app, ["doctor", "-s", stack, "--json"])


def of_cluster(done: Result) -> list[tuple[str, str]]:
    assert done.stdout, done.stderr
    return [
        (finding["state"], finding["text"])
        for finding in json.loads(done.stdout)["findings"]
        if finding["topic"] == "cluster"
    ]


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        (BARE, {*WAITING, *BERTH, *CLUSTER_WIDE}),
        (BARE | {"operators": {}}, {*WAITING, *BERTH, *BY_CHARTS, *CLUSTER_WIDE}),
        (
            FULL,
            {
                *WAITING,
                *BERTH,
                *BY_CHARTS,
                *APART,
                *CLUSTER_WIDE,
                "create cronjobs",
                "create deviceclasses",
            },
        ),
    ],
    ids=["bare", "with an operator", "full"],
)
def test_it_asks_for_what_the_settings_make(
    project: Path, cluster: Cluster, settings: dict[str, Any], asked: set[str]
) -> None:
    environment(project, settings)
    found = of_cluster(doctor("shop"))
    assert ("fine", "you have the rights in the cluster that an update needs") in found
    assert (("fine", "NetworkPolicies are enforced by anetd") in found) == ("create networkpolicies" in asked)
    assert sorted(cluster.asked) == sorted(asked), "each once"


def test_what_may_not_be_done_is_named(project: Path, cluster: Cluster) -> None:
    environment(project, FULL)
    cluster.denied = {"create cronjobs", "create roles", "list events"}
    done = doctor("shop")
    assert done.exit_code == 1
    assert ("missing", "in the cluster you may not create cronjobs, create roles, list events") in of_cluster(done)


def test_network_policies_that_nothing_enforces_are_missing(project: Path, cluster: Cluster) -> None:
    environment(project, FULL)
    cluster.daemon_sets = ["fluentbit"]
    done = doctor("shop")
    assert done.exit_code == 1
    (report,) = [text for state, text in of_cluster(done) if "NetworkPolicies" in text and state == "missing"]
    assert report.startswith("nothing in the cluster enforces NetworkPolicies")


def test_nodes_that_give_their_credentials_are_missing_where_pods_may_ask_for_them(
    project: Path, cluster: Cluster
) -> None:
    def node(name: str, pool: str, **labels: str) -> dict[str, Any]:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        return {"metadata": {"name": name, "labels": {POOL_LABEL: pool, **labels}}, "spec": {}, "status": ready}

    cluster.nodes = [node("a", "cpu", **{METADATA_SERVER_LABEL: "true"}), node("b", "cpu"), node("c", "other")]
    environment(project, FULL)
    assert not [text for _, text in of_cluster(doctor("shop")) if "metadata server" in text]
    environment(project, FULL | {"isolation": {"metadataServer": True}})
    (report,) = [text for state, text in of_cluster(doctor("shop")) if "metadata server" in text]
    assert report.startswith("pool cpu: nodes without GKE's metadata server (such as b)")


def test_what_the_program_itself_finds_missing_is_said(project: Path, cluster: Cluster) -> None:
    environment(project, FULL)
    cluster.claims = False
    (report,) = [text for state, text in of_cluster(doctor("shop")) if state == "missing"]
    assert report.startswith("the cluster serves no version of resource.k8s.io")
    assert cluster.asked == []


def test_an_engineers_own_stack_needs_what_is_in_a_berth(project: Path, cluster: Cluster) -> None:
    values = environment(project, FULL)
    settings = environment_of("shop", values).settings
    contract = contract_of(settings, "shop", resolve_environment(settings))
    outputs = {
        "environment": contract.model_dump(mode="json", by_alias=True, exclude_none=True),
        "kubeconfig": cluster.kubeconfig,
        "clusterId": "it",
    }
    (project / "outputs.json").write_text(json.dumps(outputs))
    pulumi = project / "bin/pulumi"
    pulumi.write_text(f'#!/bin/sh\n[ "$1 $2" = "stack output" ] && exec /bin/cat {project}/outputs.json\nexit 1\n')
    pulumi.chmod(0o755)
    write(project, "alice", engineer={"environment": "shop"})
    cluster.denied = {"create namespaces"}
    done = doctor("alice")
    (lacking,) = [
        finding for finding in json.loads(done.stdout)["findings"] if finding["text"].startswith("in the cluster")
    ]
    assert (lacking["state"], lacking["text"]) == ("missing", "in the cluster you may not create namespaces")
    assert lacking["remedy"].startswith("open a pull request with stacks/Pulumi.alice.yaml")
    assert set(cluster.asked) == {*WAITING, *BERTH, *APART, *ROAD, "create rolebindings", "create roles"}
    assert road(done)[0] == "you can undo the isolation of berths: only admins and their CI should apply this stack"


ROAD = {
    "create pods",
    "patch rayclusters",
    "create rayclusters",
    "create rayjobs",
    "patch resourcequotas",
    "patch networkpolicies",
    "patch roles",
    "delete namespaces",
}


def road(done: Result) -> list[str]:
    return [finding["text"] for finding in json.loads(done.stdout)["findings"] if finding["topic"] == "road"]


def test_nodes_are_looked_at_for_labels_and_taints(project: Path, cluster: Cluster) -> None:
    environment(project, BARE)
    labels = {"cloud.google.com/gke-nodepool": "cpu"}
    taints = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    cluster.nodes = [{"metadata": {"name": "a", "labels": labels}, "spec": {"taints": taints}, "status": {}}]
    done = doctor("shop")
    assert done.exit_code == 1
    assert any("pool cpu: nodes have the taint dedicated=ml:NoSchedule" in text for _, text in of_cluster(done))
