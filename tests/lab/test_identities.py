"""Identities of CI and of people against a real API server: what each may do, and no more."""

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.identities import login
from tests.lab.project import (
    HEAD,
    NETWORK,
    SMALL,
    Done,
    Project,
    Settings,
    brought_up,
    environment_settings,
)
from tests.unit.cases import table

pytestmark = pytest.mark.lab

STACK = "known"
PREVIEWER = "berth-preview@berth-test.iam.gserviceaccount.com"
DRIFTED = 4
BOB = {
    "access": {"users": ["bob@example.com"]},
    "lifecycle": {"idle": "2h"},
    "home": {"size": "10Gi"},
}
NEST = {"access": {"users": ["nest@example.com"]}, "nestedContainers": "cdi-per-pod"}


def environment(lab: Lab) -> Settings:
    return environment_settings(
        lab,
        {"dev": {"machineType": "g2-standard-24", "nodes": 3, "gpuAllocation": "dra"}},
        "gpuDra",
        network=NETWORK,
        previewers=[PREVIEWER],
        defaults={"worker": SMALL["worker"], "head": HEAD},
        engineers={"bob": BOB, "auto": {"workers": {"min": 0, "max": 1}}, "nest": NEST},
    )


@pytest.fixture(scope="module")
def known(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Environment, and the isolation of kim's berth: all of it the admins'."""
    project = brought_up(tmp_path_factory.mktemp("identities"), lab, STACK, environment(lab))
    for kind in ("namespace ci", "serviceaccount kim -n ci"):
        lab.run(["kubectl", "create", *kind.split()])
    access = {"users": ["kim@example.com"], "serviceAccounts": ["ci/kim"]}
    kim = {
        "environment": STACK,
        "name": "kim",
        "part": "isolation",
        "workers": {"min": 1, "max": 2},
    }
    project.write("kim-isolation", engineer={**kim, "access": access})
    project.up("kim-isolation")
    return project


@pytest.fixture(scope="module")
def previewer(known: Project, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Beginning of commands of CI's preview identity."""
    return login(known.lab, tmp_path_factory.mktemp("previewer"), PREVIEWER)


def preview(known: Project, by: list[str], *options: str) -> Done:
    return known.run(*by, "berth", "preview", "-s", STACK, *options, check=False)


def test_the_preview_identity_plans_what_an_admin_plans(
    known: Project, previewer: list[str]
) -> None:
    settings = copy.deepcopy(environment(known.lab))
    settings["engineers"]["bob"]["workers"] = 2
    settings["engineers"]["eve"] = {}
    settings["isolation"] = {"storage": "2Ti"}
    known.write(STACK, environment=settings)
    plans: list[Any] = []
    for by in ([], previewer):
        done = preview(known, by, "--json")
        assert done.returncode == 0, done.stderr
        assert "forbidden" not in done.stderr.lower()
        plans.append(json.loads(done.stdout))
    known.write(STACK, environment=environment(known.lab))
    assert plans[0] == plans[1]
    assert plans[0]["counts"]["create"] > 0
    versions = json.loads(
        known.run(*previewer, "berth", "upgrade", "plan", "-s", STACK, "--json", check=False).stdout
    )
    asked = {one["part"] for one in versions["versions"] if one["asked"] == "cluster"}
    assert {"control-plane", "nodes", "kuberay-crds", "ray"} <= asked
    assert ["secrets" in text for text in versions["refused"]] == [True]


def test_the_api_server_judges_what_the_preview_identity_proposes(
    known: Project, previewer: list[str]
) -> None:
    """Only a server-side dry run knows that a claim cannot shrink."""
    settings = copy.deepcopy(environment(known.lab))
    settings["engineers"]["bob"]["home"] = {"size": "5Gi"}
    known.write(STACK, environment=settings)
    done = preview(known, previewer)
    known.write(STACK, environment=environment(known.lab))
    assert done.returncode == 1, done.stdout
    assert "PersistentVolumeClaim" in done.stderr
    assert "less than" in done.stderr


def test_the_preview_identity_is_what_pulumi_asks(known: Project, previewer: list[str]) -> None:
    """Whoever is nobody for the cluster cannot look for drift: the test of drift would fail."""
    me = known.run(*previewer, "kubectl", "auth", "whoami", "-o", "json")
    assert json.loads(me.stdout)["status"]["userInfo"]["username"] == PREVIEWER


REQUESTS: dict[str, list[str]] = table(__file__, "preview_identity.yaml")


@pytest.fixture(scope="module")
def refusal(
    known: Project, previewer: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """Answer of the API server to a request that it must not grant."""
    token = tmp_path_factory.mktemp("token") / "token.json"
    token.write_text(
        json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    )
    (head,) = known.get("pods", "-n", "berth-bob", "-l", "ray.io/node-type=head")
    named = {"HEAD": head["metadata"]["name"], "TOKEN": str(token)}

    def refused(request: str) -> str:
        words = (named.get(word, word) for word in request.split())
        return known.run(*previewer, "kubectl", *words, check=False).stderr

    return refused


@pytest.mark.parametrize("asked", [asked for requests in REQUESTS.values() for asked in requests])
def test_the_preview_identity_is_refused(refusal: Callable[[str], str], asked: str) -> None:
    assert "forbidden" in refusal(asked).lower()


@pytest.fixture
def too_many_rights(known: Project) -> Iterator[None]:
    """Rights that somebody else gives to the preview identity, such as `container.developer`."""
    known.run(
        "kubectl",
        "create",
        "clusterrolebinding",
        "mine",
        "--clusterrole=cluster-admin",
        f"--user={PREVIEWER}",
    )
    yield
    known.run("kubectl", "delete", "clusterrolebinding", "mine")


@pytest.mark.usefixtures("too_many_rights")
def test_the_preview_identity_changes_nothing_with_whatever_rights(
    refusal: Callable[[str], str],
) -> None:
    answers = {asked: refusal(asked) for asked in REQUESTS["writes"]}
    assert [
        asked for asked, answer in answers.items() if "an identity that previews may" not in answer
    ] == []


IDENTITIES = {
    "an admin, and CI's deploy identity": ("admin", "berth-bob"),
    "CI's preview identity": (PREVIEWER, "berth-bob"),
    "an engineer, in the own berth": ("bob@example.com", "berth-bob"),
    "an engineer, in the own berth with nested containers": ("nest@example.com", "berth-nest"),
    "an engineer, in another berth": ("bob@example.com", "berth-nest"),
    "an engineer who runs Pulumi, in the own berth": ("kim@example.com", "berth-kim"),
    "a pod of a berth, in that berth": ("system:serviceaccount:berth-bob:default", "berth-bob"),
    "Ray's autoscaler, in its berth": ("system:serviceaccount:berth-auto:auto", "berth-auto"),
    "the keeper, in a berth with a lifecycle": (
        "system:serviceaccount:berth-keeper:keeper",
        "berth-bob",
    ),
}
"""Identities of docs/security.md: name for the API server, and namespace of the question."""


def rights(known: Project, user: str, namespace: str) -> dict[str, set[str]]:
    """Verbs by resource, as `kubectl auth can-i --list` prints them."""
    groups = ["system:authenticated", *(["system:masters"] if user == "admin" else [])]
    if user.startswith("system:serviceaccount:"):
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    by = [f"--as={user}", *(f"--as-group={group}" for group in groups)]
    done = known.lab.run(
        ["kubectl", *by, "create", "--validate=false", "-f", "-", "-o", "json"],
        stdin=json.dumps(review),
    )
    found: dict[str, set[str]] = {}
    for rule in json.loads(done.stdout)["status"]["resourceRules"]:
        parts = rule["resources"], rule["apiGroups"], rule.get("resourceNames") or [""]
        for resource, group, name in itertools.product(*parts):
            key = f"{resource}.{group}".rstrip(".") + f" {name}".rstrip()
            found.setdefault(key, set()).update(rule["verbs"])
    return found


def test_identities_may_do_what_the_page_lists(
    known: Project, golden: Callable[[str, Any], None]
) -> None:
    everybody = rights(known, "stranger@example.com", "berth-bob")
    assert everybody.keys() <= {f"selfsubject{kind}.{group}" for kind, group in ANYBODY}
    lists: dict[str, dict[str, list[str]]] = {}
    for identity, (user, namespace) in IDENTITIES.items():
        by_verbs = lists.setdefault(identity, {})
        for resource, verbs in sorted(rights(known, user, namespace).items()):
            if resource not in everybody:
                by_verbs.setdefault(", ".join(sorted(verbs)), []).append(resource)
    golden("identities", lists)


ANYBODY = (
    ("accessreviews", "authorization.k8s.io"),
    ("rulesreviews", "authorization.k8s.io"),
    ("reviews", "authentication.k8s.io"),
)
"""Questions about oneself, which every user of a cluster may ask."""


@pytest.fixture
def own(known: Project, tmp_path: Path) -> Path:
    """Kubeconfig of kim, who has her Roles in the berth and nothing else."""
    config = yaml.safe_load(known.lab.kubeconfig.read_text())
    token = known.run("kubectl", "create", "token", "kim", "-n", "ci").stdout.strip()
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    path = tmp_path / "own"
    path.write_text(json.dumps(config))
    return path


def test_the_role_that_ships_is_enough_for_the_engineers_half_and_for_no_more(
    known: Project, own: Path, tmp_path: Path
) -> None:
    lab = known.lab
    # A project of her own: other state, other key, and nothing of the environment's.
    hers = Project.make(tmp_path / "hers", lab)
    (tmp_path / "state").mkdir()
    backend = (tmp_path / "state").as_uri()
    environ = [
        f"KUBECONFIG={own}",
        f"PULUMI_BACKEND_URL={backend}",
        "PULUMI_CONFIG_PASSPHRASE=hers",
    ]

    def alone(*command: str, refused: bool = False) -> str:
        done = lab.run(["env", *environ, *command], hers.folder, check=False)
        assert (done.returncode != 0) == refused, done.stdout + done.stderr
        return done.stdout + done.stderr

    settings = {
        "environment": STACK,
        "part": "cluster",
        "login": {"kubeconfig": str(own)},
        "workers": 2,
    }
    hers.write("kim", engineer=settings)
    alone("pulumi", "stack", "init", "kim", "--no-select")
    alone("pulumi", "up", "-s", "kim", "--yes", "--skip-preview")
    (cluster,) = known.get("rayclusters", "-n", "berth-kim")
    assert cluster["status"]["state"] == "ready"
    state = json.loads(alone("pulumi", "stack", "export", "-s", "kim"))["deployment"]
    managed = {resource["type"] for resource in state["resources"] if not resource.get("external")}
    assert not [
        name for name in managed if name.startswith("kubernetes:") and "RayCluster" not in name
    ]
    # The admins' half has the templates of her workers' claims.
    hers.write("kim", engineer={**settings, "workers": 1, "worker": {"gpus": 2}})
    refused = " ".join(alone("pulumi", "preview", "-s", "kim", refused=True).split())
    assert "namespace berth-kim has no template all-gpu-" in refused
    assert "or ask the admins to change theirs" in refused
    hers.write("kim", engineer=settings)
    assert "service/kim-head-svc" in alone("berth", "connect", "-s", "kim", "--print")
    findings = json.loads(alone("berth", "doctor", "-s", "kim", "--json"))["findings"]
    road, may, *_ = [finding["text"] for finding in findings if finding["topic"] == "road"]
    assert (
        road
        == "you apply this stack, which has the RayCluster only; the admins' stack owns namespace"
        " berth-kim"
    )
    assert (
        may == "in namespace berth-kim you may run commands in pods, change the RayCluster, create"
        " RayClusters, create RayJobs; you may not change the quota, change the network"
        " policies, change Roles, delete the namespace"
    )
    # By her program's account she has the rights that the page lists for her, and none elsewhere.
    account = "system:serviceaccount:ci:kim"
    everybody = rights(known, "stranger@example.com", "berth-bob")
    assert (
        rights(known, account, "berth-kim")
        == rights(known, "kim@example.com", "berth-kim")
        != everybody
    )
    for elsewhere in ("berth-bob", "kube-system"):
        assert rights(known, account, elsewhere) == everybody
    # No admin has prepared another namespace for her.
    hers.write("mallory", engineer={**settings, "name": "bob"})
    alone("pulumi", "stack", "init", "mallory", "--no-select")
    refused = " ".join(
        alone("pulumi", "up", "-s", "mallory", "--yes", "--skip-preview", refused=True).split()
    )
    assert "namespace berth-bob is not ready for you" in refused
    assert "an admin brings it up first: a stack with `part: isolation`, `name: bob`" in refused
    alone("pulumi", "destroy", "-s", "kim", "--yes", "--skip-preview")
    assert known.get("rayclusters", "-n", "berth-kim") == []
    assert known.get("networkpolicies", "-n", "berth-kim"), (
        "the isolation stays, and so does its owner"
    )


def test_the_preview_identity_finds_drift(known: Project, previewer: list[str]) -> None:
    """Drift as that identity sees it: what it may not read does not count as gone."""
    known.run("kubectl", "delete", "resourcequota", "berth", "-n", "berth-bob")
    done = preview(known, previewer, "--refresh", "--expect-no-changes", "--json")
    assert done.returncode == DRIFTED, done.stdout + done.stderr
    changes = json.loads(done.stdout)["changes"]
    assert [(change["operation"], change["type"]) for change in changes] == [
        ("create", "kubernetes:core/v1:ResourceQuota")
    ]
