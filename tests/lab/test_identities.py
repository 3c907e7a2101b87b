"""Identities of CI and of people against a real API server: what each may do, and no more."""

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.identities import login
from tests.lab.project import NETWORK, Done, Project, Settings, brought_up, environment_settings

pytestmark = pytest.mark.lab

STACK = "known"
PREVIEWER = "berth-preview@berth-test.iam.gserviceaccount.com"
DRIFTED = 4
BOB = {"access": {"users": ["bob@example.com"]}, "lifecycle": {"idle": "2h"}, "home": {"size": "10Gi"}}
NEST = {"access": {"users": ["nest@example.com"]}, "nestedContainers": "cdi-per-pod"}


def environment(lab: Lab) -> Settings:
    return environment_settings(
        lab,
        {"dev": {"machineType": "g2-standard-24", "nodes": 3}},
        network=NETWORK,
        previewers=[PREVIEWER],
        engineers={"bob": BOB, "auto": {"workers": {"min": 0, "max": 1}}, "nest": NEST},
    )


@pytest.fixture(scope="module")
def known(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = brought_up(tmp_path_factory.mktemp("identities"), lab, STACK, environment(lab))
    access = {"users": ["kim@example.com"]}
    project.write(
        "kim-isolation", engineer={"environment": STACK, "name": "kim", "part": "isolation", "access": access}
    )
    project.up("kim-isolation")
    return project


@pytest.fixture(scope="module")
def previewer(known: Project, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Beginning of commands of CI's preview identity."""
    return login(known.lab, tmp_path_factory.mktemp("previewer"), PREVIEWER)


def preview(known: Project, by: list[str], *options: str) -> Done:
    return known.run(*by, "berth", "preview", "-s", STACK, *options, check=False)


def test_the_preview_identity_plans_what_an_admin_plans(known: Project, previewer: list[str]) -> None:
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
    versions = json.loads(known.run(*previewer, "berth", "upgrade", "plan", "-s", STACK, "--json", check=False).stdout)
    asked = {one["part"] for one in versions["versions"] if one["asked"] == "cluster"}
    assert {"control-plane", "nodes", "kuberay-crds", "ray"} <= asked
    assert ["secrets" in text for text in versions["refused"]] == [True]


def test_the_api_server_judges_what_the_preview_identity_proposes(known: Project, previewer: list[str]) -> None:
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


READS = """
get secrets -n berth-bob
get secrets -A
get secret bob -n berth-bob
get secrets -n kuberay-operator
get --raw /api/v1/namespaces/berth-bob/secrets?watch=true
get leases -A
auth can-i --as=system:admin get secrets
""".strip().splitlines()
"""Requests of the preview identity that its ClusterRole refuses, as arguments of kubectl."""

WRITES = """
exec HEAD -n berth-bob -- true
attach HEAD -n berth-bob
port-forward HEAD 8265:8265 -n berth-bob
create token default -n berth-bob
create token kuberay-operator -n kuberay-operator
create --raw /api/v1/namespaces/berth-bob/serviceaccounts/default/token?dryRun=All -f TOKEN
get --raw /api/v1/namespaces/berth-bob/services/bob-head-svc:8265/proxy/
create configmap mine -n berth-bob
create namespace mine
create secret generic mine -n berth-bob
create clusterrolebinding mine --clusterrole=cluster-admin --user=mallory
create job mine -n berth-bob --image=x
run mine -n default --image=x
annotate namespace berth-bob berth/pools=cpu --overwrite
label namespace berth-bob pod-security.kubernetes.io/enforce=privileged --overwrite
patch raycluster bob -n berth-bob --type=merge -p {"spec":{"suspend":true}}
patch resourcequota berth -n berth-bob --type=merge -p {"spec":{"hard":{"pods":"9"}}}
patch clusterrole berth-previewers-known --type=json -p [{"op":"remove","path":"/rules/0"}]
delete raycluster bob -n berth-bob
delete networkpolicy --all -n berth-bob
delete namespace berth-bob
scale deployment kuberay-operator -n kuberay-operator --replicas=0
cordon --selector=cloud.google.com/gke-nodepool=dev
""".strip().splitlines()
"""Requests that its policy refuses too, whatever rights somebody else gives it."""

UNGUARDED = """
create clusterrolebinding mine --clusterrole=cluster-admin --user=mallory --dry-run=server
create secret generic mine -n berth-bob --dry-run=server
delete namespace berth-bob --dry-run=server
patch validatingadmissionpolicy berth-previewers-known --type=merge -p {"spec":{"failurePolicy":"Ignore"}}
delete validatingadmissionpolicybinding berth-previewers-known
""".strip().splitlines()
"""Requests that its ClusterRole refuses and no policy could: dry runs, and policies themselves."""


@pytest.fixture(scope="module")
def refusal(known: Project, previewer: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Answer of the API server to a request that it must not grant."""
    token = tmp_path_factory.mktemp("token") / "token.json"
    token.write_text(json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}))
    (head,) = known.get("pods", "-n", "berth-bob", "-l", "ray.io/node-type=head")
    named = {"HEAD": head["metadata"]["name"], "TOKEN": str(token)}

    def refused(request: str) -> str:
        words = (named.get(word, word) for word in request.split())
        return known.run(*previewer, "kubectl", *words, check=False).stderr

    return refused


@pytest.mark.parametrize("asked", [*READS, *WRITES, *UNGUARDED])
def test_the_preview_identity_is_refused(refusal: Callable[[str], str], asked: str) -> None:
    assert "forbidden" in refusal(asked).lower()


@pytest.fixture
def too_many_rights(known: Project) -> Iterator[None]:
    """Rights that somebody else gives to the preview identity, such as `container.developer`."""
    known.run("kubectl", "create", "clusterrolebinding", "mine", "--clusterrole=cluster-admin", f"--user={PREVIEWER}")
    yield
    known.run("kubectl", "delete", "clusterrolebinding", "mine")


@pytest.mark.usefixtures("too_many_rights")
def test_the_preview_identity_changes_nothing_with_whatever_rights(refusal: Callable[[str], str]) -> None:
    answers = {asked: refusal(asked) for asked in WRITES}
    assert [asked for asked, answer in answers.items() if "an identity that previews may" not in answer] == []


IDENTITIES = {
    "an admin, and CI's deploy identity": ("admin", "berth-bob"),
    "CI's preview identity": (PREVIEWER, "berth-bob"),
    "an engineer, in the own berth": ("bob@example.com", "berth-bob"),
    "an engineer, in the own berth with nested containers": ("nest@example.com", "berth-nest"),
    "an engineer, in another berth": ("bob@example.com", "berth-nest"),
    "an engineer who runs Pulumi, in the own berth": ("kim@example.com", "berth-kim"),
    "a pod of a berth, in that berth": ("system:serviceaccount:berth-bob:default", "berth-bob"),
    "Ray's autoscaler, in its berth": ("system:serviceaccount:berth-auto:auto", "berth-auto"),
    "the keeper, in a berth with a lifecycle": ("system:serviceaccount:berth-keeper:keeper", "berth-bob"),
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
        ["kubectl", *by, "create", "--validate=false", "-f", "-", "-o", "json"], stdin=json.dumps(review)
    )
    found: dict[str, set[str]] = {}
    for rule in json.loads(done.stdout)["status"]["resourceRules"]:
        parts = rule["resources"], rule["apiGroups"], rule.get("resourceNames") or [""]
        for resource, group, name in itertools.product(*parts):
            key = f"{resource}.{group}".rstrip(".") + f" {name}".rstrip()
            found.setdefault(key, set()).update(rule["verbs"])
    return found


def test_identities_may_do_what_the_page_lists(known: Project, golden: Callable[[str, Any], None]) -> None:
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


def test_the_preview_identity_finds_drift(known: Project, previewer: list[str]) -> None:
    done = preview(known, previewer, "--refresh", "--expect-no-changes")
    assert done.returncode == 0, done.stdout + done.stderr
    known.run("kubectl", "delete", "resourcequota", "berth", "-n", "berth-bob")
    done = preview(known, previewer, "--refresh", "--expect-no-changes")
    assert done.returncode == DRIFTED, done.stdout + done.stderr
    assert "ResourceQuota" in done.stdout
