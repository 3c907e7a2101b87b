"""Edits of pools and clusters from end to end of the simulated provider: replaced, in place,
nodes recreated, values that stay.
"""

from typing import Any

import pytest

from tests.unit.cases import table

from .conftest import A4, POOL, Simulated, pool_inputs


def test_values_that_are_left_out_stay_in_force(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    given = {
        "labels": {"team": "research"},
        "linuxNodeConfig": {"sysctls": {"vm.max_map_count": "262144"}},
        "serviceAccount": "nodes@some-project.iam.gserviceaccount.com",
    }
    pool = simulated.create(POOL, **pool_inputs(cluster, given, maxPodsPerNode=32))
    left_out = pool_inputs(cluster)
    del left_out["nodeConfig"]["labels"]
    assert simulated.diff(POOL, pool, **left_out) == {}
    simulated.update(POOL, pool, **left_out | {"nodeCount": 2})
    (record,) = simulated.store.list("nodePools")
    assert record.inputs["maxPodsPerNode"] == 32
    assert record.inputs["nodeConfig"] == {**A4, **given}
    assert {node["metadata"]["labels"]["team"] for node in simulated.fleet.there.values()} == {
        "research"
    }
    # A refresh finds no drift in what the program does not ask for.
    assert "labels" not in simulated.read(POOL, pool)[2]["nodeConfig"]
    # What comes back as it is there is no change either.
    assert (
        simulated.diff(POOL, pool, **pool_inputs(cluster, given, maxPodsPerNode=32, nodeCount=2))
        == {}
    )


def test_gke_taints_gpu_nodes_only_beside_a_pool_without_gpus_and_until_the_taints_are_edited(
    simulated: Simulated,
) -> None:
    cluster = simulated.cluster()

    def taints(pool: str) -> list[str]:
        return [
            taint["key"]
            for node in simulated.fleet.nodes(pool).values()
            for taint in node["spec"]["taints"]
        ]

    simulated.create(POOL, **pool_inputs(cluster) | {"name": "alone"})
    simulated.create(
        POOL,
        **pool_inputs(cluster) | {"name": "plain", "nodeConfig": {"machineType": "n2-standard-16"}},
    )
    beside = simulated.create(POOL, **pool_inputs(cluster) | {"name": "beside"})
    assert (taints("alone"), taints("beside")) == ([], ["nvidia.com/gpu"])
    team = {"key": "team", "value": "research", "effect": "NO_SCHEDULE"}
    simulated.update(POOL, beside, **pool_inputs(cluster, {"taints": [team]}) | {"name": "beside"})
    assert taints("beside") == ["team"]


def test_the_last_label_for_bills_never_goes(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    pool = simulated.create(POOL, **pool_inputs(cluster, {"resourceLabels": {"owner": "ml"}}))
    simulated.update(POOL, pool, **pool_inputs(cluster))
    (record,) = simulated.store.list("nodePools")
    assert record.inputs["nodeConfig"]["resourceLabels"] == {"owner": "ml"}
    assert simulated.diff(POOL, pool, **pool_inputs(cluster)) != {}


@pytest.mark.parametrize(("config", "anew"), table(__file__, "edits.yaml"))
def test_what_makes_every_node_anew(
    simulated: Simulated, config: dict[str, Any], anew: bool
) -> None:
    cluster = simulated.cluster()
    pool = simulated.create(POOL, **pool_inputs(cluster))
    before = set(simulated.fleet.there)
    simulated.update(POOL, pool, **pool_inputs(cluster, config))
    assert (not before & set(simulated.fleet.there)) is anew
    assert simulated.warnings == []


def test_what_nobody_knows_is_said(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    pool = simulated.create(
        POOL, **pool_inputs(cluster, networkConfig={"enablePrivateNodes": True})
    )
    simulated.update(
        POOL, pool, **pool_inputs(cluster, networkConfig={"enablePrivateNodes": False})
    )
    (warning,) = simulated.warnings
    assert (
        "networkConfig.enablePrivateNodes: whether GKE recreates the nodes for this change is not"
        " known" in warning
    )


def test_a_pool_that_the_autoscaler_takes_over_forgets_its_number_of_nodes(
    simulated: Simulated,
) -> None:
    cluster = simulated.cluster()
    pool = simulated.create(POOL, **pool_inputs(cluster, nodeCount=2))
    scaled = pool_inputs(cluster, autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 4})
    del scaled["nodeCount"]
    simulated.update(POOL, pool, **scaled)
    (record,) = simulated.store.list("nodePools")
    assert "nodeCount" not in record.inputs
    assert len(simulated.fleet.there) == 2
