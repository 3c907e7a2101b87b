"""Credentials by stack: existing clusters, and engineers with stacks of their own."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import CHARTS, HEAD, SMALL, Project, brought_up, environment_settings

pytestmark = pytest.mark.lab


def on_machine(lab: Lab, project: Project, kubeconfig: Path, *command: str) -> str:
    """Output of a command on a machine with another kubeconfig."""
    return lab.run(["env", f"KUBECONFIG={kubeconfig}", *command], cwd=project.folder).stdout


def test_the_state_of_an_existing_cluster_has_no_credentials(tmp_path: Path, lab: Lab) -> None:
    """The admin's login is a client certificate; the engineer has another file and context."""
    project = Project.make(tmp_path / "project", lab)
    config = yaml.safe_load(lab.kubeconfig.read_text())
    secrets = [str(value) for value in config["users"][0]["user"].values()]
    assert len(secrets) == 2
    settings = {
        "cluster": {"existing": {"kubeconfig": str(tmp_path / "admin")}},
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}},
        "operators": {"kuberay": {"source": "present"}},
        "defaults": {"wait": {"until": "submitted"}, "worker": {"pool": "cpu", **SMALL["worker"]}},
    }
    admin, own = tmp_path / "admin", tmp_path / "own"
    admin.write_text(json.dumps(config))
    config["contexts"] = [{"name": "mine", "context": config["contexts"][0]["context"]}]
    own.write_text(json.dumps(config | {"current-context": ""}))
    project.write("shop", environment=settings)
    project.write("dana", engineer={"environment": "shop", "worker": {"gpus": 0}})
    if lab.run(["kubectl", "get", "crd", "rayclusters.ray.io"], check=False).returncode:
        lab.run(["kubectl", "apply", "--server-side", "-f", str(lab.home.charts / CHARTS["kuberay"] / "crds")])
    try:
        project.up("shop")
        output = yaml.safe_load(project.outputs("shop")["kubeconfig"])
        assert output["users"] == []
        assert output["clusters"][0]["cluster"].keys() == {"server", "certificate-authority-data"}
        admin.rename(tmp_path / "away")
        project.run("pulumi", "stack", "init", "dana", "--no-select")
        on_machine(lab, project, own, "pulumi", "up", "-s", "dana", "--yes", "--skip-preview")
        for stack in ("shop", "dana"):
            state = project.run("pulumi", "stack", "export", "-s", stack, "--show-secrets").stdout
            assert not [secret for secret in secrets if secret in state], stack
        by_hand = on_machine(lab, project, own, "berth", "connect", "dana", "--print").splitlines()
        assert by_hand[1] == (
            f"kubectl config view --raw --minify --flatten --kubeconfig {own} --context mine > kubeconfig"
        )
        done = lab.run(
            ["env", f"KUBECONFIG={tmp_path}/none", "berth", "status", "-s", "dana"], project.folder, check=False
        )
        assert done.returncode == 2
        assert "no kubeconfig of yours logs in to https://127.0.0.1:" in done.stderr
    finally:
        lab.forget()


SHARED = "priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings"


