"""Credentials by stack: existing clusters, and engineers with stacks of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.lab.conftest import Lab
from tests.lab.project import CHARTS, SMALL, Project

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
    definitions = str(lab.home.charts / CHARTS["kuberay"] / "crds")
    lab.run(["kubectl", "apply", "--server-side", "-f", definitions])
    try:
        project.up("shop")
        output = yaml.safe_load(project.outputs("shop")["kubeconfig"])
        assert output["users"] == []
        assert output["clusters"][0]["cluster"].keys() == {"server", "certificate-authority-data"}
        moved = admin.rename(tmp_path / "away")
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
        on_machine(lab, project, own, "pulumi", "destroy", "-s", "dana", "--yes", "--skip-preview")
        moved.rename(admin)
    finally:
        project.run("pulumi", "destroy", "-s", "shop", "--yes", "--skip-preview", check=False)
        lab.run(["kubectl", "delete", "-f", definitions])
