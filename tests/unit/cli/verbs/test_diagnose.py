"""`berth diagnose`: no secret that was planted anywhere comes through, and what is no secret
does.
"""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from typer.testing import CliRunner

from berth.cli.main import app
from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.environment import LiveEnvironment
from berth.cli.verbs.diagnose.diagnosis import rendered_diagnosis
from berth.cli.verbs.diagnose.known_secrets import secrets_of_environment, secrets_of_kubeconfig
from berth.cli.verbs.diagnose.parts import (
    OBJECT_PARTS,
    OVERVIEW_PARTS,
    DiagnosisPart,
    berth_parts,
    gathered_part,
)
from berth.cli.verbs.diagnose.secrets import REMOVED, cleaned, scrubbed
from berth.components.cluster.api import EVENTS, NODES, PODS, RAY_CLUSTERS, RefusedError
from berth.components.core.errors import BerthError
from berth.components.core.plain_secrets import SHOWN_VARIABLES
from berth.components.fabric.nccl import PROFILES
from tests.unit.cases import table
from tests.unit.recorded_cluster import RecordedCluster

CANARY = "canary-8f3a1c"
TABLE = table(__file__, "secrets.yaml")

POD = {
    "metadata": {
        "name": "alice-head-x",
        "managedFields": [{"manager": CANARY}],
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": CANARY})
        },
    },
    "spec": {
        "automountServiceAccountToken": False,
        "containers": [
            {
                "env": [
                    {"name": "HF_TOKEN", "value": CANARY},
                    {"name": "AWS_SECRET_ACCESS_KEY", "value": CANARY},
                    {"name": "WANDB_API_KEY", "value": CANARY},
                    {"name": "NCCL_DEBUG", "value": "INFO"},
                    {
                        "name": "RAY_AUTH_TOKEN",
                        "valueFrom": {"secretKeyRef": {"name": "alice", "key": "auth_token"}},
                    },
                ],
                "args": [f"--password={CANARY}", f"ray start --dashboard-token {CANARY}x"],
            }
        ],
    },
}


def test_structures_lose_what_a_name_tells_is_secret() -> None:
    settings = {
        "engineers": {"bob": {"env": {"MY_PASSWORD": CANARY, "LEVEL": "3"}}},
        "gcp:key": {"secure": CANARY},
    }
    report = yaml.safe_dump(cleaned({"pod": POD, "settings": settings})[0])
    assert CANARY in report
    assert CANARY not in scrubbed(report)
    for remaining in (
        "NCCL_DEBUG",
        "INFO",
        "secretKeyRef",
        "auth_token",
        "automountServiceAccountToken: false",
        "LEVEL",
    ):
        assert remaining in report


def test_documents_within_documents_lose_theirs() -> None:
    environment = {"env_vars": {"HF_TOKEN": CANARY, "LEVEL": "3"}, "pip": ["einops"]}
    documents = {
        "runtimeEnvYAML": yaml.safe_dump(environment),
        "serveConfigV2": f"token: [{CANARY}",
    }
    report = cleaned({"spec": documents})[0]["spec"]
    assert report == {
        "runtimeEnvYAML": {"env_vars": {"HF_TOKEN": REMOVED, "LEVEL": REMOVED}, "pip": ["einops"]},
        "serveConfigV2": REMOVED,  # what is no YAML can't be looked through
    }


@pytest.mark.parametrize(("line", "secret"), TABLE["credentials"])
def test_lines_lose_what_looks_like_a_credential(line: str, secret: str) -> None:
    report = scrubbed(f"before\n{line}\nafter")
    assert REMOVED in report
    assert secret in line
    assert secret not in report
    assert report.startswith("before\n")
    assert report.endswith("\nafter")


@pytest.mark.parametrize("name", TABLE["parts"])
def test_values_of_variables_are_in_no_part(name: str) -> None:
    part = TABLE["parts"][name]
    found = gathered_part("part", lambda: part)
    log = DiagnosisPart(
        "The operator's log", f"the pod's variable is {CANARY}, and not\n{CANARY}", lost=found.lost
    )
    text = rendered_diagnosis(
        "alice", "env", [found, log] if found.lost else [found], datetime(2026, 1, 2, tzinfo=UTC)
    )
    assert CANARY in str(part)
    assert CANARY not in scrubbed(text, found.lost)
    assert "WARN" in text or "NCCL_DEBUG" not in str(part)


def test_variables_that_berth_sets_are_shown() -> None:
    """Variables of Ray, NCCL and CUDA explain failures; others are removed."""
    line = "NCCL_DEBUG=INFO RAY_ADDRESS=auto LEVEL=3 python train.py"
    assert scrubbed(line) == f"NCCL_DEBUG=INFO RAY_ADDRESS=auto LEVEL={REMOVED} python train.py"
    for profile in PROFILES.values():
        assert set(profile) <= SHOWN_VARIABLES


@pytest.mark.parametrize("line", TABLE["harmless"])
def test_what_is_no_secret_stays(line: str) -> None:
    assert scrubbed(line) == line


def test_known_values_go_wherever_they_stand() -> None:
    encoded = base64.b64encode(CANARY.encode()).decode()
    assert scrubbed(f"a {CANARY} b {encoded} c", [CANARY, "lab"]) == f"a {REMOVED} b {REMOVED} c"
    # A short one would take out half of the text.
    assert scrubbed("label", ["lab"]) == "label"


