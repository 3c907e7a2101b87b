"""GKE's versions and existing networks, on answers in the shapes that Google's APIs have."""

from __future__ import annotations

from typing import Any

import pytest

from berth.cli.verbs.doctor import gke, networks
from tests.unit.cli.verbs.recorded_google import Recorded, environment, only_missing, pool, states

ZONE, REGION = "us-central1-b", "us-central1"
QUOTA_INFOS = "cloudquotas locations/global/services/compute.googleapis.com/quotaInfos/"


def channels(**versions: list[str]) -> dict[str, Any]:
    return {
        f"container locations/{ZONE}/serverConfig": {
            "channels": [
                {"channel": name, "defaultVersion": valid[-1], "validVersions": valid}
                for name, valid in versions.items()
            ]
        }
    }


def test_the_channels_default_counts_for_a_new_cluster() -> None:
    settings = environment(pools={"train": pool("a4-highgpu-8g", rdma="managed")})
    google = Recorded(channels(REGULAR=["1.35.2-gke.1842000", "1.33.5-gke.1080000"]))
    missing = only_missing(gke.check(google, settings, "prod"))
    assert "managed DRANET" in missing.text
    assert "1.34.1-gke.1829001" in missing.text
    google = Recorded(channels(REGULAR=["1.36.0-gke.1", "1.35.2-gke.1842000"]))
    assert "gives a new cluster GKE 1.35.2-gke.1842000" in gke.check(google, settings, "prod")[0].text


def test_a_version_that_the_channel_lacks() -> None:
    settings = environment(cluster={"version": "1.37", "releaseChannel": "STABLE"})
    missing = only_missing(gke.check(Recorded(channels(STABLE=["1.35.2-gke.1", "1.34.1-gke.2"])), settings, "prod"))
    assert missing.text == (f"release channel STABLE has no GKE 1.37 in {ZONE}; it has 1.35.2-gke.1, 1.34.1-gke.2")


def test_a_cluster_that_is_there() -> None:
    at = f"container locations/{ZONE}/clusters/prod"
    running = {"status": "RUNNING", "currentMasterVersion": "1.35.2-gke.1842000"}
    assert gke.check(Recorded({at: running}), environment(), "prod")[0].text == (
        "cluster prod exists (RUNNING), with GKE 1.35.2-gke.1842000"
    )
    old = only_missing(
        gke.check(Recorded({at: running | {"currentMasterVersion": "1.31.5-gke.1"}}), environment(), "prod")
    )
    assert old.remedy.startswith("gcloud container clusters upgrade prod --master")
    broken = only_missing(
        gke.check(Recorded({at: {"status": "ERROR", "statusMessage": "no quota"}}), environment(), "prod")
    )
    assert broken.text == "cluster prod is ERROR: no quota"


EXISTING = environment(
    network={
        "existing": {
            "project": "host-project",
            "network": "vpc",
            "subnetwork": "nodes",
            "gvnic": {"network": "second", "subnetwork": "second"},
            "rdma": {"network": "rdma", "subnetworks": [f"rdma-{n}" for n in range(8)]},
        }
    },
    pools={"train": pool("a4-highgpu-8g", rdma="networks")},
)


def network_answers() -> dict[str, Any]:
    link = "https://www.googleapis.com/compute/v1/projects/host-project/global"
    net, sub = (
        "compute projects/host-project/global/networks",
        f"compute projects/host-project/regions/{REGION}/subnetworks",
    )
    ranges = [{"rangeName": "pods"}, {"rangeName": "services"}]
    return {
        f"{net}/vpc": {"name": "vpc"},
        f"{net}/second": {"name": "second"},
        f"{net}/rdma": {"name": "rdma", "networkProfile": f"{link}/networkProfiles/{ZONE}-vpc-roce"},
        f"{sub}/nodes": {"network": f"{link}/networks/vpc", "secondaryIpRanges": ranges},
        f"{sub}/second": {"network": f"{link}/networks/second"},
        **{f"{sub}/rdma-{n}": {"network": f"{link}/networks/rdma"} for n in range(8)},
    }


def test_existing_networks_that_have_all_that_nodes_need() -> None:
    found = networks.check(Recorded(network_answers()), EXISTING)
    assert states(found) == ["fine"] * 3
    assert found[-1].text == f"network rdma exists, with 8 subnetworks in {REGION}"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"/vpc": None}, "project host-project has no network vpc"),
        (
            {"/nodes": {"network": "x/vpc", "secondaryIpRanges": [{"rangeName": "pods"}]}},
            "has no secondary range services (serviceRange); it has pods",
        ),
        ({"/second": {"network": "x/vpc"}}, "subnetwork second belongs to network vpc, not to second"),
        ({"/rdma-7": None, "/rdma-3": None}, f"network rdma has no rdma-3, rdma-7 in {REGION}"),
        (
            {"/rdma": {"networkProfile": "x/us-central1-a-vpc-roce"}},
            "network rdma has profile us-central1-a-vpc-roce: it cannot be",
        ),
    ],
)
def test_existing_networks_that_lack_something(change: dict[str, Any], text: str) -> None:
    answers = network_answers()
    for end, answer in change.items():
        key = (
            next(key for key in answers if key.endswith("subnetworks" + end))
            if end not in ("/vpc", "/rdma")
            else next(key for key in answers if key.endswith("networks" + end) and "subnetworks" not in key)
        )
        answers.pop(key) if answer is None else answers.update({key: answer})
    assert text in only_missing(networks.check(Recorded(answers), EXISTING)).text
