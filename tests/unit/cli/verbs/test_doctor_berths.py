"""berth doctor says which secret values, claims and features of GKE the berths of an environment
lack, from the answers of an API server.
"""

from typing import Any, cast

import pytest

from berth.cli.reach.environment import NotUpError
from berth.cli.verbs.doctor.findings import DoctorFinding
from berth.cli.verbs.doctor.kubernetes.berths import check_berths
from berth.cli.verbs.doctor.kubernetes.clusters import check_own
from berth.cli.verbs.doctor.kubernetes.features import FEATURES, check_features
from berth.components.berth import BerthInputs
from berth.components.cluster.api import ClusterApi, RefusedError
from berth.components.gke import Addon
from tests.unit.loaded import environment_of

SECRET = {"data": {"value": "Y2FuYXJ5"}}


class Answers:
    """API server with these objects, by path; `None` is a refusal."""

    def __init__(self, objects: dict[str, Any]) -> None:
        self._objects = {
            "/api/v1/namespaces/berth-bob": {},
            "/api/v1/namespaces/berth-amy": {},
        } | objects

    def get(self, path: str) -> Any:
        if self._objects.get(path, "") is None:
            raise RefusedError(403, {"message": "forbidden"})
        return self._objects.get(path)


def berths(**engineers: dict[str, Any]) -> list[BerthInputs]:
    defaults = {"worker": {"gpus": 0, "pool": "cpu"}}
    pools = {"cpu": {"machineType": "n2-standard-16", "nodes": 2}}
    place = {"project": "some-project", "zone": "us-central1-b"}
    return list(
        environment_of(
            "some", {**place, "pools": pools, "defaults": defaults, "engineers": engineers}
        ).berths
    )


def check(found: list[BerthInputs], **objects: Any) -> list[DoctorFinding]:
    by_path = {path.replace("__", "/"): item for path, item in objects.items()}
    return check_berths(found, cast("ClusterApi", Answers(by_path)))


def secret(name: str, of: str) -> str:
    return f"/api/v1/namespaces/berth-{of}/secrets/{name}"


def claim(name: str, of: str) -> str:
    return f"/api/v1/namespaces/berth-{of}/persistentvolumeclaims/{name}"


def test_a_missing_value_has_its_command_and_the_others_are_counted() -> None:
    found = berths(
        bob={"secrets": {"HF_TOKEN": {}, "WANDB": {}}}, amy={"secrets": {"HF_TOKEN": {}}}
    )
    missing, fine = check(
        found, **{secret("hf-token", "bob"): SECRET, secret("hf-token", "amy"): SECRET}
    )
    assert (missing.state, missing.remedy) == ("missing", "berth secret set bob WANDB")
    assert missing.text == "WANDB of bob has no value (Secret wandb, key value): pods cannot start"
    assert (fine.state, fine.text) == ("fine", "2 secret variables of 2 berths have a value")


def test_before_the_first_update_nothing_is_missing_yet() -> None:
    namespace = "/api/v1/namespaces/berth-bob"
    api = Answers({})
    api._objects.pop(namespace)  # noqa: SLF001 - the berth is not up
    (found,) = check_berths(berths(bob={"secrets": {"HF_TOKEN": {}}}), cast("ClusterApi", api))
    assert (found.state, found.remedy) == ("unchecked", "berth secret set bob HF_TOKEN")


def test_a_value_that_gke_could_not_read_comes_with_gkes_reason_and_the_right_that_it_needs() -> (
    None
):
    status = {
        "status": "False",
        "type": "SecretCreated",
        "reason": "ProviderError",
        "message": "permission denied",
    }
    sync = {
        "/apis/secret-sync.gke.io/v1/namespaces/berth-bob/secretsyncs/hf-token": {
            "status": {"conditions": [status]}
        }
    }
    (found,) = check(berths(bob={"secrets": {"HF_TOKEN": {"secretManager": "hf"}}}), **sync)
    assert found.state == "missing"
    assert "projects/some-project/secrets/hf/versions/latest" in found.text
    assert found.text.endswith("ProviderError: permission denied")
    assert (
        found.remedy == "gcloud secrets add-iam-policy-binding hf --project=some-project"
        " --role=roles/secretmanager.secretAccessor"
        ' --member="principal://iam.googleapis.com/projects/$(gcloud projects describe some-project'
        " --format='value(projectNumber)')/locations/global/workloadIdentityPools"
        '/some-project.svc.id.goog/subject/ns/berth-bob/sa/secret-manager"'
    )


@pytest.mark.parametrize(
    ("there", "state", "words"),
    [
        ({}, "missing", "which namespace berth-bob does not have: pods cannot start"),
        (
            {"spec": {"accessModes": ["ReadWriteOnce"]}},
            "missing",
            "access mode ReadWriteOnce is for one node",
        ),
        (
            {"spec": {"accessModes": ["ReadWriteMany"]}},
            "fine",
            "mounts claim team-data (ReadWriteMany)",
        ),
        (None, "unchecked", "volume team of bob"),
    ],
)
def test_a_claim_has_to_be_there_and_for_several_nodes(there: Any, state: str, words: str) -> None:
    objects = {claim("team-data", "bob"): there} if there != {} else {}
    (found,) = check(
        berths(bob={"volumes": {"team": {"claim": "team-data", "at": "/team"}}}), **objects
    )
    assert found.state == state
    assert words in found.text


@pytest.mark.parametrize(
    ("addon", "words", "options"),
    [
        (
            "gcs_fuse",
            "gcsfuse.csi.storage.gke.io is not there",
            "--update-addons=GcsFuseCsiDriver=ENABLED",
        ),
        (
            "filestore",
            "filestore.csi.storage.gke.io is not there",
            "--update-addons=GcpFilestoreCsiDriver=ENABLED",
        ),
        (
            "secret_sync",
            "secret-sync.gke.io/v1 is not served",
            "--enable-secret-sync --enable-secret-sync-rotation",
        ),
    ],
)
def test_a_feature_of_gke_that_is_off_comes_with_its_command(
    addon: Addon, words: str, options: str
) -> None:
    feature = FEATURES[addon]
    (off,) = check_features(cast("ClusterApi", Answers({})), [addon])
    assert (off.state, off.remedy) == (
        "missing",
        f"gcloud container clusters update CLUSTER --location=LOCATION {options}",
    )
    assert off.text.startswith(words)
    (on,) = check_features(cast("ClusterApi", Answers({feature.path: {"kind": "x"}})), [addon])
    assert (on.state, on.text) == ("fine", f"GKE's {feature.name} is on")
    (unknown,) = check_features(cast("ClusterApi", Answers({feature.path: None})), [addon])
    assert unknown.state == "unchecked"


def test_berths_of_an_environment_that_is_not_up_are_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def not_up(_: str) -> None:
        raise NotUpError("stack some has not been brought up")

    monkeypatch.setattr("berth.cli.verbs.doctor.kubernetes.clusters.brought_up", not_up)
    assert check_own("some", berths(bob={"secrets": {"HF_TOKEN": {}}})) == []
    assert check_own("some", berths(bob={})) == []
