"""Shares of Filestore of a berth: their claims, the quota, and what stays."""

from typing import Any

from berth.components.berth import BerthManifests
from berth.components.core.owner import KEEPS_HOME
from tests.unit.loaded import engineer_of, environment_of

KUBECONFIG = {"existing": {"kubeconfig": "~/.kube/config"}}
TEAM = {"filestore": "2Ti", "at": "/team"}


def values(shape: dict[str, Any], cluster: dict[str, Any] | None = None) -> dict[str, Any]:
    place = (
        {"cluster": cluster}
        if cluster and "existing" in cluster
        else {"project": "some-project", "zone": "us-central1-b"}
    )
    bob = {"worker": {"gpus": 0, "pool": "cpu"}, **shape}
    pools = {"cpu": {"machineType": "n2-standard-16", "nodes": 2}}
    return {"cluster": cluster or {}, **place, "pools": pools, "engineers": {"bob": bob}}


def manifests(shape: dict[str, Any], cluster: dict[str, Any] | None = None) -> BerthManifests:
    (berth,) = environment_of("some", values(shape, cluster)).berths
    return berth.manifests


def claims(found: BerthManifests) -> dict[str, dict[str, Any]]:
    kind = "PersistentVolumeClaim"
    return {
        item["metadata"]["name"]: item["spec"] for item in found.objects if item["kind"] == kind
    }


def test_a_share_is_a_claim_that_head_and_workers_mount() -> None:
    found = manifests({"volumes": {"team": TEAM}})
    assert claims(found)["share-team"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "2Ti"}},
        "storageClassName": "berth-standard-rwx",
    }
    spec = found.main["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        (volume,) = [item for item in pod["volumes"] if item["name"] == "volume-team"]
        assert volume["persistentVolumeClaim"] == {"claimName": "share-team", "readOnly": False}
        assert {"name": "volume-team", "mountPath": "/team"} in pod["containers"][0]["volumeMounts"]
        assert pod["securityContext"]["fsGroup"] == 1000


def test_a_class_of_ones_own_stays_and_so_do_gkes_classes_on_an_existing_cluster() -> None:
    own = claims(manifests({"volumes": {"team": {**TEAM, "storageClass": "team-rwx"}}}))
    assert own["share-team"]["storageClassName"] == "team-rwx"
    existing = claims(manifests({"volumes": {"team": TEAM}}, KUBECONFIG))
    assert existing["share-team"]["storageClassName"] == "standard-rwx"


def test_the_quota_has_room_for_shares_beside_other_claims() -> None:
    found = manifests({"home": "50Gi", "volumes": {"team": TEAM}})
    (quota,) = [item["spec"]["hard"] for item in found.objects if item["kind"] == "ResourceQuota"]
    assert quota["requests.storage"] == f"{3 * 2**20 + 50 * 2**10}Mi"
    assert quota["persistentvolumeclaims"] == "12"


def test_a_share_keeps_its_namespace_unless_told_otherwise() -> None:
    def keeps(shape: dict[str, Any]) -> bool:
        return KEEPS_HOME in manifests(shape).namespace["metadata"]["annotations"]

    assert not keeps({"volumes": {"team": {"claim": "team", "at": "/team"}}})
    assert keeps({"volumes": {"team": TEAM}})
    assert not keeps({"volumes": {"team": {**TEAM, "retain": False}}})


def test_an_engineers_own_stack_has_the_class_of_its_environment() -> None:
    shape = {"worker": {"gpus": 0, "pool": "cpu"}, "volumes": {"team": TEAM}}
    berth = (
        engineer_of("amy", **shape)
        .on(environment_of("lab", values({}, {"filestore": True})).contract())
        .berth
    )
    assert claims(berth.manifests)["share-team"]["storageClassName"] == "berth-standard-rwx"
    existing = (
        engineer_of("amy", **shape)
        .on(environment_of("lab", values({}, KUBECONFIG)).contract())
        .berth
    )
    assert claims(existing.manifests)["share-team"]["storageClassName"] == "standard-rwx"
