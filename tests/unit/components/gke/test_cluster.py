from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from berth.components.gke import SHARE_CLASSES, SHARE_DRIVER, storage_classes
from berth.components.gke.cluster_arguments import cluster_arguments
from berth.components.gke.kubeconfig import kubeconfig
from berth.components.gke.names import LIMIT, derived
from berth.components.gke.node_account_name import node_account
from tests.unit.components.gke import environment_of

RDMA_POOL = {
    "machineType": "a4-highgpu-8g",
    "nodes": 2,
    "capacity": {"kind": "reservation", "reservation": "a4"},
    "rdma": "networks",
}

CASES: dict[str, dict[str, Any]] = {
    "zonal-by-default": {},
    "regional-private-with-addon": {
        "region": "us-central1",
        "zones": ["us-central1-f", "us-central1-a", "us-central1-b"],
        "labels": {"owner": "ml-platform", "cost-center": "research"},
        "cluster": {
            "version": "1.35",
            "releaseChannel": "RAPID",
            "deletionProtection": False,
            "privateEndpoint": True,
            "authorizedNetworks": {"office": "203.0.113.0/24", "ci": "198.51.100.7/32"},
            "logging": ["SYSTEM", "WORKLOADS", "APISERVER"],
            "securityGroup": "gke-security-groups@example.com",
            "secretsEncryptionKey": "projects/some-project/locations/us-central1/keyRings/berth/cryptoKeys/secrets",
            "nodeServiceAccount": "nodes@some-project.iam.gserviceaccount.com",
        },
        "operators": {"kuberay": {"source": "addon"}},
    },
    "with-rdma-networks-and-public-nodes": {
        "pools": {"train": RDMA_POOL, "cpu": {"machineType": "n2-standard-16", "nodes": 1}},
        "cluster": {"privateNodes": False, "managedPrometheus": False, "managedDcgm": False},
        "operators": {"kuberay": {"source": "present"}},
    },
}


def arguments(pools: dict[str, Any] | None = None, **values: Any) -> Any:
    """Return the arguments of an environment's cluster as plain data."""
    return cluster_arguments(environment_of(pools, **values))


@pytest.mark.parametrize("case", CASES)
def test_arguments(golden: Callable[[str, Any], None], case: str) -> None:
    settings = environment_of(**CASES[case])
    golden(f"gke/cluster-{case}", cluster_arguments(settings, node_account(settings, "some")))


@pytest.mark.parametrize(
    ("source", "enabled"),
    [("chart", [False]), ("addon", [True]), ("present", [])],
)
def test_gkes_ray_operator_is_never_beside_the_chart(source: str, enabled: list[bool]) -> None:
    given = arguments(operators={"kuberay": {"source": source}})
    operators = given.get("addons_config", {}).get("ray_operator_configs", [])
    assert [operator["enabled"] for operator in operators] == enabled


def test_rays_logs_and_metrics_go_where_the_clusters_go() -> None:
    operators = {"kuberay": {"source": "addon"}}
    quiet = {"logging": ["SYSTEM"], "managedPrometheus": False, "managedDcgm": False}
    found = []
    for cluster in ({}, quiet):
        (ray,) = arguments(operators=operators, cluster=cluster)["addons_config"]["ray_operator_configs"]
        found.append((ray["ray_cluster_logging_config"]["enabled"], ray["ray_cluster_monitoring_config"]["enabled"]))
    assert found == [(True, True), (False, False)]


@pytest.mark.parametrize(
    ("given", "expected"), [({}, None), ({"multiNetworking": True}, True), ({"multiNetworking": False}, False)]
)
def test_multi_networking_is_on_where_it_is_asked_for(given: dict[str, Any], expected: bool | None) -> None:  # noqa: FBT001
    assert arguments(cluster=given).get("enable_multi_networking") is expected


def test_multi_networking_is_on_where_a_pool_has_further_networks() -> None:
    assert arguments({"train": RDMA_POOL})["enable_multi_networking"] is True


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({}, None),
        ({"authorizedNetworks": {"office": "203.0.113.0/24"}}, ["203.0.113.0/24"]),
        ({"privateEndpoint": True}, []),
    ],
)
def test_no_list_of_networks_is_sent_that_would_open_a_control_plane(
    cluster: dict[str, Any], expected: list[str] | None
) -> None:
    """No list is sent that the settings lack: a list that somebody set outside berth
    stays in force.
    """
    given = arguments(cluster=cluster).get("master_authorized_networks_config")
    assert (given and [block["cidr_block"] for block in given["cidr_blocks"]]) == expected


