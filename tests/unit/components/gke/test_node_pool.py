from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi_gcp as gcp
import pytest

from berth.components.gke.arguments import NodeNetwork
from berth.components.gke.node_pool_arguments import NodePlace, node_pool_arguments
from berth.components.sharing import node_labels, offered
from tests.unit.components.gke import environment_of

A4: dict[str, Any] = {"machineType": "a4-highgpu-8g", "nodes": 2}
ZONES = ["us-central1-a", "us-central1-b", "us-central1-f"]
RDMA = [
    NodeNetwork(network="some-gvnic", subnetwork="some-gvnic"),
    *(NodeNetwork(network="some-rdma", subnetwork=f"some-rdma-{number}") for number in range(8)),
]

Case = tuple[dict[str, Any], dict[str, Any]]
"""The pool, and the rest of the environment."""

CASES: dict[str, Case] = {
    "a4-by-reservation-with-rdma-networks": (
        A4
        | {
            "capacity": {"kind": "reservation", "reservation": "a4", "block": "a4-block-1", "project": "other-project"},
            "rdma": "networks",
        },
        {
            "labels": {"owner": "ml-platform"},
            "cluster": {"nodeServiceAccount": "nodes@some-project.iam.gserviceaccount.com"},
        },
    ),
    "a4-with-managed-dranet": (
        A4 | {"capacity": {"kind": "reservation", "reservation": "a4"}, "rdma": "managed", "driverVersion": "latest"},
        {},
    ),
    "a4-by-flex-start-queued": (
        {
            "machineType": "a4-highgpu-8g",
            "nodes": {"max": 4},
            "capacity": {"kind": "flex-start", "queued": True, "maxRunDuration": "2d"},
        },
        {},
    ),
    "g2-on-spot-from-zero": (
        {
            "machineType": "g2-standard-48",
            "nodes": {"max": 8},
            "capacity": "spot",
            "zones": ZONES[:2],
            "localSsds": {"count": 4, "use": "block"},
        },
        {"region": "us-central1", "zones": ZONES},
    ),
    "a3-mega-close-together": (
        {
            "machineType": "a3-megagpu-8g",
            "nodes": 4,
            "compactPlacement": True,
            "sysctls": {"vm.max_map_count": "262144"},
            "taints": [{"key": "team", "value": "research"}],
            "labels": {"team": "research"},
            "maxPodsPerNode": 32,
        },
        {},
    ),
    "cpu-in-three-zones": (
        {"machineType": "n2-standard-16", "nodes": 6, "upgrade": {"maxSurge": 2}, "autoRepair": False},
        {"region": "us-central1", "zones": ZONES},
    ),
    "a2-of-the-gpu-operator": (
        {
            "machineType": "a2-highgpu-8g",
            "nodes": {"min": 1, "max": 3},
            "gpuManagement": "operator",
            "driver": "operator",
            "nodeImage": "ubuntu",
        },
        {"cluster": {"privateNodes": False}},
    ),
}


def arguments(pool: dict[str, Any], rest: dict[str, Any] | None = None) -> Any:
    settings = environment_of({"it": pool}, **(rest or {}))
    own = offered(settings.pools, settings.sharing)["it"]
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
    )
    return node_pool_arguments(own.settings, place)


@pytest.mark.parametrize("case", CASES)
def test_arguments(golden: Callable[[str, Any], None], case: str) -> None:
    golden(f"gke/pool-{case}", arguments(*CASES[case]))


def test_the_check_of_types_finds_a_misspelled_argument() -> None:
    # mypy reports an ignored error that is none, as this one were if mypy did not read pulumi_gcp.
    config: gcp.container.NodePoolNodeConfigArgsDict = {"machine_typ": "a"}  # type: ignore[typeddict-unknown-key]
    assert config


@pytest.mark.parametrize(
    ("nodes", "zones", "initial", "least", "most"),
    [
        ({"min": 0, "max": 4}, 1, 0, 0, 4),
        ({"min": 2, "max": 4}, 1, 2, 2, 4),
        ({"min": 3, "max": 9}, 3, 1, 3, 9),
        ({"min": 4, "max": 9}, 3, 2, 4, 9),
        ({"min": 4, "max": 5}, 3, 1, 4, 5),
    ],
)
def test_an_autoscaled_pool_begins_with_its_minimum_where_its_maximum_allows(
    nodes: dict[str, int], zones: int, initial: int, least: int, most: int
) -> None:
    given = arguments(
        {"machineType": "n2-standard-4", "nodes": nodes}, {"region": "us-central1", "zones": ZONES[:zones]}
    )
    assert given["initial_node_count"] == initial
    assert "node_count" not in given
    assert given["autoscaling"] == {
        "total_min_node_count": least,
        "total_max_node_count": most,
        "location_policy": "BALANCED",
    }


def test_flex_start_begins_with_no_node_and_stays_for_seven_days_at_most() -> None:
    given = arguments(
        {"machineType": "g2-standard-12", "nodes": {"min": 0, "max": 2}, "capacity": {"kind": "flex-start"}}
    )
    assert given["initial_node_count"] == 0
    assert given["node_config"]["max_run_duration"] == "604800s"
    assert given["management"] == {"auto_repair": False, "auto_upgrade": True}
    assert "upgrade_settings" not in given, "GKE has a strategy of its own for such nodes"
    assert "queued_provisioning" not in given


@pytest.mark.parametrize(
    ("pool", "version"),
    [
        ({}, "DEFAULT"),
        ({"driverVersion": "latest"}, "LATEST"),
        ({"driver": "preinstalled"}, "INSTALLATION_DISABLED"),
        ({"gpuManagement": "operator"}, "INSTALLATION_DISABLED"),
    ],
)
def test_who_installs_the_driver(pool: dict[str, Any], version: str) -> None:
    config = arguments({"machineType": "g2-standard-12", "nodes": 1} | pool)["node_config"]
    (accelerator,) = config["guest_accelerators"]
    assert accelerator["gpu_driver_installation_config"] == {"gpu_driver_version": version}


def test_secure_boot_is_off_only_where_a_driver_is_built_on_the_node_or_the_settings_say_so() -> None:
    g2: dict[str, Any] = {"machineType": "g2-standard-12", "nodes": 1}
    operator = {"gpuManagement": "operator", "driver": "operator", "nodeImage": "ubuntu"}
    cases: dict[str, dict[str, Any]] = {"gke": {}, "operator": operator, "off": {"secureBoot": False}}
    found = {
        name: arguments(g2 | more)["node_config"]["shielded_instance_config"]["enable_secure_boot"]
        for name, more in cases.items()
    }
    assert found == {"gke": True, "operator": False, "off": False}


def test_settings_win_over_the_kernel_settings_of_rdma_nodes() -> None:
    pool = A4 | {"capacity": {"kind": "reservation", "reservation": "a4"}, "sysctls": {"net.ipv4.tcp_rmem": "1 2 3"}}
    assert arguments(pool)["node_config"]["linux_node_config"] == {
        "sysctls": {"net.ipv4.tcp_rmem": "1 2 3", "net.ipv4.tcp_wmem": "4096 16384 16777216"}
    }
