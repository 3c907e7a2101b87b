"""`berth check` as a user runs it: what it prints where, and its exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.cli.repository.checked_stack import OWN_STACKS_FROM
from berth.stacks.policies.registry import POLICIES

ENVIRONMENT: dict[str, Any] = {
    "project": "berth-lab",
    "zone": "us-central1-b",
    "sharing": {"any": {"kind": "time-slicing", "replicas": 4}},
    "pools": {
        "cpu": {"machineType": "n2-standard-16", "nodes": 1},
        "dev": {"machineType": "a4-highgpu-8g", "nodes": 1, "capacity": "spot", "sharing": "any"},
    },
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "stacks").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(project: Path, stack: str, **config: Any) -> None:
    text = yaml.safe_dump({"config": {f"berth:{key}": value for key, value in config.items()}})
    (project / "stacks" / f"Pulumi.{stack}.yaml").write_text(text)


def check(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", *arguments])


def test_all_is_well(project: Path) -> None:
    write(project, "env", environment=ENVIRONMENT)
    write(project, "alice", engineer={"environment": "env"})
    done = check()
    assert (done.exit_code, done.stdout, done.stderr) == (
        0,
        "✓ alice (engineer, 3 policies kept)\n✓ env (environment, 3 policies kept)\n",
        "",
    )


def test_problems_go_to_stderr_with_exit_code_2(project: Path) -> None:
    write(project, "env", environment=ENVIRONMENT | {"zone": "nowhere"})
    done = check("env")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "stacks/Pulumi.env.yaml:" in done.stderr
    assert "environment.zone: 'nowhere' is not a zone" in done.stderr


def test_a_warning_is_told_and_does_not_fail(project: Path) -> None:
    write(
        project,
        "env",
        environment=ENVIRONMENT | {"engineers": {"alice": {"worker": {"gpuMemory": "60Gi"}}}},
    )
    done = check("env")
    assert done.exit_code == 0
    assert "✓ env (environment, 3 policies kept)" in done.stdout
    assert "warning: stacks/Pulumi.env.yaml:" in done.stderr
    assert "a share of pool 'dev' (B200) is 45Gi" in done.stderr


@pytest.mark.parametrize(
    ("number", "advised"), [(OWN_STACKS_FROM - 1, False), (OWN_STACKS_FROM, True)]
)
def test_a_large_environment_is_told_of_own_stacks(
    project: Path,
    number: int,
    advised: bool,
) -> None:
    engineers: dict[str, Any] = {f"eng-{index}": {} for index in range(number)}
    pools = {"cpu": {"machineType": "n2-standard-128", "nodes": 99}}
    defaults = {"worker": {"gpus": 0}}
    settings = {"pools": pools, "defaults": defaults, "engineers": engineers, "sharing": {}}
    write(project, "env", environment=ENVIRONMENT | settings)
    done = check("env")
    assert done.exit_code == 0, done.stderr
    assert (f"note: {number} engineers are in one environment" in done.stderr) == advised
    (checked,) = json.loads(check("env", "--json").stdout)
    assert len(checked["notes"]) == advised


def test_an_engineer_is_checked_against_the_environments_file(project: Path) -> None:
    write(project, "env", environment=ENVIRONMENT)
    write(project, "alice", engineer={"environment": "env", "worker": {"pool": "devv"}})
    write(project, "bob", engineer={"environment": "evn"})
    done = check("alice", "bob")
    assert done.exit_code == 2
    assert "engineer.worker.pool: there is no pool 'devv'; did you mean 'dev'?" in done.stderr
    assert "engineer.environment: there is no environment 'evn'; did you mean 'env'?" in done.stderr


def test_json(project: Path) -> None:
    write(project, "env", environment=ENVIRONMENT | {"zone": 5})
    done = check("--json")
    assert done.exit_code == 2
    (checked,) = json.loads(done.stdout)
    assert (checked["stack"], checked["kind"], checked["warnings"]) == ("env", "environment", [])
    assert checked["problems"][0].endswith("environment.zone: 5 is not text; put it in quotes")


def test_nothing_to_check(project: Path) -> None:
    assert project.is_dir()
    done = check()
    assert done.exit_code == 2
    assert "there is no stack" in done.stderr


def test_policies_are_named_with_how_to_waive_them(project: Path) -> None:
    write(project, "prod", environment=ENVIRONMENT)
    done = check()
    assert (done.exit_code, done.stdout) == (2, "")
    assert (
        "environment.labels: policy required-labels: cluster prod of a production environment lacks"
        in done.stderr
    )
    assert "or waive it (policies.waived.required-labels: REASON)" in done.stderr


def test_a_waived_policy_is_told_with_its_reason(project: Path) -> None:
    policies = {"waived": {"ray-auth": "an appliance that knows no tokens"}}
    write(
        project,
        "env",
        environment=ENVIRONMENT | {"policies": policies, "engineers": {"bob": {"auth": "none"}}},
    )
    write(project, "alice", engineer={"environment": "env", "auth": "none"})
    done = check()
    assert done.exit_code == 0
    assert (
        done.stdout
        == "✓ alice (engineer, 2 policies kept, 1 waived)\n✓ env (environment, 2 policies kept, 1"
        " waived)\n"
    )
    assert (
        "note: policy ray-auth is waived for alice: an appliance that knows no tokens"
        in done.stderr
    )
    assert (
        "note: policy ray-auth is waived for bob: an appliance that knows no tokens" in done.stderr
    )
    results = json.loads(check("--json").stdout)
    assert [result["waived"] for result in results] == [
        [{"policy": "ray-auth", "reason": "an appliance that knows no tokens", "resources": [name]}]
        for name in ("alice", "bob")
    ]
    assert results[0]["policies"] == ["private-dashboard", "rdma-whole"]


def test_the_policies_of_an_environment_in_another_project_are_not_known(project: Path) -> None:
    write(project, "alice", engineer={"environment": "organization/other/env"})
    done = check()
    assert done.exit_code == 0
    assert (
        done.stdout
        == "✓ alice (engineer, policies not checked: its environment could not be read)\n"
    )


def test_the_list_of_policies() -> None:
    done = check("--policies", "--json")
    assert done.exit_code == 0
    assert [policy["name"] for policy in json.loads(done.stdout)] == list(POLICIES)
    assert all(name in check("--policies").stdout for name in POLICIES)


def test_a_stack_whose_name_no_berth_can_have_and_another_problem(project: Path) -> None:
    write(project, "env", environment=ENVIRONMENT)
    write(
        project,
        "Alice",
        engineer={"environment": "env", "head": {"memory": "much"}, "worker": {"gpus": 99}},
    )
    done = check("Alice")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "engineer.name: 'Alice' is a name that Kubernetes would refuse" in done.stderr
    assert "engineer.head.memory: 'much' is not a Kubernetes quantity" in done.stderr
    assert "engineer.worker.gpus: a worker asks for 99 shares" in done.stderr
    assert len(done.stderr.splitlines()) == 4


def test_a_warning_counts_many_engineers_in_place_of_naming_all(project: Path) -> None:
    engineers: dict[str, Any] = {f"engineer-{number}": {} for number in range(10, 100)}
    pools = ENVIRONMENT["pools"] | {
        "cpu": {"machineType": "n2-standard-16", "nodes": {"min": 1, "max": 40}}
    }
    pools["dev"] = pools["dev"] | {"nodes": {"min": 1, "max": 4}}
    defaults = {"head": {"pool": "cpu"}, "worker": {"pool": "dev", "cpu": 1, "memory": "1Gi"}}
    write(
        project,
        "fleet",
        environment=ENVIRONMENT | {"pools": pools, "engineers": engineers, "defaults": defaults},
    )
    done = check("fleet")
    assert done.exit_code == 0, done.stderr
    first = ", ".join(f"engineer-{number}" for number in range(10, 15))
    assert f"heads of {first} and 85 more are on a pool that shrinks" in done.stderr
    assert f"workers of {first} and 85 more are on a pool" in done.stderr
    assert max(len(line) for line in done.stderr.splitlines()) < 700
