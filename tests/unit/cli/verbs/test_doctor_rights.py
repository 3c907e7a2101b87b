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
from tests.unit.cases import table
from tests.unit.loaded import environment_of
from tests.unit.serving import Handler, answer, body_of, kubeconfig, serving

TABLE = table(__file__, "doctor_rights.yaml")
BARE = TABLE["environments"]["bare"]
FULL = TABLE["environments"]["full"]


def rights(*groups: str) -> set[str]:
    """Rights of groups of the table."""
    return {right for group in groups for right in TABLE["rights"][group]}


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
            served = {
                "versions": [{"version": "v1"}],
                "resources": [{"name": kind} for kind in kinds],
            }
            return 200, served if self.claims else {}
        if path.startswith("/apis/apps/v1/daemonsets"):
            return 200, {
                "items": [{"metadata": {"name": name}} for name in self.daemon_sets],
                "metadata": {},
            }
        return 200, {
            "items": self.nodes if path.startswith("/api/v1/nodes") else [],
            "metadata": {},
        }


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


@pytest.mark.parametrize(("kind", "edit", "groups", "more"), TABLE["cases"])
def test_it_asks_for_what_the_settings_make(
    project: Path,
    cluster: Cluster,
    kind: str,
    edit: dict[str, Any],
    groups: list[str],
    more: list[str],
) -> None:
    asked = rights(*groups) | set(more)
    environment(project, TABLE["environments"][kind] | edit)
    found = of_cluster(doctor("shop"))
    assert ("fine", "you have the rights in the cluster that an update needs") in found
    assert (("fine", "NetworkPolicies are enforced by anetd") in found) == (
        "create networkpolicies" in asked
    )
    assert sorted(cluster.asked) == sorted(asked), "each once"


def test_what_is_missing_is_named(project: Path, cluster: Cluster) -> None:
    """Rights, an enforcer of NetworkPolicies, and GKE's metadata server where pods may ask it."""
    nodes = {"a": ("cpu", {METADATA_SERVER_LABEL: "true"}), "b": ("cpu", {}), "c": ("other", {})}
    cluster.nodes = [
        {
            "metadata": {"name": name, "labels": {POOL_LABEL: pool, **labels}},
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        for name, (pool, labels) in nodes.items()
    ]
    cluster.denied = {"create cronjobs", "create roles", "list events"}
    cluster.daemon_sets = ["fluentbit"]
    environment(project, FULL | {"isolation": {"metadataServer": True}})
    done = doctor("shop")
    assert done.exit_code == 1
    missing = [text for state, text in of_cluster(done) if state == "missing"]
    for words in (
        "in the cluster you may not create cronjobs, create roles, list events",
        "nothing in the cluster enforces NetworkPolicies",
        "pool cpu: nodes without GKE's metadata server (such as b)",
    ):
        assert [text for text in missing if text.startswith(words)], words


@pytest.mark.parametrize(("agent", "told"), [("anetd", ["10.4.0.0/14"]), ("calico-node", [])])
def test_ranges_by_which_berths_reach_no_pod_are_told(
    project: Path, cluster: Cluster, agent: str, told: list[str]
) -> None:
    cluster.nodes = [
        {
            "metadata": {"name": "a", "labels": {POOL_LABEL: "cpu"}},
            "spec": {"podCIDR": "10.4.2.0/24"},
        }
    ]
    cluster.daemon_sets = [agent]
    environment(project, FULL | {"isolation": {"reachable": ["10.4.0.0/14", "10.200.0.0/16"]}})
    texts = [text for state, text in of_cluster(doctor("shop")) if state == "warning"]
    assert [
        text.split()[0] for text in texts if "berths reach none of these pods by it" in text
    ] == told


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
    pulumi.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "stack output" ] && exec /bin/cat {project}/outputs.json\nexit 1\n'
    )
    pulumi.chmod(0o755)
    write(project, "alice", engineer={"environment": "shop"})
    cluster.denied = {"create namespaces"}
    done = doctor("alice")
    (lacking,) = [
        finding
        for finding in json.loads(done.stdout)["findings"]
        if finding["text"].startswith("in the cluster")
    ]
    assert (lacking["state"], lacking["text"]) == (
        "missing",
        "in the cluster you may not create namespaces",
    )
    assert lacking["remedy"].startswith("open a pull request with stacks/Pulumi.alice.yaml")
    assert set(cluster.asked) == rights("waiting", "berth", "apart", "road", "people")
    assert (
        road(done)[0]
        == "you can undo the isolation of berths: only admins and their CI should apply this stack"
    )


def road(done: Result) -> list[str]:
    return [
        finding["text"]
        for finding in json.loads(done.stdout)["findings"]
        if finding["topic"] == "road"
    ]


def test_nodes_are_looked_at_for_labels_and_taints(project: Path, cluster: Cluster) -> None:
    environment(project, BARE)
    labels = {"cloud.google.com/gke-nodepool": "cpu"}
    taints = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    cluster.nodes = [
        {"metadata": {"name": "a", "labels": labels}, "spec": {"taints": taints}, "status": {}}
    ]
    done = doctor("shop")
    assert done.exit_code == 1
    texts = [text for _, text in of_cluster(done)]
    assert any("pool cpu: nodes have the taint dedicated=ml:NoSchedule" in text for text in texts)
    assert not any("metadata server" in text for text in texts), "pods may not ask it here"