def test_credentials_of_the_kubeconfig_and_of_this_process_are_known() -> None:
    users = [
        {
            "user": {
                "token": "one",
                "client-key-data": "two",
                "exec": {"env": [{"name": "API_KEY", "value": "three"}]},
            }
        },
        {
            "user": {
                "auth-provider": {"config": {"access-token": "four", "cmd-path": "gcloud"}},
                "password": "five",
            }
        },
    ]
    assert sorted(secrets_of_kubeconfig({"users": users})) == [
        "five",
        "four",
        "one",
        "three",
        "two",
    ]
    assert secrets_of_environment({"PULUMI_CONFIG_PASSPHRASE": "six", "HOME": "/root"}) == ["six"]


def test_a_part_that_cannot_be_had_says_why_and_the_rest_is_there() -> None:
    def refuses() -> str:
        raise BerthError("the state is locked")

    parts = [DiagnosisPart("Pods", "name: x", "yaml"), gathered_part("Plan", refuses)]
    report = rendered_diagnosis("alice", "env", parts, datetime(2026, 1, 2, tzinfo=UTC))
    assert "Could not be gathered:\n\n- Plan: the state is locked\n" in report
    assert "## Pods\n\n````yaml\nname: x\n````\n" in report


def test_a_berth_that_cannot_be_asked_gives_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "stacks").mkdir()
    settings = {"engineers": {"bob": {"env": {"DB_PASSWORD": CANARY}}}, "zone": "us-central1-b"}
    text = yaml.safe_dump({"config": {"berth:environment": settings}, "encryptionsalt": CANARY})
    (tmp_path / "stacks" / "Pulumi.env.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    done = CliRunner().invoke(app, ["diagnose", "bob", "--output", "told.md"])
    assert done.exit_code == 1
    assert "could not be gathered: The berth: pulumi is not on PATH" in done.stderr
    report = (tmp_path / "told.md").read_text()
    assert "zone: us-central1-b" in report
    assert "pydantic:" in report
    assert CANARY not in report
    assert (tmp_path / "told.md").stat().st_mode & 0o077 == 0


# Parts stand alone


OF_BOB = {"name": "bob", "namespace": "berth-bob", "labels": {"berth/stack": "env"}}
HEAD = {
    "metadata": {
        "name": "bob-head",
        "namespace": "berth-bob",
        "labels": {"ray.io/cluster": "bob", "ray.io/node-type": "head"},
    },
    "spec": {"nodeName": "node-a", "containers": [{"name": "ray"}]},
    "status": {"phase": "Pending"},
}
OBJECTS = {
    RAY_CLUSTERS: [{"metadata": OF_BOB, "spec": {}}],
    PODS: [HEAD],
    NODES: [{"metadata": {"name": name}, "spec": {}, "status": {}} for name in ("node-a", "b")],
    EVENTS: [{"metadata": {"name": "e", "namespace": "berth-bob"}, "message": "Scheduled it"}],
    "/api/v1/services": [{"metadata": OF_BOB}],
    "/apis/batch/v1/jobs": [{"metadata": OF_BOB}],
}


class OneRefusal(RecordedCluster):
    """A cluster that refuses one of the lists of pods, by its number."""

    def __init__(self, refused: int | None = None) -> None:
        super().__init__(cast("dict[str, list[dict[str, Any]]]", OBJECTS))
        self.refused = refused
        self.lists = 0

    def list(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        if path.endswith("berth-bob/pods"):
            self.lists += 1
            if self.lists == self.refused:
                raise RefusedError(403, {"message": "pods are forbidden now"})
        return super().list(path, **query)

    def text(self, path: str, seconds: float = 1, /, **query: str) -> str:
        return f"log at {path}, {query}, {seconds}"


def bob(api: OneRefusal) -> LiveBerth:
    environment = LiveEnvironment("env", cast("Any", None), kubeconfig="{}")
    return LiveBerth("bob", environment, api, api.objects[RAY_CLUSTERS][0])


@pytest.fixture
def _no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")


@pytest.mark.usefixtures("_no_project")
@pytest.mark.parametrize("title", [*OVERVIEW_PARTS, *OBJECT_PARTS])
def test_a_part_needs_no_part_that_ran_before(title: str) -> None:
    together = {part.title: part for part in berth_parts(bob(OneRefusal()), plan=False)}
    part = {**OVERVIEW_PARTS, **OBJECT_PARTS}[title]
    berth = bob(OneRefusal())
    assert gathered_part(title, lambda: part(berth)) == together[title]


@pytest.mark.usefixtures("_no_project")
def test_parts_about_pods_are_there_though_the_list_of_pods_was_refused() -> None:
    berth = bob(OneRefusal())
    berth_parts(berth, plan=False)
    lists = cast("OneRefusal", berth.api).lists
    refused: list[str] = []
    for number in range(1, lists + 1):
        parts = {part.title: part for part in berth_parts(bob(OneRefusal(number)), plan=False)}
        without = {title for title, part in parts.items() if "forbidden now" in part.text}
        assert len(without) == 1, "no other part is without its own"
        refused += without
        if "Nodes of its pods" not in without:
            assert "name: node-a" in parts["Nodes of its pods"].text
            assert "name: b" not in parts["Nodes of its pods"].text
        if "Logs of its pods" not in without:
            assert "log at" in parts["Log of bob-head"].text
    assert set(refused) >= {"Pods", "Nodes of its pods", "Logs of its pods"}
