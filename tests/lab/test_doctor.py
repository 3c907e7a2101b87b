"""`berth doctor` end to end: its own process, Google's client, the lab's stand-in for Google's
APIs.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from berth.lab.plugins.gcp.conditions import SHIPPED
from berth.stacks.files import stack_file
from tests.lab.conftest import Lab
from tests.lab.project import Project, environment_settings

pytestmark = pytest.mark.lab

NAME = "your-prod-project"
ENGINEER = "alice-of-shop"
"""A stack that no other test of the same lab has."""
SETTINGS = yaml.safe_load(stack_file.stack_path("prod").read_text())["config"]["berth:environment"]
MEMBER = '--member="user:$(gcloud config get account)"'


@pytest.fixture(scope="module")
def stacks(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Project with stack `shop` and an engineer's stack."""
    project = Project.make(tmp_path_factory.mktemp("doctor") / "project", lab)
    for stack in ("shop", ENGINEER):
        project.run("pulumi", "stack", "init", stack, "--no-select")
    return project


@pytest.fixture
def project(stacks: Project) -> Project:
    """The stacks as they are at first: `shop` has the shipped settings of `prod`."""
    stacks.write("shop", environment=SETTINGS)
    stacks.write(ENGINEER, engineer={"environment": "shop"})
    return stacks


@pytest.fixture(autouse=True)
def conditions(lab: Lab) -> Iterator[dict[str, Any]]:
    """Shipped conditions of the simulated project; a test changes them by `put`."""
    file = lab.home.cloud / SHIPPED.name
    before = file.read_text() if file.exists() else None
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SHIPPED.read_text())
    yield yaml.safe_load(SHIPPED.read_text())
    file.write_text(before) if before is not None else file.unlink()


def put(lab: Lab, conditions: dict[str, Any], **changes: Any) -> None:
    """Give the project its own entry, the default one with `changes`."""
    entry = conditions["projects"]["*"] | changes
    (lab.home.cloud / SHIPPED.name).write_text(
        yaml.safe_dump(conditions | {"projects": {NAME: entry}})
    )


