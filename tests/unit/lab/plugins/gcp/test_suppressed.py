"""Differences that Google's provider suppresses, by the function that does it."""

from collections.abc import Iterator
from typing import Any

import pytest

from berth.lab.plugins.gcp.provider import TYPES
from berth.lab.plugins.gcp.suppressed import SUPPRESSIONS, Change, is_suppressed
from tests.unit.cases import table

from .conftest import CLUSTER, NETWORK, POOL

CASES = table(__file__, "suppressed.yaml")
_IN_RESOURCES = {
    "containerClusterPrivateClusterConfigSuppress",
    "containerNodePoolResourceLabelsDiffSuppress",
}
"""Functions that look at more than the value; the other tests have them."""


def rows() -> Iterator[tuple[str, Any, Any, bool]]:
    """Yield each function with an old value, a new one, and whether there is no difference."""
    for function, cases in CASES.items():
        for old, new, same in cases:
            yield function, old, new, same


@pytest.mark.parametrize(("function", "old", "new", "same"), [*rows()])
def test_what_a_function_suppresses(function: str, old: Any, new: Any, same: bool) -> None:
    assert is_suppressed(function, Change(old, new, "field", {}, {})) is same


def test_each_function_has_a_case() -> None:
    assert {name.partition("(")[0] for name in CASES} | _IN_RESOURCES == SUPPRESSIONS


def test_a_cluster_that_was_not_private_is_none_without_the_block() -> None:
    public = {"privateClusterConfig": {"enablePrivateEndpoint": False, "enablePrivateNodes": False}}
    private = {"privateClusterConfig": {"enablePrivateNodes": True}}
    cluster = TYPES[CLUSTER]
    assert cluster.differences({}, public) == {}
    assert cluster.differences(public, private).keys() == {
        "privateClusterConfig.enablePrivateNodes"
    }


def test_a_private_endpoint_is_no_difference_where_there_is_no_ip_endpoint() -> None:
    endpoints = {"controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": False}}}
    before = {**endpoints, "privateClusterConfig": {"enablePrivateEndpoint": False}}
    after = {**endpoints, "privateClusterConfig": {"enablePrivateEndpoint": True}}
    assert TYPES[CLUSTER].differences(before, after) == {}


def test_labels_that_gke_adds_to_nodes_are_no_difference() -> None:
    labels = {"owner": "ml", "goog-gke-accelerator-type": "nvidia-b200"}
    before = {"nodeConfig": {"resourceLabels": labels}}
    after = {"nodeConfig": {"resourceLabels": {"owner": "ml"}}}
    assert TYPES[POOL].differences(before, after) == {}


def test_a_network_profile_of_another_project_replaces_the_network() -> None:
    profiles = (
        {"networkProfile": f"projects/{project}/global/networkProfiles/roce"}
        for project in ("fleet", "other")
    )
    (kind,) = TYPES[NETWORK].differences(*profiles).values()
    assert kind.replaces


@pytest.mark.parametrize("field", ["network", "subnetwork"])
def test_a_network_of_another_project_replaces_the_cluster(field: str) -> None:
    own, host = ({field: f"projects/{project}/{field}s/gpu"} for project in ("fleet", "host"))
    (kind,) = TYPES[CLUSTER].differences(own, host).values()
    assert kind.replaces