@pytest.mark.parametrize("older", [False, pytest.param(True, marks=pytest.mark.long)], ids=["now", "older versions"])
def test_a_cluster_carries_one_environment(tmp_path: Path, lab: Lab, *, older: bool) -> None:
    """Two checkouts with states of their own, on one existing cluster."""
    settings = {
        "cluster": {"existing": {"kubeconfig": str(lab.kubeconfig)}},
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}},
        "operators": {"kuberay": {"source": "present"}},
    }
    first, second = Project.make(tmp_path / "first", lab), Project.make(tmp_path / "second", lab)
    (tmp_path / "state").mkdir()
    theirs = [f"PULUMI_BACKEND_URL={(tmp_path / 'state').as_uri()}", "PULUMI_CONFIG_PASSPHRASE=theirs"]

    def elsewhere(verb: str, stack: str, *options: str, refused: bool = False) -> str:
        done = second.run("env", *theirs, "pulumi", verb, "-s", stack, *options, check=False)
        assert (done.returncode != 0) == refused, done.stdout + done.stderr
        return " ".join((done.stdout + done.stderr).split())

    def shared() -> set[str]:
        return {
            item["metadata"]["uid"] for item in lab.get(SHARED, "-l", "app.kubernetes.io/managed-by=berth")["items"]
        }

    first.write("dev", environment=settings)
    first.up("dev")
    before = shared()
    for stack, command in {"dev": ("up", "--yes", "--skip-preview"), "staging": ("preview",)}.items():
        second.write(stack, environment=settings)
        second.run("env", *theirs, "pulumi", "stack", "init", stack, "--no-select")
        words = f"carries environment dev of project berth, in another state than {stack} of project berth"
        assert words in elsewhere(command[0], stack, *command[1:], refused=True)
    if older:
        # Older versions have no mark: the second of a pair has taken over all objects.
        lab.run(["kubectl", "delete", "configmap", "berth-cluster", "-n", "kube-system"])
        elsewhere("up", "dev", "--yes", "--skip-preview")
        assert "already carries environment dev" in first.up("dev", check=False).stdout
        elsewhere("destroy", "dev", "--yes", "--skip-preview")
        assert shared() == before
        first.up("dev")
    first.destroy("dev")
    assert shared() == before
    left = elsewhere("preview", "staging", refused=True)
    assert "carries environment dev, in another state than staging of project berth" in left
    (remedy,) = re.findall(r"If that one is gone: (kubectl delete \S+ -l \S+=berth)", left)
    lab.run(remedy.split())
    elsewhere("preview", "staging")


POOLS = {"dev": {"machineType": "g2-standard-24", "nodes": 2, "gpuAllocation": "dra"}}
ACCOUNT = "ci/alice"


