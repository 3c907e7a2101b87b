"""berth doctor on one machine: its programs, Pulumi's state, and the verb's streams and exit
codes.
"""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from berth.cli.main import app
from berth.cli.reach.google_cloud import BASES
from berth.cli.verbs.doctor import state as pulumi_state
from berth.cli.verbs.doctor.google_cloud import permissions
from berth.cli.verbs.doctor.programs import check_programs
from berth.stacks.files import stack_file
from berth.stacks.program.environment import register_environment
from tests.unit.cli.verbs.recorded_google import only_missing, states
from tests.unit.loaded import environment_of
from tests.unit.recording import run

SALT = "v1:wgibqRan4mA=:v1:AEk8CW7gN4fFs9Fg:Ghu4Y5x/dyXJghxghycLq6wiQHvebA=="
"""Salt of the passphrase `lab`, as Pulumi wrote it."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with stack `dev`, no credentials, and nobody of Google's around."""
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    monkeypatch.chdir(tmp_path)
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", *(variable for variable, _ in BASES.values())):
        monkeypatch.delenv(name, raising=False)
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setattr("google.auth.compute_engine._metadata._NO_GCE_CHECK", True)
    write(tmp_path, {"pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}}})
    return tmp_path


def write(project: Path, more: dict[str, object], **marks: str) -> None:
    settings = {"project": "your-project", "zone": "us-central1-b"} | more
    text = yaml.safe_dump({"config": {"berth:environment": settings}, **marks})
    (project / "stacks/Pulumi.dev.yaml").write_text(text)


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def pulumi(folder: Path, *, url: str = "gs://state", stacks: str = '[{"name": "dev"}]') -> None:
    answers = f"""case "$1 $2" in
  "version "*) echo v3.250.0;;
  "whoami "*) echo '{{"user": "x", "url": "{url}"}}';;
  "stack ls") echo '{stacks}';;
  "stack output") echo '{{}}';;
esac"""
    program(folder, "pulumi", answers)


# Programs


def test_programs_that_are_not_there(programs: Path) -> None:
    assert not list(programs.iterdir())
    found = check_programs(auth_plugin=True)
    assert [item.text.split(" is not on PATH")[0] for item in found] == [
        "pulumi",
        "gke-gcloud-auth-plugin",
        "gcloud",
        "kubectl",
    ]
    assert states(found) == ["missing", "missing", "unchecked", "unchecked"]
    assert all(item.remedy for item in found)


@pytest.mark.parametrize(
    ("says", "state", "text"),
    [
        ("echo v3.251.1", "fine", "pulumi v3.251.1"),
        ("echo v4.0.0-alpha.1", "fine", "pulumi v4.0.0-alpha.1"),
        (
            "echo v3.99.0",
            "missing",
            "pulumi is v3.99.0, older than 3.250, which berth is tested with",
        ),
        ("exit 1", "unchecked", "pulumi does not report its version (no output)"),
    ],
)
def test_the_version_of_pulumi(programs: Path, says: str, state: str, text: str) -> None:
    program(programs, "pulumi", says)
    found = check_programs(auth_plugin=False)[0]
    assert (found.state, found.text) == (state, text)


# State


def test_a_stack_that_is_not_initialized(programs: Path, project: Path) -> None:
    assert project
    pulumi(programs, stacks="[]")
    bucket, findings = pulumi_state.check_state("dev")
    assert bucket == "state"
    assert findings[1].remedy == "pulumi stack init dev"


def test_pulumi_that_is_not_logged_in(programs: Path, project: Path) -> None:
    assert project
    program(
        programs, "pulumi", "echo 'error: PULUMI_ACCESS_TOKEN must be set for login' >&2; exit 255"
    )
    missing = only_missing(pulumi_state.check_state("dev")[1])
    assert (missing.text, missing.remedy) == (
        "Pulumi is not logged in to a state backend",
        "pulumi login gs://YOUR-STATE-BUCKET",
    )


def test_a_state_that_cannot_be_reached_is_told_in_pulumis_words(
    programs: Path, project: Path
) -> None:
    assert project
    program(programs, "pulumi", "echo 'error: could not list bucket: no such host' >&2; exit 255")
    assert (
        "cannot be used: could not list bucket: no such host"
        in only_missing(pulumi_state.check_state("dev")[1]).text
    )


def test_the_passphrase(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        "which is not set"
        in only_missing(filter(None, [pulumi_state.check_passphrase("dev", "gs://state")])).text
    )
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "other")
    assert states(filter(None, [pulumi_state.check_passphrase("dev", "gs://state")])) == [
        "fine"
    ]  # a new stack takes any
    write(project, {"pools": {}}, encryptionsalt=SALT)
    assert (
        "is not the one that stack dev was created with"
        in only_missing(filter(None, [pulumi_state.check_passphrase("dev", "gs://state")])).text
    )
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    (project / "secret").write_text("lab\n")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(project / "secret"))
    # It fits, and everybody knows it.
    assert (
        "by a passphrase that everybody knows"
        in only_missing(filter(None, [pulumi_state.check_passphrase("dev", "gs://state")])).text
    )


