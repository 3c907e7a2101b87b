import json
from collections.abc import Callable
from typing import Any

import pytest

from berth.components.gke import SHARE_CLASSES, SHARE_DRIVER, storage_classes
from berth.components.gke.accounts import node_account_address
from berth.components.gke.cluster_arguments import cluster_arguments
from berth.components.gke.kubeconfig import gke_kubeconfig
from berth.components.gke.names import LIMIT, resource_name
from tests.unit.cases import holds, table
from tests.unit.components.gke import environment_of

TABLE = table(__file__, "arguments.yaml")


@pytest.mark.parametrize("case", TABLE["clusters"])
def test_arguments(golden: Callable[[str, Any], None], case: str) -> None:
    settings = environment_of(**TABLE["clusters"][case])
    golden(
        f"gke/cluster-{case}", cluster_arguments(settings, node_account_address(settings, "some"))
    )


@pytest.mark.parametrize("case", TABLE["of_a_cluster"])
def test_what_settings_send(case: str) -> None:
    values, part = TABLE["of_a_cluster"][case]
    given = cluster_arguments(environment_of(**values))
    assert holds(given, part), given


def test_the_kubeconfig_holds_no_credential() -> None:
    config = json.loads(gke_kubeconfig("some", "203.0.113.1", "Y2E="))
    (cluster,), (user,) = config["clusters"], config["users"]
    assert cluster["cluster"] == {
        "server": "https://203.0.113.1",
        "certificate-authority-data": "Y2E=",
    }
    assert user["user"].keys() == {"exec"}
    assert user["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"
    assert config["current-context"] == "some"


def test_the_kubeconfig_of_a_dns_name_has_no_authority() -> None:
    (cluster,) = json.loads(gke_kubeconfig("some", "gke-1.us-central1.gke.goog", None))["clusters"]
    assert cluster["cluster"] == {"server": "https://gke-1.us-central1.gke.goog"}


def test_names_are_kept_where_they_fit_and_stay_different_where_they_do_not() -> None:
    assert resource_name("some", "rdma", "us-central1-b", "0") == "some-rdma-us-central1-b-0"
    longest = "n" * 50
    names = {
        resource_name(longest, "rdma", "northamerica-northeast1-a", str(number))
        for number in range(8)
    }
    assert len(names) == 8
    assert all(len(name) <= LIMIT and "--" not in name for name in names)


@pytest.mark.parametrize(("network", "parameters"), table(__file__, "cluster_shares.yaml"))
def test_shares_are_in_the_network_of_the_cluster(
    network: dict[str, Any], parameters: dict[str, str]
) -> None:
    settings = environment_of(
        cluster={"filestore": True}, network=network, labels={"owner": "ml", "cost": "x"}
    )
    classes = {found["metadata"]["name"]: found for found in storage_classes(settings, "some")}
    assert classes.keys() == {f"berth-{name}" for name in SHARE_CLASSES}
    zonal = classes["berth-zonal-rwx"]
    assert zonal["parameters"] == {"tier": "zonal", "labels": "cost=x,owner=ml", **parameters}
    assert (zonal["provisioner"], zonal["volumeBindingMode"]) == (
        SHARE_DRIVER,
        "WaitForFirstConsumer",
    )
    assert storage_classes(environment_of(), "some") == []
