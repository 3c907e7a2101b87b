from __future__ import annotations

import re
from typing import Any

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.lab.plugins.provider import ProviderError

from .conftest import (
    CLUSTER,
    FIREWALL,
    NETWORK,
    POOL,
    PROJECT,
    SUBNETWORK,
    ZONE,
    Simulated,
    cluster_inputs,
    pool_inputs,
)

RESERVED = {"consumeReservationType": "SPECIFIC_RESERVATION", "key": "compute.googleapis.com/reservation-name"}
FLEX: dict[str, Any] = {"nodeCount": None, "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 4}}


@pytest.mark.parametrize(
    ("config", "more", "text"),
    [
        (
            {"machineType": "a5-highgpu-8g"},
            {},
            f'Machine type with name "a5-highgpu-8g" does not exist in zone "{ZONE}".',
        ),
        ({"machineType": "n2-standard-8"}, {}, "[nvidia-b200, n2-standard-8] features are not compatible"),
        ({"guestAccelerators": []}, {}, "requires accelerator nvidia-b200 with count 8"),
        ({"guestAccelerators": [{"type": "nvidia-b200", "count": 4}]}, {}, "accelerators 4 is not supported"),
        ({"diskType": "pd-ssd"}, {}, "pd-ssd disk type cannot be used by a4-highgpu-8g machine type."),
        ({"ephemeralStorageLocalSsdConfig": {"localSsdCount": 16}}, {}, "local_ssd_count must be 32, got 16"),
        (
            {"flexStart": True, "reservationAffinity": RESERVED | {"values": ["r"]}},
            FLEX,
            "Flex-start requires reservation",
        ),
        ({"flexStart": True, "spot": True}, FLEX, "Flex-start cannot be used with Spot"),
        ({"flexStart": True}, {}, "Flex-start requires node pool autoscaling"),
        ({"flexStart": True, "maxRunDuration": "604801s"}, FLEX, "exceeds the 604800s that flex-start allows"),
        (
            {"spot": True, "reservationAffinity": RESERVED | {"values": ["r"]}},
            {},
            "cannot consume a specific reservation",
        ),
        ({"reservationAffinity": RESERVED}, {}, "requires a key and values"),
        ({}, FLEX | {"queuedProvisioning": {"enabled": True}}, "Queued_provisioning requires reservation affinity"),
        ({}, {"autoscaling": {"minNodeCount": 4, "maxNodeCount": 2}}, "node_count (4) must not be greater"),
        ({}, {"nodeLocations": ["europe-west4-a"]}, 'Node location "europe-west4-a" is not in the region'),
        ({}, {"nodeLocations": ["us-central1-x"]}, 'Location "us-central1-x" does not exist.'),
        ({}, {"placementPolicy": {"type": "COMPACT"}, "nodeLocations": [ZONE, "us-central1-c"]}, "single zone"),
        ({}, {"networkConfig": {"acceleratorNetworkProfile": "manual"}}, 'the only profile is "auto"'),
    ],
)
def test_a_pool_that_gke_refuses(simulated: Simulated, config: dict[str, Any], more: dict[str, Any], text: str) -> None:
    inputs = pool_inputs(simulated.cluster(), config, **more)
    expected = {key: value for key, value in inputs.items() if value is not None}
    expected["nodeConfig"] = {key: value for key, value in inputs["nodeConfig"].items() if value is not None}
    with pytest.raises(ProviderError) as refusal:
        simulated.create(POOL, **expected)
    assert text in str(refusal.value)
    assert str(refusal.value).startswith("Error creating NodePool: googleapi: Error 400: ")
    assert str(refusal.value).endswith(", badRequest")
    assert not simulated.store.list("nodePools")
    assert not simulated.fleet.there


def test_an_rdma_network_belongs_to_its_zone(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    profile = f"projects/{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce"
    rdma = simulated.network("rdma", networkProfile=profile)
    subnetwork = simulated.subnetwork(rdma, "rdma-0", "192.168.128.0/21")
    extra = {"networkConfig": {"additionalNodeNetworkConfigs": [{"network": rdma, "subnetwork": subnetwork}]}}
    with pytest.raises(
        ProviderError, match="can only be used in zone 'us-central1-a'; the node pool is in us-central1-b"
    ):
        simulated.create(POOL, **pool_inputs(cluster, **extra))
    simulated.create(POOL, **pool_inputs(cluster, name="right", nodeLocations=["us-central1-a"], **extra))
    with pytest.raises(ProviderError, match="does not allow firewall rules"):
        simulated.create(FIREWALL, name="f", network=rdma, allows=[{"protocol": "tcp"}], sourceRanges=["10.0.0.0/8"])
    with pytest.raises(
        ProviderError, match=r"googleapi: Error 404: The resource .*moon-vpc-roce' was not found, notFound"
    ):
        simulated.network("moon", networkProfile=f"projects/{PROJECT}/global/networkProfiles/moon-vpc-roce")


def test_ranges_of_a_network_may_not_overlap(simulated: Simulated) -> None:
    network = simulated.network()
    simulated.subnetwork(network)
    with pytest.raises(ProviderError) as refusal:
        simulated.subnetwork(network, "other", "10.0.8.0/24")
    assert str(refusal.value) == (
        "Error creating Subnetwork: googleapi: Error 400: Invalid IPCidrRange: 10.0.8.0/24 conflicts with existing "
        "subnetwork 'gpu' in region 'us-central1', invalid"
    )
    simulated.subnetwork(simulated.network("second"), "other", "10.0.8.0/24")


def test_what_is_needed_cannot_be_deleted(simulated: Simulated) -> None:
    network = simulated.network()
    subnetwork = simulated.subnetwork(network)
    with pytest.raises(ProviderError) as refusal:
        simulated.delete(NETWORK, network)
    assert str(refusal.value) == (
        f"Error deleting Network: googleapi: Error 400: The network resource '{network}' is already being used by "
        f"'{subnetwork}', resourceInUseByAnotherResource"
    )
    simulated.create(CLUSTER, **cluster_inputs(network, subnetwork))
    with pytest.raises(ProviderError, match=r"The subnetwork resource .*clusters/fleet'"):
        simulated.delete(SUBNETWORK, subnetwork)


def test_a_protected_cluster_stays(simulated: Simulated) -> None:
    cluster = simulated.cluster(deletionProtection=True)
    with pytest.raises(ProviderError, match="deletion_protection is set to true"):
        simulated.delete(CLUSTER, cluster)
    assert simulated.store.get(cluster)


def test_the_ray_operator_add_on_brings_rays_kinds(simulated: Simulated) -> None:
    network = simulated.network()
    off = cluster_inputs(
        network, simulated.subnetwork(network), addonsConfig={"rayOperatorConfigs": [{"enabled": False}]}
    )
    cluster = simulated.create(CLUSTER, **off)
    assert simulated.fleet.defined == 0
    simulated.update(CLUSTER, cluster, **off | {"addonsConfig": {"rayOperatorConfigs": [{"enabled": True}]}})
    assert simulated.fleet.defined == 1


def test_a_lab_has_one_control_plane(simulated: Simulated) -> None:
    first = simulated.cluster()
    network = simulated.network("second")
    subnetwork = simulated.subnetwork(network, "second")
    with pytest.raises(ProviderError, match=f"this lab has one control plane, and it is {first}") as refusal:
        simulated.create(CLUSTER, **cluster_inputs(network, subnetwork, name="other"))
    # The commands that it names are there.
    commands = re.findall(r"berth (lab \w+)((?: --[-\w]+)+)", str(refusal.value))
    assert [name for name, _ in commands] == ["lab up", "lab env"]
    for command in commands:
        shown = CliRunner().invoke(app, [*command[0].split(), "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0
        assert all(option in shown.output for option in command[1].split())


PRIVATE = {"enablePrivateNodes": True}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"network": "nowhere"}, 'Network "nowhere" does not exist.'),
        ({"subnetwork": "nowhere"}, 'is not valid for Network "gpu".'),
        ({"initialNodeCount": 0}, "Cluster.initial_node_count must be greater than zero."),
        ({"workloadIdentityConfig": {"workloadPool": "x"}}, 'the only supported value is "berth-lab.svc.id.goog"'),
        ({"ipAllocationPolicy": {"clusterSecondaryRangeName": "pods"}}, 'range "pods" does not exist'),
        ({"minMasterVersion": "1.99"}, 'No valid versions with the prefix "1.99" found.'),
        ({"minMasterVersion": "1.37.0-gke.1"}, 'Master version "1.37.0-gke.1" is unsupported.'),
        (
            {"location": "us-central1", "nodeLocations": ["europe-west4-a"]},
            "is not in the region of the cluster's region",
        ),
        ({"privateClusterConfig": {"enablePrivateEndpoint": True}}, "only be enabled if private nodes are enabled"),
        (
            {"privateClusterConfig": PRIVATE | {"enablePrivateEndpoint": True}},
            "Master authorized networks must be enabled if private endpoint is enabled.",
        ),
        (
            {
                "privateClusterConfig": PRIVATE | {"enablePrivateEndpoint": True},
                "masterAuthorizedNetworksConfig": {"cidrBlocks": [{"cidrBlock": "0.0.0.0/0"}]},
            },
            'network "0.0.0.0/0" is not a reserved network, which is required for private endpoints.',
        ),
        ({"enableMultiNetworking": True, "datapathProvider": "LEGACY_DATAPATH"}, "requires Dataplane V2"),
    ],
)
def test_a_cluster_that_gke_refuses(simulated: Simulated, more: dict[str, Any], text: str) -> None:
    with pytest.raises(ProviderError) as refusal:
        simulated.cluster(**more)
    assert text in str(refusal.value)
    assert not simulated.store.list("clusters")


@pytest.mark.parametrize(
    ("asked", "config", "more", "text"),
    [
        (
            "1.31",
            {},
            {},
            "Machine type a4-highgpu-8g is not supported in cluster version 1.31: it requires version 1.32.1",
        ),
        ("1.32.1-gke.1729000", {"flexStart": True}, FLEX, "Flex-start is not supported in cluster version 1.32.1"),
        ("1.33", {}, {"networkConfig": {"acceleratorNetworkProfile": "auto"}}, "requires version 1.34.1-gke.1829001"),
        ("1.32.1-gke.1729000", {}, {}, ""),
        ("1.34", {}, {"networkConfig": {"acceleratorNetworkProfile": "auto"}}, ""),
    ],
)
def test_what_only_newer_clusters_have(
    simulated: Simulated, asked: str, config: dict[str, Any], more: dict[str, Any], text: str
) -> None:
    inputs = pool_inputs(simulated.cluster(minMasterVersion=asked), config, **more)
    inputs = {key: value for key, value in inputs.items() if value is not None}
    if not text:
        simulated.create(POOL, **inputs)
        return
    with pytest.raises(ProviderError) as refusal:
        simulated.create(POOL, **inputs)
    assert text in str(refusal.value)
