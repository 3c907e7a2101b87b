import json
import shutil
from pathlib import Path

import pytest
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.rpc import UNKNOWN

from berth.components.gke.field_rules import field_problems
from berth.components.gke.provider_fields import resource_fields
from berth.lab.plugins.gcp.errors import ProviderError
from berth.lab.plugins.gcp.kinds import Kind
from berth.lab.plugins.gcp.protocol import message_properties, plain_properties
from tests.unit.components.gke.registered import registrations
from tests.unit.recording import Registration

from .conftest import (
    CLUSTER,
    NETWORK,
    POOL,
    SUBNETWORK,
    ZONE,
    Context,
    Simulated,
    pool_inputs,
    urn_of,
)


def test_a_range_grows_in_place_and_shrinks_by_replacement(simulated: Simulated) -> None:
    network = simulated.network()
    subnetwork = simulated.subnetwork(network)
    inputs = {"name": "gpu", "network": network, "region": "us-central1"}
    assert simulated.diff(SUBNETWORK, subnetwork, ipCidrRange="10.0.0.0/16", **inputs) == {
        "ipCidrRange": Kind.UPDATE
    }
    assert simulated.diff(SUBNETWORK, subnetwork, ipCidrRange="10.0.0.0/24", **inputs) == {
        "ipCidrRange": Kind.UPDATE_REPLACE
    }


def test_a_reference_may_be_a_name_a_path_or_a_link(simulated: Simulated) -> None:
    network = simulated.network()
    subnetwork = simulated.subnetwork(network)
    link = simulated.states[network][1]["selfLink"]
    for reference in ("gpu", network, link):
        inputs = {
            "name": "gpu",
            "network": reference,
            "region": "us-central1",
            "ipCidrRange": "10.0.0.0/20",
        }
        assert simulated.diff(SUBNETWORK, subnetwork, **inputs) == {}


def test_a_regional_pool_has_its_count_in_each_zone(simulated: Simulated) -> None:
    cluster = simulated.cluster(location="us-central1")
    config = {"machineType": "n2-standard-8"}
    pool = simulated.create(
        POOL, name="cpu", cluster=cluster, location="us-central1", nodeCount=2, nodeConfig=config
    )
    zones = sorted(
        node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        for node in simulated.fleet.there.values()
    )
    assert zones == sorted(["us-central1-a", "us-central1-b", "us-central1-c"] * 2)
    outputs = simulated.read(POOL, pool)[1]
    assert (outputs["nodeCount"], len(outputs["instanceGroupUrls"])) == (2, 3)


def test_a_refresh_finds_edited_and_deleted_files(simulated: Simulated, tmp_path: Path) -> None:
    network = simulated.network()
    file = next((tmp_path / "cloud").glob("*/networks/gpu.json"))
    content = json.loads(file.read_text())
    content["inputs"]["autoCreateSubnetworks"] = True
    file.write_text(json.dumps(content))
    assert simulated.read(NETWORK, network)[2]["autoCreateSubnetworks"] is True
    file.write_text("{")
    with pytest.raises(ProviderError, match=r"gpu\.json of the simulated cloud is not readable"):
        simulated.read(NETWORK, network)
    file.unlink()
    assert simulated.read(NETWORK, network)[0] == ""


def test_a_refresh_finds_nodes_that_are_gone_and_an_update_brings_them_back(
    simulated: Simulated,
) -> None:
    cluster = simulated.cluster()
    pool = simulated.create(POOL, **pool_inputs(cluster, nodeCount=2))
    names = set(simulated.fleet.there)
    simulated.fleet.remove([min(names)])
    _, outputs, inputs = simulated.read(POOL, pool)
    assert (outputs["nodeCount"], inputs["nodeCount"]) == (1, 1)
    simulated.states[pool] = (inputs, outputs)
    assert simulated.diff(POOL, pool, **pool_inputs(cluster, nodeCount=2)) == {
        "nodeCount": Kind.UPDATE
    }
    simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=2))
    assert set(simulated.fleet.there) == names


