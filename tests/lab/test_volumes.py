"""A berth with a Filestore volume and a secret of Secret Manager, from its first update to the
removal of its share. Long: test_commands has the same life of a home and of a secret.
"""

import base64
import json
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import (
    SMALL,
    Done,
    Project,
    Settings,
    environment_settings,
    eventually,
    started,
)

pytestmark = [pytest.mark.lab, pytest.mark.long]

CANARY = "canary-9e02d4"
SOURCE = "projects/berth-test/secrets/hf/versions/latest"


def environment(lab: Lab, *engineers: str) -> Settings:
    team = {"filestore": "1Ti", "at": "/team"}
    return environment_settings(
        lab,
        {},
        network={},
        defaults=SMALL | {"worker": SMALL["worker"] | {"pool": "cpu", "gpus": 0}},
        cluster={"deletionProtection": False, "filestore": True, "secretSync": True},
        engineers={
            name: {"volumes": {"team": team}, "secrets": {"HF_TOKEN": {"secretManager": "hf"}}}
            for name in engineers
        },
    )


@pytest.fixture
def shared(lab: Lab, tmp_path: Any) -> Project:
    """Project whose environment is up, and whose settings have an engineer more."""
    project = Project.make(tmp_path / "project", lab)
    project.write("shared", environment=environment(lab))
    project.up("shared")
    project.write("shared", environment=environment(lab, "erin"))
    return project


def berth(project: Project, *arguments: str, code: int = 0) -> Done:
    done = project.run("berth", *arguments, check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def test_a_share_and_a_value_of_secret_manager(shared: Project) -> None:
    def claims() -> list[dict[str, Any]]:
        return shared.get("persistentvolumeclaims", "-n", "berth-erin")

    # Secret Manager does not have the secret yet: the berth waits, and each command says for what.
    with started(shared, "berth", "up", "-s", "shared", "--yes") as update:
        output = next(
            (line for line in update.stderr or () if 'secret "hf-token" not found' in line), ""
        )
        assert "CreateContainerConfigError" in output
        (row,) = json.loads(berth(shared, "secret", "list", "erin", "--json", code=3).stdout)
        assert (row["present"], row["secret_manager"]) == (False, SOURCE)
        assert (
            "gcloud secrets versions add hf"
            in berth(shared, "secret", "set", "erin", "HF_TOKEN", code=2).stderr
        )
        report = json.loads(berth(shared, "doctor", "-s", "shared", "--json", code=1).stdout)
        (missing,) = [finding for finding in report["findings"] if finding["state"] == "missing"]
        assert missing["remedy"].startswith(
            "gcloud secrets add-iam-policy-binding hf --project=berth-test "
        )
        assert "/subject/ns/berth-erin/sa/secret-manager" in missing["remedy"]
        # What GKE does when Secret Manager has the value; the lab does not play that.
        words = (
            "create",
            "secret",
            "generic",
            "hf-token",
            "-n",
            "berth-erin",
            f"--from-literal=synced={CANARY}",
        )
        shared.run("kubectl", *words)
        assert update.wait(timeout=300) == 0
    (secret,) = [
        item
        for item in shared.get("secrets", "-n", "berth-erin")
        if item["metadata"]["name"] == "hf-token"
    ]
    assert base64.b64decode(secret["data"]["synced"]).decode() == CANARY
    fine = [
        finding["text"]
        for finding in json.loads(berth(shared, "doctor", "-s", "shared", "--json").stdout)[
            "findings"
        ]
    ]
    assert "1 secret variable of 1 berth has a value" in fine

    # Head and worker mount one share, in a class for the network of the cluster.
    (claim,) = claims()
    assert (claim["spec"]["storageClassName"], claim["spec"]["accessModes"]) == (
        "berth-standard-rwx",
        ["ReadWriteMany"],
    )
    assert claim["status"]["phase"] == "Bound"
    (volume,) = shared.get("persistentvolumes")
    assert volume["spec"]["csi"]["driver"] == "filestore.csi.storage.gke.io"
    (storage_class,) = [
        item
        for item in shared.get("storageclasses")
        if item["metadata"]["name"] == "berth-standard-rwx"
    ]
    assert storage_class["parameters"] == {"tier": "standard", "network": "shared"}
    pods = shared.get("pods", "-n", "berth-erin")
    assert len(pods) == 2
    for pod in pods:
        assert {"name": "volume-team", "mountPath": "/team"} in pod["spec"]["containers"][0][
            "volumeMounts"
        ]
        assert "secret-manager" not in pod["spec"]["serviceAccountName"]

    # The value is nowhere but in its Secret.
    berth(shared, "diagnose", "erin", "-o", "erin.md")
    texts = {
        "diagnosis": (shared.folder / "erin.md").read_text(),
        "state": shared.run("pulumi", "stack", "export", "-s", "shared", "--show-secrets").stdout,
        "plan": shared.run("pulumi", "preview", "-s", "shared", "--json").stdout,
        "settings": (shared.folder / "stacks" / "Pulumi.shared.yaml").read_text(),
    }
    for name, text in texts.items():
        assert CANARY not in text, name
        assert secret["data"]["synced"] not in text, name
    assert "hf-token" in texts["state"]
    berth(shared, "up", "-s", "shared", "--yes")

    # The share stays when the berth goes, until somebody deletes it.
    removed = berth(shared, "engineer", "remove", "erin", "-s", "shared")
    assert "but the Filestore volume team (1Ti, created " in removed.stdout
    assert "berth home remove erin -s shared" in removed.stdout
    last = berth(shared, "up", "-s", "shared", "--yes", "--allow-destroy")
    assert "berth-erin/share-team stays, with what is in it" in last.stderr + last.stdout
    assert shared.get("pods", "-n", "berth-erin") == []
    assert [item["metadata"]["uid"] for item in claims()] == [claim["metadata"]["uid"]]
    (listed,) = json.loads(berth(shared, "home", "list", "-s", "shared", "--json").stdout)
    assert (listed["name"], listed["claim"], listed["size"], listed["in_use"]) == (
        "erin",
        "share-team",
        "1Ti",
        False,
    )
    assert (
        "the Filestore volume team (1Ti"
        in berth(shared, "home", "remove", "erin", "-s", "shared", code=3).stderr
    )
    assert "is deleted" in berth(shared, "home", "remove", "erin", "-s", "shared", "--yes").stderr
    eventually(lambda: shared.get("persistentvolumes") == [], "the share is gone")
