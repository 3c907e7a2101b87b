from collections.abc import Callable
from typing import Any

import pulumi_gcp as gcp
import pytest

from berth.components.gke.arguments import NodeNetwork
from berth.components.gke.node_pool_arguments import NodePlace, node_pool_arguments
from berth.components.sharing import node_labels, offered_pools
from tests.unit.cases import holds, table
from tests.unit.components.gke import environment_of

TABLE = table(__file__, "arguments.yaml")
RDMA = [
    NodeNetwork(network="some-gvnic", subnetwork="some-gvnic"),
    *(NodeNetwork(network="some-rdma", subnetwork=f"some-rdma-{number}") for number in range(8)),
]


def arguments(
    pool: dict[str, Any], rest: dict[str, Any] | None = None, policy: str | None = None
) -> Any:
    settings = environment_of({"it": pool}, **(rest or {}))
    own = offered_pools(settings.pools, settings.sharing)["it"]
    place = NodePlace(
        project=settings.project or "",
        cluster="some",
        location=settings.location,
        zones=settings.zones_of(own.settings),
        labels=settings.labels,
        node_labels=node_labels(own),
        service_account=settings.cluster.node_service_account,
        private=settings.cluster.private_nodes,
        networks=RDMA,
        workload_policy=policy,
    )
    return node_pool_arguments(own.settings, place)


@pytest.mark.parametrize("case", TABLE["pools"])
def test_arguments(golden: Callable[[str, Any], None], case: str) -> None:
    golden(f"gke/pool-{case}", arguments(*TABLE["pools"][case]))


def test_the_check_of_types_finds_a_misspelled_argument() -> None:
    # mypy reports an ignored error that is none, as this one were if mypy did not read pulumi_gcp.
    config: gcp.container.NodePoolNodeConfigArgsDict = {"machine_typ": "a"}  # type: ignore[typeddict-unknown-key]
    assert config


@pytest.mark.parametrize("case", TABLE["of_a_pool"])
def test_what_settings_send(case: str) -> None:
    pool, part, *rest = TABLE["of_a_pool"][case]
    given = arguments(pool, *rest)
    assert holds(given, part), given
