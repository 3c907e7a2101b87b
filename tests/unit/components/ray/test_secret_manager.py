"""Secret variables from Secret Manager: objects by which GKE writes them into Secrets."""

from typing import Any

import yaml

from tests.unit.loaded import engineer_of, environment_of

SECRETS = {
    "HF_TOKEN": {"secretManager": "hf"},
    "WANDB_API_KEY": {"secretManager": "projects/team-secrets/secrets/wandb/versions/3"},
    "OTHER": {},
}


def values(place: dict[str, Any], **shape: Any) -> dict[str, Any]:
    bob = {"worker": {"gpus": 0, "pool": "cpu"}, **shape}
    pools = {"cpu": {"machineType": "n2-standard-16", "nodes": 2}}
    return {"pools": pools, "engineers": {"bob": bob}, **place}


OWN = {"project": "some-project", "zone": "us-central1-b"}


def objects(place: dict[str, Any], **shape: Any) -> dict[tuple[str, str], dict[str, Any]]:
    (berth,) = environment_of("some", values(place, **shape)).berths
    return {(item["kind"], item["metadata"]["name"]): item for item in berth.manifests.objects}


def test_each_secret_has_objects_of_its_own_and_one_account_reads_them() -> None:
    found = objects(OWN, secrets=SECRETS)
    assert found["ServiceAccount", "secret-manager"]["automountServiceAccountToken"] is False
    assert [name for kind, name in found if kind == "SecretSync"] == ["hf-token", "wandb-api-key"]
    parameters = found["SecretProviderClass", "hf-token"]["spec"]
    assert parameters["provider"] == "gke"
    assert yaml.safe_load(parameters["parameters"]["secrets"]) == [
        {"resourceName": "projects/some-project/secrets/hf/versions/latest", "path": "value"}
    ]
    wandb = yaml.safe_load(
        found["SecretProviderClass", "wandb-api-key"]["spec"]["parameters"]["secrets"]
    )
    assert wandb[0]["resourceName"] == "projects/team-secrets/secrets/wandb/versions/3"
    assert found["SecretSync", "hf-token"]["spec"] == {
        "serviceAccountName": "secret-manager",
        "secretProviderClassName": "hf-token",
        "secretObject": {
            "type": "Opaque",
            "data": [{"sourcePath": "value", "targetKey": "synced"}],
        },
    }


def test_pods_read_the_secret_that_gke_writes_and_run_under_another_account() -> None:
    (berth,) = environment_of("some", values(OWN, secrets=SECRETS)).berths
    pod = berth.manifests.main["spec"]["headGroupSpec"]["template"]["spec"]
    variables = {entry["name"]: entry for entry in pod["containers"][0]["env"]}
    assert variables["HF_TOKEN"]["valueFrom"] == {
        "secretKeyRef": {"name": "hf-token", "key": "synced"}
    }
    assert "serviceAccountName" not in pod


def test_users_may_read_why_a_value_is_missing() -> None:
    access = {"users": ["bob@example.com"]}
    rules = objects(OWN, secrets=SECRETS, access=access)["Role", "berth-user"]["rules"]
    (rule,) = [rule for rule in rules if rule["resources"] == ["secretsyncs"]]
    assert rule["verbs"] == ["get", "list", "watch"]
    plain = objects(OWN, secrets={"OTHER": {}}, access=access)["Role", "berth-user"]["rules"]
    assert not [rule for rule in plain if rule["resources"] == ["secretsyncs"]]


def test_without_such_secrets_nothing_is_added() -> None:
    assert not {"ServiceAccount", "SecretSync", "SecretProviderClass"} & {
        kind for kind, _ in objects(OWN)
    }


def test_an_engineers_own_stack_takes_the_project_of_its_environment() -> None:
    shape = {"worker": {"gpus": 0, "pool": "cpu"}, "secrets": {"HF_TOKEN": {"secretManager": "hf"}}}
    contract = environment_of("lab", values({**OWN, "cluster": {"secretSync": True}})).contract()
    berth = engineer_of("amy", **shape).on(contract).berth
    (found,) = [item for item in berth.manifests.objects if item["kind"] == "SecretProviderClass"]
    assert (
        "projects/some-project/secrets/hf/versions/latest" in found["spec"]["parameters"]["secrets"]
    )


def test_an_environment_that_uses_neither_tells_engineers_nothing_new() -> None:
    text = (
        environment_of("lab", values(OWN))
        .contract()
        .model_dump_json(by_alias=True, exclude_none=True)
    )
    assert not {"filestore", "project"} & set(yaml.safe_load(text))
