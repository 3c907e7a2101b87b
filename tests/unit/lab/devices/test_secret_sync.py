"""Values of Secret Manager that the lab writes into Secrets."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from berth.components.ray.secret_manager import secret_objects
from berth.components.ray.variables import SecretKey
from berth.lab.devices.secret_sync import SyncError, secret_of
from berth.lab.plugins.gcp import addons
from berth.lab.plugins.gcp.conditions import Conditions

CONDITIONS = Conditions.model_validate({"projects": {"some-project": {"secrets": {"hf": ["one", "two"]}}}})


def objects(secret: str) -> dict[str, Any]:
    """Objects that berth makes, as the API server has them."""
    secrets = {"HF_TOKEN": SecretKey(secret_manager=secret)}
    found = secret_objects(secrets, "some-project", "berth-bob", {})
    return {item["kind"]: {**item, "metadata": {**item["metadata"], "uid": "1"}} for item in found}


@pytest.mark.parametrize(("secret", "value"), [("hf", "two"), ("projects/some-project/secrets/hf/versions/1", "one")])
def test_the_secret_has_the_value_of_its_version(secret: str, value: str) -> None:
    pair = objects(secret)
    found = secret_of(pair["SecretSync"], pair["SecretProviderClass"], CONDITIONS)
    assert found["data"] == {"synced": base64.b64encode(value.encode()).decode()}
    assert found["metadata"]["name"] == "hf-token"
    assert found["metadata"]["ownerReferences"][0]["kind"] == "SecretSync"


@pytest.mark.parametrize("secret", ["other", "hf/versions/3", "projects/another-project/secrets/hf"])
def test_a_version_that_is_not_there_is_googles_refusal(secret: str) -> None:
    pair = objects(secret)
    with pytest.raises(SyncError, match="not found or has no versions") as caught:
        secret_of(pair["SecretSync"], pair["SecretProviderClass"], CONDITIONS)
    assert caught.value.reason == "ProviderError"


def test_a_class_has_to_be_there() -> None:
    with pytest.raises(SyncError) as caught:
        secret_of(objects("hf")["SecretSync"], None, CONDITIONS)
    assert caught.value.reason == "SecretProviderClassMisconfigured"


def test_add_ons_bring_drivers_classes_and_kinds() -> None:
    inputs = {
        "addonsConfig": {"gcsFuseCsiDriverConfig": {"enabled": True}, "gcpFilestoreCsiDriverConfig": {"enabled": True}},
        "secretSyncConfig": {"enabled": True},
    }
    assert [driver["metadata"]["name"] for driver in addons.drivers(inputs)] == [
        "gcsfuse.csi.storage.gke.io",
        "filestore.csi.storage.gke.io",
    ]
    assert {found["metadata"]["name"] for found in addons.storage_classes(inputs)} >= {"standard-rwx", "zonal-rwx"}
    names = [found["metadata"]["name"] for found in addons.definitions(inputs)]
    assert names == ["secretproviderclasses.secrets-store.csi.x-k8s.io", "secretsyncs.secret-sync.gke.io"]
    off = {"secretSyncConfig": {"enabled": False}, "addonsConfig": {}}
    assert json.dumps([addons.drivers(off), addons.storage_classes(off), addons.definitions(off)]) == "[[], [], []]"
