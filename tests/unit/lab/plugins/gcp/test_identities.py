from berth.lab.plugins.gcp.resource import Kind

from .conftest import PROJECT, Simulated

ACCOUNT, MEMBER = "gcp:serviceaccount/account:Account", "gcp:projects/iAMMember:IAMMember"
EMAIL = f"dev-nodes@{PROJECT}.iam.gserviceaccount.com"
GRANT = {"role": "roles/container.defaultNodeServiceAccount", "member": f"serviceAccount:{EMAIL}"}


def test_an_account_and_its_role_come_and_go(simulated: Simulated) -> None:
    account = simulated.create(ACCOUNT, accountId="dev-nodes")
    member = simulated.create(MEMBER, **GRANT)
    assert simulated.read(ACCOUNT, account)[1]["email"] == EMAIL
    assert simulated.read(MEMBER, member)[1]["role"] == GRANT["role"]
    assert simulated.update(ACCOUNT, account, accountId="dev-nodes", displayName="nodes")["displayName"] == "nodes"
    simulated.delete(MEMBER, member)
    simulated.delete(ACCOUNT, account)
    assert simulated.store.list() == []


def test_another_id_or_role_replaces(simulated: Simulated) -> None:
    account = simulated.create(ACCOUNT, accountId="dev-nodes")
    member = simulated.create(MEMBER, **GRANT)
    assert simulated.diff(ACCOUNT, account, accountId="other-nodes") == {"accountId": Kind.UPDATE_REPLACE}
    assert simulated.diff(MEMBER, member, **(GRANT | {"role": "roles/owner"})) == {"role": Kind.UPDATE_REPLACE}
