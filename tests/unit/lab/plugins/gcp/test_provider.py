import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2, status_pb2
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
    cluster_inputs,
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
        # The provider's code decides it, so that no field is the bridge's reason.
        "__meta": Kind.UPDATE_REPLACE,
        "ipCidrRange": Kind.UPDATE,
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


def test_labels_of_a_cluster_come_with_what_the_bridge_adds(simulated: Simulated) -> None:
    network = simulated.network()
    inputs = cluster_inputs(network, simulated.subnetwork(network))
    cluster = simulated.create(CLUSTER, **inputs)
    added = {"goog-pulumi-provisioned": "true"}
    assert simulated.states[cluster][1]["effectiveLabels"] == added
    labelled = inputs | {"resourceLabels": {"cost-center": "ml"}}
    # A map that was never given comes as a whole.
    assert simulated.diff(CLUSTER, cluster, **labelled) == {
        'effectiveLabels["cost-center"]': Kind.ADD,
        'pulumiLabels["cost-center"]': Kind.ADD,
        "resourceLabels": Kind.ADD,
    }
    simulated.update(CLUSTER, cluster, **labelled)
    assert simulated.diff(CLUSTER, cluster, **inputs) == {
        'effectiveLabels["cost-center"]': Kind.DELETE,
        'pulumiLabels["cost-center"]': Kind.DELETE,
        'resourceLabels["cost-center"]': Kind.DELETE,
    }


def test_the_first_update_of_a_pool_that_was_not_refreshed_adds_empty_maps(
    simulated: Simulated,
) -> None:
    inputs = pool_inputs(simulated.cluster())
    pool = simulated.create(POOL, **inputs)
    assert simulated.diff(POOL, pool, **inputs) == {}
    assert simulated.diff(POOL, pool, **inputs | {"nodeCount": 2}) == {
        "nodeConfig.resourceLabels": Kind.ADD,
        "nodeConfig.resourceManagerTags": Kind.ADD,
        "nodeCount": Kind.UPDATE,
    }


def test_what_google_has_by_default_is_no_difference(simulated: Simulated) -> None:
    network = simulated.network()
    inputs = cluster_inputs(network, simulated.subnetwork(network))
    cluster = simulated.create(CLUSTER, **inputs)
    by_default = {
        "controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": True}},
        "releaseChannel": {"channel": "REGULAR"},
        "secretSyncConfig": {"enabled": False},
    }
    assert simulated.diff(CLUSTER, cluster, **inputs | by_default) == {}
    pool_values = pool_inputs(cluster)
    pool = simulated.create(POOL, **pool_values)
    config = pool_values["nodeConfig"] | {
        "diskType": "hyperdisk-balanced",
        "imageType": "COS_CONTAINERD",
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
    }
    assert simulated.diff(POOL, pool, **pool_values | {"nodeConfig": config}) == {}


def test_a_block_needs_one_of_its_fields(simulated: Simulated) -> None:
    network = simulated.network()
    inputs = cluster_inputs(network, simulated.subnetwork(network))
    _, failures = simulated.check(CLUSTER, **inputs | {"addonsConfig": {}})
    assert len(failures) == 22
    text = (
        'Missing required argument. "addons_config.0.agent_sandbox_config": one of `addons_config'
    )
    assert any(reason.startswith(text) for _, reason in failures)


def test_a_service_account_has_a_name_of_6_to_30_characters(simulated: Simulated) -> None:
    account = "gcp:serviceaccount/account:Account"
    _, failures = simulated.check(account, accountId="short")
    length = "must be between 6 and 30 characters long"
    text = f'"account_id" ("short") {length}. Examine values at \'name.accountId\'.'
    assert failures == [("", text)]
    assert simulated.check(account, accountId="nodes-of-prod")[1] == []


def test_another_name_of_an_account_is_another_address(simulated: Simulated) -> None:
    account = "gcp:serviceaccount/account:Account"
    created = simulated.create(account, accountId="nodes-of-prod")
    assert simulated.diff(account, created, accountId="nodes-of-dev") == {
        "accountId": Kind.UPDATE_REPLACE,
        "email": Kind.UPDATE,
        "member": Kind.UPDATE,
    }


def test_a_region_that_the_provider_has_by_default_is_no_difference(simulated: Simulated) -> None:
    settings = {"project": "berth-lab", "region": "us-central1"}
    request = provider_pb2.ConfigureRequest(args=message_properties(settings))
    simulated.provider.Configure(request, Context())
    network = simulated.network()
    cidr = "10.0.0.0/20"
    subnetwork = simulated.create(SUBNETWORK, name="gpu", network=network, ipCidrRange=cidr)
    given = {"name": "gpu", "network": network, "ipCidrRange": cidr, "region": "us-central1"}
    assert simulated.diff(SUBNETWORK, subnetwork, **given) == {}


def test_a_condition_of_a_grant_needs_its_expression(simulated: Simulated) -> None:
    grant = {"role": "roles/viewer", "member": "user:a@example.com", "condition": {"title": "x"}}
    _, failures = simulated.check("gcp:projects/iAMMember:IAMMember", **grant)
    missing = 'The argument "condition.0.expression" is required, but no definition was found.'
    place = "Examine values at 'name.condition.expression'."
    assert failures == [("", f"Missing required argument. {missing}. {place}")]


def test_a_failed_update_leaves_what_there_was_to_be_updated_again(simulated: Simulated) -> None:
    inputs = pool_inputs(simulated.cluster())
    pool = simulated.create(POOL, **inputs)
    (simulated.store.folder / "conditions.yaml").write_text(
        "projects: {'*': {quotas: {us-central1: {NVIDIA_B200_GPUS: 16}}}}\n"
    )
    request = provider_pb2.UpdateRequest(
        urn=urn_of(POOL),
        id=pool,
        olds=message_properties(simulated.states[pool][1]),
        news=message_properties(simulated.check(POOL, **inputs | {"nodeCount": 50})[0]),
    )
    context = Details()
    with pytest.raises(ProviderError, match=r"updating urn:.*: 1 error occurred:"):
        simulated.provider.Update(request, context)
    assert context.failed.id == pool
    assert plain_properties(context.failed.properties)["nodeCount"] == 1


class Details(Context):
    """Context that keeps the details of an object which is there, and not as it should be."""

    def __init__(self) -> None:
        self.failed = provider_pb2.ErrorResourceInitFailed()

    def set_trailing_metadata(self, metadata: Any) -> None:
        status = status_pb2.Status.FromString(metadata[0][1])
        status.details[0].Unpack(self.failed)
