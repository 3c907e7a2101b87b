"""Service account of the nodes: created with two roles where the settings say `own`."""

import pytest

from berth.components.gke.accounts import NODE_ROLES, account_id
from berth.components.plan.fleet import GKE_CLUSTER, NODE_POOL
from tests.unit.components.gke import environment_of
from tests.unit.components.gke.registered import recorded
from tests.unit.recording import Recorder

ACCOUNT = "gcp:serviceaccount/account:Account"
MEMBER = "gcp:projects/iAMMember:IAMMember"


def registered(account: str | None) -> Recorder:
    return recorded("fleet", environment_of(cluster={"nodeServiceAccount": account}))


def test_nodes_run_as_an_account_with_the_roles_that_nodes_need() -> None:
    recorder = registered("own")
    (account,) = recorder.of_type(ACCOUNT)
    project = account.inputs["project"]
    email = f"fleet-nodes@{project}.iam.gserviceaccount.com"
    assert account.inputs["accountId"] == "fleet-nodes"
    members = {
        (member.inputs["role"], member.inputs["member"]) for member in recorder.of_type(MEMBER)
    }
    assert members == {(role, f"serviceAccount:{email}") for role in NODE_ROLES}
    nodes = [*recorder.of_type(NODE_POOL), *recorder.of_type(GKE_CLUSTER)]
    assert {resource.inputs["nodeConfig"]["serviceAccount"] for resource in nodes} == {email}


@pytest.mark.parametrize("account", [None, "nodes@some-project.iam.gserviceaccount.com"])
def test_another_account_is_taken_as_it_is(account: str | None) -> None:
    recorder = registered(account)
    assert recorder.of_type(ACCOUNT) == recorder.of_type(MEMBER) == []
    assert {
        pool.inputs["nodeConfig"].get("serviceAccount") for pool in recorder.of_type(NODE_POOL)
    } == {account}


@pytest.mark.parametrize("name", ["a", "n" * 30, "n" * 50])
def test_ids_are_of_the_length_that_iam_takes(name: str) -> None:
    assert 6 <= len(account_id(name)) <= 30
    assert account_id(name) != account_id(f"{name}x")
