"""The project, its APIs and permissions, its zones, and Pulumi's state, on answers in the shapes
that Google's APIs have.
"""

from typing import Any

from berth.cli.verbs.doctor.google_cloud import apis, permissions, project
from tests.unit.cli.verbs.recorded_google import (
    PROJECT,
    Recorded,
    environment,
    only_missing,
    states,
)

ZONE = "us-central1-b"
REGION = "us-central1"


def test_a_project_that_is_being_deleted_is_missing() -> None:
    google = Recorded(
        {"cloudresourcemanager": {"projectId": PROJECT, "lifecycleState": "DELETE_REQUESTED"}}
    )
    found = project.check_project(google)
    assert (found.state, found.remedy) == ("missing", f"gcloud projects undelete {PROJECT}")


def services(*enabled: str) -> dict[str, Any]:
    def answer(query: dict[str, Any]) -> dict[str, Any]:
        names = [(name, name.rsplit("/", 1)[-1]) for name in query["names"]]
        return {
            "services": [
                {"name": path, "state": "ENABLED" if item in enabled else "DISABLED"}
                for path, item in names
            ]
        }

    return {"serviceusage services:batchGet": answer}


def test_apis_that_are_off_come_with_one_command_for_all() -> None:
    google = Recorded(
        services(
            "cloudresourcemanager.googleapis.com",
            "iam.googleapis.com",
            "cloudquotas.googleapis.com",
        )
    )
    found = list(apis.check_apis(google, apis.required_apis(environment(), bucket=True, key=False)))
    missing = only_missing(found)
    assert (
        missing.text
        == "compute.googleapis.com, container.googleapis.com, storage.googleapis.com are not"
        " enabled"
    )
    assert (
        missing.remedy == "gcloud services enable compute.googleapis.com container.googleapis.com"
        f" storage.googleapis.com --project={PROJECT}"
    )


def test_an_api_that_only_the_checks_use_is_advice() -> None:
    google = Recorded(services("compute.googleapis.com"))
    found = list(apis.check_apis(google, ["compute.googleapis.com"]))
    assert states(found) == ["fine", "unchecked"]
    assert (
        found[1].remedy == f"gcloud services enable cloudquotas.googleapis.com --project={PROJECT}"
    )


def holding(*held: str) -> dict[str, Any]:
    return {
        "cloudresourcemanager :testIamPermissions": lambda body: {
            "permissions": [permission for permission in body["permissions"] if permission in held]
        }
    }


def test_lacking_permissions_come_with_the_least_roles() -> None:
    expected = permissions.needed_permissions(networks=True, node_account=False)
    held = [
        item
        for item in expected
        if not item.startswith(("compute.firewalls", "container.clusters"))
    ]
    missing = only_missing(permissions.check_permissions(Recorded(holding(*held)), environment()))
    assert "you lack 9 of" in missing.text
    assert missing.remedy.splitlines() == [
        f'gcloud projects add-iam-policy-binding {PROJECT} --member="user:$(gcloud config get'
        f' account)" --role={role}'
        for role in ("roles/compute.securityAdmin", "roles/container.admin")
    ]


def test_a_service_account_grants_to_itself() -> None:
    google = Recorded(holding(), account="ci@your-project.iam.gserviceaccount.com")
    assert (
        "--member=serviceAccount:ci@your-project.iam"
        in only_missing(permissions.check_permissions(google, environment())).remedy
    )


def test_existing_networks_need_no_permission_to_make_any() -> None:
    settings = environment(network={"existing": {"network": "n", "subnetwork": "s"}})
    expected = permissions.needed_permissions(networks=False, node_account=False)
    assert not any(item.startswith("compute.networks") for item in expected)
    assert states(permissions.check_permissions(Recorded(holding(*expected)), settings)) == ["fine"]


def test_the_nodes_service_account_is_asked_about_itself() -> None:
    account = "nodes@your-project.iam.gserviceaccount.com"
    settings = environment(cluster={"nodeServiceAccount": account})
    expected = permissions.needed_permissions(networks=True, node_account=True)
    assert "iam.serviceAccounts.actAs" not in expected
    path = f"iam projects/-/serviceAccounts/{account}"
    absent = only_missing(permissions.check_permissions(Recorded(holding(*expected)), settings))
    assert absent.remedy == f"gcloud iam service-accounts create nodes --project={PROJECT}"
    there: dict[str, Any] = {path: {"email": account}, f"{path}:testIamPermissions": {}}
    refused = only_missing(
        permissions.check_permissions(Recorded(holding(*expected) | there), settings)
    )
    assert refused.remedy.endswith("--role=roles/iam.serviceAccountUser")
    there[f"{path}:testIamPermissions"] = {"permissions": ["iam.serviceAccounts.actAs"]}
    assert states(
        permissions.check_permissions(Recorded(holding(*expected) | there), settings)
    ) == [
        "fine",
        "fine",
    ]


def test_an_account_that_berth_creates_needs_the_right_to_grant_two_roles() -> None:
    settings = environment(cluster={"nodeServiceAccount": "own"})
    expected = permissions.needed_permissions(networks=True, node_account=False, own_account=True)
    assert {"iam.serviceAccounts.create", "resourcemanager.projects.setIamPolicy"} <= set(expected)
    held = [item for item in expected if not item.startswith(("iam.", "resourcemanager."))]
    missing = only_missing(permissions.check_permissions(Recorded(holding(*held)), settings))
    roles = [line.partition("--role=")[2] for line in missing.remedy.splitlines()]
    limit = (
        "modifiedGrantsByRole', []).hasOnly(['roles/container.defaultNodeServiceAccount',"
        " 'roles/artifactregistry."
    )
    assert roles[:2] == ["roles/iam.serviceAccountAdmin", "roles/iam.serviceAccountUser"]
    assert roles[2].startswith(
        'roles/resourcemanager.projectIamAdmin --condition="^:^title=berth-nodes:expression='
    )
    assert limit in roles[2], "without this condition, whoever runs Pulumi could grant everything"