def test_the_kubeconfig_holds_no_credential() -> None:
    config = json.loads(kubeconfig("some", "203.0.113.1", "Y2E="))
    (cluster,), (user,) = config["clusters"], config["users"]
    assert cluster["cluster"] == {"server": "https://203.0.113.1", "certificate-authority-data": "Y2E="}
    assert user["user"].keys() == {"exec"}
    assert user["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"
    assert config["current-context"] == "some"


def test_names_are_kept_where_they_fit_and_stay_different_where_they_do_not() -> None:
    assert derived("some", "rdma", "us-central1-b", "0") == "some-rdma-us-central1-b-0"
    longest = "n" * 50
    names = {derived(longest, "rdma", "northamerica-northeast1-a", str(number)) for number in range(8)}
    assert len(names) == 8
    assert all(len(name) <= LIMIT and "--" not in name for name in names)


@pytest.mark.parametrize(
    ("cluster", "volume", "driver"),
    [
        ({}, {"claim": "team"}, None),
        ({"gcsFuse": True}, {"claim": "team"}, {"enabled": True}),
        ({}, {"bucket": "my-bucket"}, {"enabled": True}),
    ],
)
def test_the_driver_of_buckets_is_on_where_something_mounts_one(
    cluster: dict[str, Any], volume: dict[str, Any], driver: dict[str, Any] | None
) -> None:
    alice = {"worker": {"gpus": 0, "pool": "cpu"}, "volumes": {"data": {"at": "/data", **volume}}}
    addons = arguments(cluster=cluster, engineers={"alice": alice})["addons_config"]
    assert addons.get("gcs_fuse_csi_driver_config") == driver


@pytest.mark.parametrize(
    ("cluster", "shape", "addon", "sync"),
    [
        ({}, {}, None, None),
        ({"filestore": True, "secretSync": False}, {}, {"enabled": True}, {"enabled": False}),
        ({}, {"volumes": {"team": {"filestore": "1Ti", "at": "/team"}}}, {"enabled": True}, None),
        (
            {},
            {"secrets": {"HF_TOKEN": {"secretManager": "hf"}}},
            None,
            {"enabled": True, "rotation_config": {"enabled": True}},
        ),
    ],
)
def test_filestore_and_secret_manager_are_on_where_something_uses_them(
    cluster: dict[str, Any], shape: dict[str, Any], addon: dict[str, Any] | None, sync: dict[str, Any] | None
) -> None:
    alice = {"worker": {"gpus": 0, "pool": "cpu"}, **shape}
    given = arguments(cluster=cluster, engineers={"alice": alice})
    assert given.get("addons_config", {}).get("gcp_filestore_csi_driver_config") == addon
    assert given.get("secret_sync_config") == sync


@pytest.mark.parametrize(
    ("network", "parameters"),
    [
        ({}, {"network": "some"}),
        ({"existing": {"network": "shared", "subnetwork": "nodes"}}, {"network": "shared"}),
        (
            {"existing": {"project": "network-host", "network": "shared", "subnetwork": "nodes"}},
            {"network": "projects/network-host/global/networks/shared", "connect-mode": "PRIVATE_SERVICE_ACCESS"},
        ),
    ],
)
def test_shares_are_in_the_network_of_the_cluster(network: dict[str, Any], parameters: dict[str, str]) -> None:
    settings = environment_of(cluster={"filestore": True}, network=network, labels={"owner": "ml", "cost": "x"})
    classes = {found["metadata"]["name"]: found for found in storage_classes(settings, "some")}
    assert classes.keys() == {f"berth-{name}" for name in SHARE_CLASSES}
    zonal = classes["berth-zonal-rwx"]
    assert zonal["parameters"] == {"tier": "zonal", "labels": "cost=x,owner=ml", **parameters}
    assert (zonal["provisioner"], zonal["volumeBindingMode"]) == (SHARE_DRIVER, "WaitForFirstConsumer")
    assert storage_classes(environment_of(), "some") == []