def test_a_cluster_takes_its_pools_and_everything_in_it_along(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    simulated.create(POOL, **pool_inputs(cluster))
    simulated.delete(CLUSTER, cluster)
    assert (simulated.fleet.there, simulated.fleet.cleared) == ({}, 1)
    assert simulated.store.list("nodePools") == []


def test_an_import_finds_a_resource_by_path_and_by_name(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    simulated.states.clear()
    for text in (cluster, f"{ZONE}/fleet", "fleet"):
        found, _, inputs = simulated.read(CLUSTER, text)
        assert (found, inputs["name"]) == (cluster, "fleet")
    assert simulated.read(CLUSTER, "other")[0] == ""


def test_a_preview_makes_nothing_and_knows_what_it_cannot_know(simulated: Simulated) -> None:
    checked, failures = simulated.check(
        POOL, **pool_inputs(UNKNOWN, location=UNKNOWN, nodeCount=UNKNOWN)
    )
    assert not failures
    request = provider_pb2.CreateRequest(
        urn=urn_of(POOL), properties=message_properties(checked), preview=True
    )
    result = simulated.provider.Create(request, Context())
    outputs = plain_properties(result.properties)
    assert (result.id, outputs["instanceGroupUrls"], outputs["name"]) == ("", UNKNOWN, "a4")
    assert not simulated.fleet.there
    assert not simulated.store.list("nodePools")


def test_a_name_is_made_up_once(simulated: Simulated) -> None:
    inputs, _ = simulated.check(NETWORK, autoCreateSubnetworks=False)
    assert inputs["name"] == "name-0102030"
    news = message_properties({"autoCreateSubnetworks": False})
    again = provider_pb2.CheckRequest(
        urn=urn_of(NETWORK), olds=message_properties(inputs), news=news, randomSeed=b"other seed"
    )
    assert (
        plain_properties(simulated.provider.Check(again, Context()).inputs)["name"]
        == inputs["name"]
    )


def test_whole_numbers_are_integers() -> None:
    assert (
        repr(
            plain_properties(
                message_properties({"count": 8, "half": 0.5, "more": [None, {"a": 1}]})
            )["more"]
        )
        == "[None, {'a': 1}]"
    )


def test_a_pool_that_an_earlier_update_left_is_there(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    simulated.create(POOL, **pool_inputs(cluster))
    with pytest.raises(
        ProviderError, match=f"Error 409: The resource '{cluster}/nodePools/a4' already exists"
    ):
        simulated.create(POOL, **pool_inputs(cluster))
    assert len(simulated.fleet.there) == 1


def test_the_provider_refuses_nothing_that_berth_registers() -> None:
    for registration in registrations():
        assert [*field_problems(registration.inputs, resource_fields()[registration.type])] == [], (
            registration.name
        )


def _environments() -> list[list[Registration]]:
    """Return the registrations of each environment; the next one begins with a network after a
    cluster.
    """
    environments: list[list[Registration]] = [[]]
    for registration in registrations():
        if registration.type == NETWORK and any(
            earlier.type == CLUSTER for earlier in environments[-1]
        ):
            environments.append([])
        environments[-1].append(registration)
    return environments


def test_google_grants_everything_that_berth_registers(simulated: Simulated) -> None:
    refused: set[str] = set()
    for environment in _environments():
        shutil.rmtree(simulated.store.folder, ignore_errors=True)
        simulated.fleet.there.clear()
        (cluster,) = [registration for registration in environment if registration.type == CLUSTER]
        project = cluster.inputs["workloadIdentityConfig"]["workloadPool"].removesuffix(
            ".svc.id.goog"
        )
        for registration in environment:
            try:
                simulated.create(registration.type, **{"project": project} | registration.inputs)
            except ProviderError as refusal:
                refused.add(str(refusal))
    # A new lab has other reservations than the cases.
    assert {refusal for refusal in refused if ": reservation " not in refusal} == set()