def doctor(project: Project, stack: str = "shop", *before: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report."""
    done = project.run("env", *before, "berth", "doctor", "-s", stack, "--json", check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def missing(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Topic, text and remedy of each missing requirement."""
    return [
        (finding["topic"], finding["text"], finding["remedy"])
        for finding in report["findings"]
        if finding["state"] == "missing"
    ]


def test_production_settings_meet_all_requirements(project: Project) -> None:
    code, report = doctor(project)
    assert (code, missing(report)) == (0, [])
    assert report["simulated"] == f"the lab in {project.lab.home.root}"
    topics = {finding["topic"] for finding in report["findings"] if finding["state"] == "fine"}
    assert topics == {
        *(
            "settings",
            "tools",
            "state",
            "credentials",
            "project",
            "APIs",
            "permissions",
            "machines",
        ),
        *("reservations", "quota", "GKE"),
    }
    for_people = project.run("berth", "doctor", "-s", "shop").stdout.splitlines()
    assert for_people[0] == f"Google Cloud is simulated by the lab in {project.lab.home.root}."
    assert for_people[-1].startswith("nothing is missing")


def test_missing_requirements_of_the_project_are_named_with_their_remedies(
    project: Project, lab: Lab, conditions: dict[str, Any]
) -> None:
    conditions["reservations"] = []
    put(
        lab,
        conditions,
        services=[
            "cloudquotas.googleapis.com",
            "compute.googleapis.com",
            "cloudresourcemanager.googleapis.com",
        ],
        quotas={"us-central1": {"NVIDIA_L4_GPUS": 8}, "global": {"GPUS_ALL_REGIONS": 1}},
        permissions=["compute.networks.get"],
    )
    code, report = doctor(project)
    assert code == 1
    found = {topic: (text, remedy) for topic, text, remedy in missing(report)}
    assert found["APIs"] == (
        "container.googleapis.com, iam.googleapis.com are not enabled",
        f"gcloud services enable container.googleapis.com iam.googleapis.com --project={NAME}",
    )
    assert (
        f"gcloud projects add-iam-policy-binding {NAME} {MEMBER} --role=roles/container.admin"
        in found["permissions"][1]
    )
    assert (
        found["reservations"][0]
        == f"pool train: zone us-central1-b of project {NAME} has no reservation a4-prod"
    )
    assert found["reservations"][1].startswith(f"gcloud compute reservations list --project={NAME}")
    short = [(text, remedy) for topic, text, remedy in missing(report) if topic == "quota"]
    assert [text for text, _ in short] == [
        "GPUS_ALL_REGIONS in all regions: pool dev takes up to 16, but the limit is 1",
        "NVIDIA_L4_GPUS in us-central1: pool dev takes up to 16, but the limit is 8",
    ]
    assert (
        "--quota-id=NVIDIA-L4-GPUS-per-project-region --dimensions=region=us-central1"
        " --preferred-value=16" in short[1][1]
    )
    unchecked = [
        finding
        for finding in report["findings"]
        if finding["state"] == "unchecked" and finding["topic"] == "GKE"
    ]
    assert [item["text"] for item in unchecked] == [
        "not checked: container.googleapis.com is not enabled"
    ]


def test_gkes_agents_need_their_roles_in_the_host_project(
    project: Project, lab: Lab, conditions: dict[str, Any]
) -> None:
    shared = {"project": "network-host", "network": "shared", "subnetwork": "nodes"}
    settings = environment_settings(lab, {}, network={"existing": shared})
    project.write("shop", environment=settings)

    def found() -> list[tuple[str, str]]:
        _, report = doctor(project)
        return [
            (finding["state"], finding["remedy"])
            for finding in report["findings"]
            if finding["topic"] == "Shared VPC"
        ]

    assert [state for state, _ in found()] == ["fine"] * 3
    conditions["projects"]["*"]["agentRoles"] = []
    (lab.home.cloud / SHIPPED.name).write_text(yaml.safe_dump(conditions))
    agent = "serviceAccount:service-000000000000@container-engine-robot.iam.gserviceaccount.com"
    assert [state for state, _ in found()] == ["missing"] * 3
    assert found()[0][1] == (
        f"gcloud projects add-iam-policy-binding network-host --member={agent}"
        " --role=roles/container.hostServiceAgentUser --condition=None"
    )
    conditions["projects"]["*"]["permissions"] = ["compute.subnetworks.get"]
    (lab.home.cloud / SHIPPED.name).write_text(yaml.safe_dump(conditions))
    assert [state for state, _ in found()] == ["unchecked"] * 3


@pytest.mark.long
def test_a_missing_project(project: Project, lab: Lab, conditions: dict[str, Any]) -> None:
    (lab.home.cloud / SHIPPED.name).write_text(yaml.safe_dump(conditions | {"projects": {}}))
    code, report = doctor(project)
    assert code == 1
    assert missing(report) == [
        (
            "project",
            f"there is no project {NAME}, or you may not see it",
            f"gcloud projects create {NAME}   # or ask for access",
        )
    ]


def test_an_existing_cluster_is_asked_itself(project: Project, lab: Lab) -> None:
    existing = {
        "cluster": {"existing": {"kubeconfig": str(lab.kubeconfig)}},
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}},
    }
    project.write("shop", environment=existing)
    code, report = doctor(project)
    assert code == 1
    no_pool, no_enforcer = [text for _, text, _ in missing(report)]
    assert no_pool == "no node has the label cloud.google.com/gke-nodepool=cpu"
    # The lab's nodes run no agent of a network.
    assert no_enforcer.startswith("nothing in the cluster enforces NetworkPolicies")
    fine = [
        finding["text"]
        for finding in report["findings"]
        if finding["topic"] == "cluster" and finding["state"] == "fine"
    ]
    assert fine[0].startswith("the API server answers: Kubernetes 1.")
    assert fine[1] == "you have the rights in the cluster that an update needs"
    project.write(
        "shop", environment=existing | {"cluster": {"existing": {"kubeconfig": "gone.yaml"}}}
    )
    code, report = doctor(project)
    assert code == 1
    assert missing(report)[0][1].startswith("there is no file gone.yaml; write one")


@pytest.mark.long
def test_an_environment_that_is_up_needs_nothing_more(
    project: Project, lab: Lab, conditions: dict[str, Any]
) -> None:
    settings = environment_settings(
        lab,
        {"cpu": {"machineType": "n2-standard-16", "nodes": 2}},
        project=NAME,
        network={},
        defaults={"worker": {"pool": "cpu", "gpus": 0, "cpu": 1, "memory": "1Gi"}},
    )
    project.write("shop", environment=settings)
    code, report = doctor(project, ENGINEER)
    assert code == 1
    assert [remedy for _, _, remedy in missing(report)] == ["berth up -s shop"]
    project.up("shop")
    # The environment's own nodes use the whole quota.
    put(lab, conditions, quotas={"us-central1": {"N2_CPUS": 32}})
    code, report = doctor(project)
    assert (code, missing(report)) == (0, [])
    assert any(
        "cluster shop exists (RUNNING), with GKE" in finding["text"]
        for finding in report["findings"]
    )
    code, report = doctor(project, ENGINEER)
    assert (code, missing(report)) == (0, [])
    assert report["findings"][-1]["text"] == "pool cpu: 2 nodes, all ready"