@pytest.fixture(scope="module")
def prepared(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Environment, another berth, and the isolation of alice's: all of them the admins'."""
    folder = tmp_path_factory.mktemp("parts")
    defaults = {"worker": SMALL["worker"], "head": HEAD}
    settings = environment_settings(lab, POOLS, "gpuDra", defaults=defaults, engineers={"bob": {}})
    project = brought_up(folder, lab, "shared", settings)
    lab.run(["kubectl", "create", "namespace", "ci"])
    lab.run(["kubectl", "create", "serviceaccount", "alice", "-n", "ci"])
    shape = {"environment": "shared", "name": "alice", "workers": {"min": 1, "max": 2}}
    access = {"serviceAccounts": [ACCOUNT]}
    project.write("alice-isolation", engineer={**shape, "part": "isolation", "access": access})
    project.up("alice-isolation")
    return project


@pytest.fixture
def own(prepared: Project, tmp_path: Path) -> Path:
    """Kubeconfig of alice, who has her Roles in the berth and nothing else."""
    config = yaml.safe_load(prepared.lab.kubeconfig.read_text())
    token = prepared.run("kubectl", "create", "token", "alice", "-n", "ci").stdout.strip()
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    path = tmp_path / "own"
    path.write_text(json.dumps(config))
    return path


def test_the_role_that_ships_is_enough_for_the_engineers_half_and_for_no_more(
    prepared: Project, own: Path, tmp_path: Path
) -> None:
    lab = prepared.lab
    # A project of her own: other state, other key, and nothing of the environment's.
    hers = Project.make(tmp_path / "hers", lab)
    (tmp_path / "state").mkdir()
    backend = (tmp_path / "state").as_uri()
    elsewhere = [f"KUBECONFIG={own}", f"PULUMI_BACKEND_URL={backend}", "PULUMI_CONFIG_PASSPHRASE=hers"]

    def alone(*command: str, refused: bool = False) -> str:
        done = lab.run(["env", *elsewhere, *command], hers.folder, check=False)
        assert (done.returncode != 0) == refused, done.stdout + done.stderr
        return done.stdout + done.stderr

    settings = {"environment": "shared", "part": "cluster", "login": {"kubeconfig": str(own)}, "workers": 2}
    hers.write("alice", engineer=settings)
    alone("pulumi", "stack", "init", "alice", "--no-select")
    alone("pulumi", "up", "-s", "alice", "--yes", "--skip-preview")
    (cluster,) = prepared.get("rayclusters", "-n", "berth-alice")
    assert cluster["status"]["state"] == "ready"
    state = json.loads(alone("pulumi", "stack", "export", "-s", "alice"))["deployment"]
    managed = {resource["type"] for resource in state["resources"] if not resource.get("external")}
    assert not [name for name in managed if name.startswith("kubernetes:") and "RayCluster" not in name]
    # The admins' half has the templates of her workers' claims.
    hers.write("alice", engineer={**settings, "workers": 1, "worker": {"gpus": 2}})
    refused = " ".join(alone("pulumi", "preview", "-s", "alice", refused=True).split())
    assert "namespace berth-alice has no template all-gpu-" in refused
    assert "or ask the admins to change theirs" in refused
    hers.write("alice", engineer={**settings, "workers": 1})
    alone("pulumi", "up", "-s", "alice", "--yes", "--skip-preview")
    assert "service/alice-head-svc" in alone("berth", "connect", "-s", "alice", "--print")
    findings = json.loads(alone("berth", "doctor", "-s", "alice", "--json"))["findings"]
    road, rights, *_ = [finding["text"] for finding in findings if finding["topic"] == "road"]
    assert road == "you apply this stack, which has the RayCluster only; the admins' stack owns namespace berth-alice"
    assert rights == (
        "in namespace berth-alice you may run commands in pods, change the RayCluster, create RayClusters, create"
        " RayJobs; you may not change the quota, change the network policies, change Roles, delete the namespace"
    )
    for verb, what in (
        ("delete", "namespace/berth-alice -n berth-alice"),
        ("patch", "namespace/berth-alice -n berth-alice"),
        ("patch", "resourcequota -n berth-alice"),
        ("delete", "networkpolicy -n berth-alice"),
        ("patch", "limitrange -n berth-alice"),
        ("update", "role -n berth-alice"),
        ("create", "rolebinding -n berth-alice"),
        ("update", "configmap/berth-environment -n berth-alice"),
        ("create", "pod -n berth-alice"),
        ("get", "rayclusters -n berth-bob"),
        ("get", "configmap/berth-environment -n berth-bob"),
        ("create", "namespace"),
        ("create", "clusterrolebinding"),
        ("create", "resourceclaimtemplates -n berth-alice"),
        ("patch", "resourceclaimtemplates -n berth-alice"),
        ("delete", "resourceclaimtemplates -n berth-alice"),
        ("create", "resourceclaims -n berth-alice"),
        ("update", "resourceclaims --subresource=status -n berth-alice"),
        ("create", "deviceclasses"),
        ("create", "resourceslices"),
        ("update", "configmap/berth-cluster -n kube-system"),
        ("list", "secrets -n berth-alice"),
        ("get", "secrets -n berth-bob"),
        ("create", "serviceaccounts --subresource=token -n berth-alice"),
    ):
        assert "no" in alone("kubectl", "auth", "can-i", verb, *what.split(), refused=True).split(), (verb, what)
    # No admin has prepared another namespace for her.
    hers.write("mallory", engineer={**settings, "name": "bob"})
    alone("pulumi", "stack", "init", "mallory", "--no-select")
    refused = " ".join(alone("pulumi", "up", "-s", "mallory", "--yes", "--skip-preview", refused=True).split())
    assert "namespace berth-bob is not ready for you" in refused
    assert "an admin brings it up first: a stack with `part: isolation`, `name: bob`" in refused
    alone("pulumi", "destroy", "-s", "alice", "--yes", "--skip-preview")
    assert prepared.get("rayclusters", "-n", "berth-alice") == []
    assert prepared.get("networkpolicies", "-n", "berth-alice"), "the isolation stays, and so does its owner"
