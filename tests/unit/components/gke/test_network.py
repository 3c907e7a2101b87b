from collections.abc import Callable
from typing import Any

import pytest

from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.cases import table
from tests.unit.components.gke import environment_of
from tests.unit.components.gke.registered import recorded
from tests.unit.recording import Recorder

NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
FIREWALL = "gcp:compute/firewall:Firewall"
ROUTER = "gcp:compute/router:Router"
NAT = "gcp:compute/routerNat:RouterNat"
CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
COMPUTE = {NETWORK, SUBNETWORK, FIREWALL, ROUTER, NAT}

RESERVED = {
    "machineType": "a4-highgpu-8g",
    "nodes": 1,
    "capacity": {"kind": "reservation", "reservation": "a4"},
}


def inputs(recorder: Recorder, kind: str) -> dict[str, dict[str, Any]]:
    return {item.name: item.inputs for item in recorder.of_type(kind)}


def further(recorder: Recorder, pool: str) -> list[tuple[str, str]]:
    config = inputs(recorder, NODE_POOL)[pool]["networkConfig"]
    return [
        (item["network"], item["subnetwork"])
        for item in config.get("additionalNodeNetworkConfigs", [])
    ]


def test_a_cluster_has_a_network_with_ranges_a_firewall_and_a_way_out(
    golden: Callable[[str, Any], None],
) -> None:
    recorder = recorded("some", environment_of())
    found = {kind: inputs(recorder, kind) for kind in sorted(COMPUTE)}
    parts = ("network", "subnetwork", "ipAllocationPolicy")
    found[CLUSTER] = {"some": {part: inputs(recorder, CLUSTER)["some"][part] for part in parts}}
    golden("gke/network", found)


@pytest.mark.parametrize(
    "values", [{"network": {"nat": False}}, {"cluster": {"privateNodes": False}}]
)
def test_cloud_nat_is_for_private_nodes_that_want_it(values: dict[str, Any]) -> None:
    recorder = recorded("some", environment_of(**values))
    assert recorder.of_type(ROUTER) == recorder.of_type(NAT) == []


def test_nodes_with_rdma_nics_get_nine_further_networks_in_order() -> None:
    recorder = recorded(
        "some", environment_of({"train": RESERVED | {"rdma": "networks"}}, network={"mtu": 1460})
    )
    networks = inputs(recorder, NETWORK)
    assert networks.keys() == {"some", "some-gvnic", "some-rdma-us-central1-b"}
    assert networks["some-gvnic"]["mtu"] == 1460
    assert networks["some-rdma-us-central1-b"] == {
        "name": "some-rdma-us-central1-b",
        "autoCreateSubnetworks": False,
        "mtu": 8896,
        "networkProfile": "projects/some-project/global/networkProfiles/us-central1-b-vpc-roce",
    }
    subnetworks = inputs(recorder, SUBNETWORK)
    assert {name: own["ipCidrRange"] for name, own in subnetworks.items() if name != "some"} == {
        "some-gvnic": "10.0.64.0/18",
        **{
            f"some-rdma-us-central1-b-{number}": f"10.0.{128 + 8 * number}.0/21"
            for number in range(8)
        },
    }
    assert {own["network"] for own in inputs(recorder, FIREWALL).values()} == {
        "self/some",
        "self/some-gvnic",
    }, "an RDMA network takes no firewall rules"
    assert further(recorder, "train") == [
        ("some-gvnic", "some-gvnic"),
        *(("some-rdma-us-central1-b", f"some-rdma-us-central1-b-{number}") for number in range(8)),
    ]
    assert further(recorder, "cpu") == []


def test_pools_in_two_zones_have_an_rdma_network_each_and_share_the_second_one() -> None:
    pools = {
        "one": RESERVED | {"rdma": "networks", "zones": ["us-central1-a"]},
        "other": RESERVED | {"rdma": "networks", "zones": ["us-central1-b"]},
    }
    settings = EnvironmentSettings.model_validate(
        {
            "project": "some-project",
            "region": "us-central1",
            "zones": ["us-central1-b"],
            "pools": pools,
        }
    )
    recorder = recorded("some", settings)
    assert inputs(recorder, NETWORK).keys() == {
        "some",
        "some-gvnic",
        "some-rdma-us-central1-a",
        "some-rdma-us-central1-b",
    }
    assert [network for network, _ in further(recorder, "one")] == [
        "some-gvnic",
        *["some-rdma-us-central1-a"] * 8,
    ]
    assert [network for network, _ in further(recorder, "other")] == [
        "some-gvnic",
        *["some-rdma-us-central1-b"] * 8,
    ]


def test_names_stay_within_what_google_cloud_allows() -> None:
    name = "a-cluster-with-a-name-of-forty-character"
    zone = "northamerica-northeast1-a"
    settings = environment_of({"train": RESERVED | {"rdma": "networks"}}, zone=zone)
    recorder = recorded(name, settings)
    names = [(item.type, item.name) for item in recorder.registrations if item.type in COMPUTE]
    assert len(names) == len(set(names))
    assert all(len(name) <= 63 for _, name in names)


def test_managed_dranet_makes_no_further_network() -> None:
    recorder = recorded("some", environment_of({"train": RESERVED | {"rdma": "managed"}}))
    assert inputs(recorder, NETWORK).keys() == {"some"}
    assert inputs(recorder, NODE_POOL)["train"]["networkConfig"] == {
        "acceleratorNetworkProfile": "auto",
        "enablePrivateNodes": True,
    }
    assert "enableMultiNetworking" not in inputs(recorder, CLUSTER)["some"]


EXISTING: dict[str, Any] = {
    "network": "shared",
    "subnetwork": "gke",
    "podRange": "gke-pods",
    "serviceRange": "gke-services",
    "gvnic": {"network": "second", "subnetwork": "second-sub"},
    "rdma": {"network": "roce", "subnetworks": [f"roce-{number}" for number in range(8)]},
}


@pytest.mark.parametrize(("more", "host", "second"), table(__file__, "network_existing.yaml"))
def test_existing_networks_are_used_and_nothing_is_made(
    more: dict[str, str], host: str, second: list[str]
) -> None:
    settings = environment_of(
        {"train": RESERVED | {"rdma": "networks"}}, network={"existing": EXISTING | more}
    )
    recorder = recorded("some", settings)
    assert [
        registration.type for registration in recorder.registrations if registration.type in COMPUTE
    ] == []
    cluster = inputs(recorder, CLUSTER)["some"]
    assert cluster["network"] == f"projects/{host}/global/networks/shared"
    assert cluster["subnetwork"] == f"projects/{host}/regions/us-central1/subnetworks/gke"
    assert cluster["ipAllocationPolicy"] == {
        "clusterSecondaryRangeName": "gke-pods",
        "servicesSecondaryRangeName": "gke-services",
    }
    interfaces = further(recorder, "train")
    assert interfaces[0] == tuple(second)
    assert [subnetwork.split("/")[-1] for _, subnetwork in interfaces[1:]] == [
        f"roce-{n}" for n in range(8)
    ]