def test_a_key_needs_no_passphrase(project: Path) -> None:
    write(
        project,
        {"pools": {}},
        secretsprovider="gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k",
    )
    assert pulumi_state.check_passphrase("dev", "gs://state") is None


# The verb


def test_without_credentials_the_rest_is_not_checked_and_the_exit_code_is_1(
    programs: Path, project: Path
) -> None:
    assert project
    pulumi(programs)
    done = CliRunner().invoke(app, ["doctor", "-s", "dev", "--json"])
    assert done.exit_code == 1, done.output
    report = json.loads(done.stdout)
    assert (report["stack"], report["kind"], report["simulated"], report["fine"]) == (
        "dev",
        "environment",
        "",
        False,
    )
    credentials = [finding for finding in report["findings"] if finding["topic"] == "credentials"]
    assert [(credential["state"], credential["remedy"]) for credential in credentials] == [
        ("missing", "gcloud auth application-default login")
    ]
    unchecked = {
        finding["topic"]
        for finding in report["findings"]
        if finding["text"] == "not checked: see credentials"
    }
    assert unchecked == {"APIs", "permissions", "machines", "quota", "GKE", "state"}


def test_wrong_settings_and_unknown_stacks_are_exit_code_2(project: Path) -> None:
    write(project, {"pools": {"cpu": {"machineType": "n2-standard-61", "nodes": 1}}})
    done = CliRunner().invoke(app, ["doctor", "-s", "dev"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "stacks/Pulumi.dev.yaml:5: environment.pools.cpu.machineType" in done.stderr
    unknown = CliRunner().invoke(app, ["doctor", "-s", "dve"])
    assert unknown.exit_code == 2
    assert "did you mean 'dev'?" in unknown.stderr


# Kinds that IAM has no permission of its own for.
NEWER = {
    "DeviceClass",
    "ResourceClaimTemplate",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


def permission_for(resource_type: str) -> str:
    """IAM's name for making an object: `container.networkPolicies.create`; of custom resources
    all alike.
    """
    _, group, kind = resource_type.split(":")
    if group.startswith("ray.io/"):
        return "container.thirdPartyObjects.create"
    name = f"{kind[0].lower()}{kind[1:]}"
    plural = (
        f"{name[:-1]}ies"
        if name.endswith("y")
        else f"{name}es"
        if name.endswith("s")
        else f"{name}s"
    )
    return f"container.{plural}.create"


def test_every_type_that_the_program_registers_has_its_permissions() -> None:
    values = stack_file.read_stack_file(stack_file.stack_path("prod")).settings["environment"]
    # All that an environment can have on its cluster beside what prod has.
    values["defaults"] = values.get("defaults", {}) | {
        "access": {"users": ["bob@example.com"]},
        "lifecycle": {"idle": "2h"},
        "home": "50Gi",
    }
    values["cluster"] = values["cluster"] | {"nodeServiceAccount": "own"}
    reserved = {"kind": "reservation", "reservation": "nvl"}
    values["pools"]["nvl"] = {"machineType": "a4x-highgpu-4g", "nodes": 2, "capacity": reserved}
    recorded = run(lambda: register_environment(environment_of("prod", values)), "prod")
    types = {registration.type for registration in recorded.registrations}
    assert {type_ for type_ in types if type_.startswith("gcp:")} == set(permissions.OF_TYPE)
    needed = permissions.needed_permissions(networks=True, node_account=False, own_account=True)
    assert set(permissions.roles_of(needed)) <= set(permissions.ROLES.values())
    objects = {
        type_
        for type_ in types
        if type_.startswith("kubernetes:") and not type_.endswith(":Release")
    }
    asked = {permission_for(item) for item in objects if item.split(":")[-1] not in NEWER}
    assert {"container.cronJobs.create", "container.persistentVolumeClaims.create"} <= asked
    assert asked <= set(permissions.ON_THE_CLUSTER)
