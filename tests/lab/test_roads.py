"""Existing clusters: credentials by stack, and the one environment that a cluster carries."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import CHARTS, SMALL, Project, Settings, environment_settings

pytestmark = pytest.mark.lab


def on_machine(lab: Lab, project: Project, kubeconfig: Path, *command: str) -> str:
    """Output of a command on a machine with another kubeconfig."""
    return lab.run(["env", f"KUBECONFIG={kubeconfig}", *command], cwd=project.folder).stdout


@dataclass(frozen=True)
class Shop:
    """Environment `shop` on an existing cluster, up.

    Attributes:
        project: its checkout.
        settings: its settings.
        config: the admin's kubeconfig.
    """

    project: Project
    settings: Settings
    config: dict[str, Any]

    @property
    def admin(self) -> Path:
        """File of the admin's kubeconfig."""
        return self.project.folder / "admin"


@pytest.fixture(scope="module")
def shop(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    project = Project.make(tmp_path_factory.mktemp("roads") / "project", lab)
    settings: Settings = {
        "cluster": {"existing": {"kubeconfig": str(project.folder / "admin")}},
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}},
        "operators": {"kuberay": {"source": "present"}},
        "defaults": {"wait": {"until": "submitted"}, "worker": {"pool": "cpu", **SMALL["worker"]}},
    }
    if lab.run(["kubectl", "get", "crd", "rayclusters.ray.io"], check=False).returncode:
        lab.run(
            [
                "kubectl",
                "apply",
                "--server-side",
                "-f",
                str(lab.home.charts / CHARTS["kuberay"] / "crds"),
            ]
        )
    found = Shop(project, settings, yaml.safe_load(lab.kubeconfig.read_text()))
    found.admin.write_text(json.dumps(found.config))
    project.write("shop", environment=settings)
    project.up("shop")
    return found


def test_the_state_of_an_existing_cluster_has_no_credentials(
    tmp_path: Path, lab: Lab, shop: Shop
) -> None:
    """The admin's login is a client certificate; the engineer has another file and context."""
    project = shop.project
    config = shop.config
    secrets = [str(value) for value in config["users"][0]["user"].values()]
    assert len(secrets) == 2
    own = tmp_path / "own"
    contexts = [{"name": "mine", "context": config["contexts"][0]["context"]}]
    own.write_text(json.dumps(config | {"contexts": contexts, "current-context": ""}))
    project.write("dana", engineer={"environment": "shop", "worker": {"gpus": 0}})
    output = yaml.safe_load(project.outputs("shop")["kubeconfig"])
    assert output["users"] == []
    assert output["clusters"][0]["cluster"].keys() == {"server", "certificate-authority-data"}
    shop.admin.rename(tmp_path / "away")
    project.run("pulumi", "stack", "init", "dana", "--no-select")
    on_machine(lab, project, own, "pulumi", "up", "-s", "dana", "--yes", "--skip-preview")
    for stack in ("shop", "dana"):
        state = project.run("pulumi", "stack", "export", "-s", stack, "--show-secrets").stdout
        assert not [secret for secret in secrets if secret in state], stack
    by_hand = on_machine(lab, project, own, "berth", "connect", "dana", "--print").splitlines()
    assert (
        by_hand[1]
        == f"kubectl config view --raw --minify --flatten --kubeconfig {own} --context mine >"
        " kubeconfig"
    )
    done = lab.run(
        ["env", f"KUBECONFIG={tmp_path}/none", "berth", "status", "-s", "dana"],
        project.folder,
        check=False,
    )
    assert done.returncode == 2
    assert "no kubeconfig of yours logs in to https://127.0.0.1:" in done.stderr
    (tmp_path / "away").rename(shop.admin)
    lab.run(["kubectl", "delete", "namespace", "berth-dana"])


SHARED = "priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings"


@pytest.mark.parametrize(
    "older", [False, pytest.param(True, marks=pytest.mark.long)], ids=["now", "older versions"]
)
def test_a_cluster_carries_one_environment(
    tmp_path: Path, lab: Lab, shop: Shop, *, older: bool
) -> None:
    """Two checkouts with states of their own, on one existing cluster."""
    first = shop.project
    second = Project.make(tmp_path / "second", lab)
    settings = shop.settings
    (tmp_path / "state").mkdir()
    theirs = [
        f"PULUMI_BACKEND_URL={(tmp_path / 'state').as_uri()}",
        "PULUMI_CONFIG_PASSPHRASE=theirs",
    ]

    def elsewhere(verb: str, stack: str, *options: str, refused: bool = False) -> str:
        done = second.run("env", *theirs, "pulumi", verb, "-s", stack, *options, check=False)
        assert (done.returncode != 0) == refused, done.stdout + done.stderr
        return " ".join((done.stdout + done.stderr).split())

    def shared() -> set[str]:
        return {
            item["metadata"]["uid"]
            for item in lab.get(SHARED, "-l", "app.kubernetes.io/managed-by=berth")["items"]
        }

    if older:
        first.up("shop")
    before = shared()
    for stack, command in {
        "shop": ("up", "--yes", "--skip-preview"),
        "staging": ("preview",),
    }.items():
        second.write(stack, environment=settings)
        second.run("env", *theirs, "pulumi", "stack", "init", stack, "--no-select")
        words = (
            f"carries environment shop of project berth, in another state than {stack} of project"
            " berth"
        )
        assert words in elsewhere(command[0], stack, *command[1:], refused=True)
    if older:
        # Older versions have no mark: the second of a pair has taken over all objects.
        lab.run(["kubectl", "delete", "configmap", "berth-cluster", "-n", "kube-system"])
        elsewhere("up", "shop", "--yes", "--skip-preview")
        assert "already carries environment shop" in first.up("shop", check=False).stdout
        elsewhere("destroy", "shop", "--yes", "--skip-preview")
        assert shared() == before
        first.up("shop")
    first.destroy("shop")
    assert shared() == before
    left = elsewhere("preview", "staging", refused=True)
    assert "carries environment shop, in another state than staging of project berth" in left
    (remedy,) = re.findall(r"If that one is gone: (kubectl delete \S+ -l \S+=berth)", left)
    lab.run(remedy.split())
    elsewhere("preview", "staging")


@pytest.mark.long
def test_a_new_pool_that_nvlink_joins_is_previewed_whole(lab: Lab, tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project", lab)
    reserved = {"kind": "reservation", "reservation": "nvl"}
    pools = {
        "big": {
            "machineType": "a4x-highgpu-4g",
            "nodes": 2,
            "rdma": "managed",
            "capacity": reserved,
        }
    }
    cluster = {
        "image": "example.com/of-both-architectures:1",
        "workers": 2,
        "worker": {"pool": "big"},
    }
    settings = environment_settings(lab, pools, "gpuDra", network={}, clusters={"joined": cluster})
    project.write(
        "nvl", environment=settings | {"policies": {"waived": {"rdma-whole": "a preview alone"}}}
    )
    project.run("pulumi", "stack", "init", "nvl", "--no-select")
    found = project.preview("nvl")
    policy = "gcp:compute/resourcePolicy:ResourcePolicy::nvl-big"
    installer = "nccl-rdma-installer-arm64"
    domain = "kubernetes:resource.nvidia.com/v1beta1:ComputeDomain::joined-nvlink"
    assert {policy, domain, f"kubernetes:apps/v1:DaemonSet::{installer}"} <= found.keys()
    assert set(found.values()) == {"create"}
