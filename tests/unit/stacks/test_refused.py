"""Refused settings of an environment, word for word (refused.yaml), accepted ones, and what
berth warns of.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.hardware.facts import Machine
from berth.components.hardware.machines import MACHINES
from berth.stacks.load.stack import SettingsError, load
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_environment

BASE: dict[str, Any] = {
    "project": "berth-lab",
    "zone": "us-central1-b",
    "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}},
}
CASES: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "refused.yaml").read_text(encoding="utf-8"))
FEWEST_CASES = 90
FLEX_START = {"machineType": "g2-standard-8", "nodes": {"min": 0, "max": 4}, "capacity": "flex-start"}
RDMA_POOL = {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot", "rdma": "networks"}


def over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`above` laid over `below`; null takes a key out."""
    merged = dict(below)
    for key, value in above.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = over(merged[key], value)
        else:
            merged[key] = value
    return merged


def accepted(given: dict[str, Any]) -> EnvironmentSettings:
    settings = load("test", {"environment": over(BASE, given)}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    return settings


def warnings(given: dict[str, Any]) -> list[str]:
    """Warnings of berth, where all images have what workers with NICs need
    (tests/unit/stacks/test_image.py).
    """
    images = {"defaults": {"imageHas": ["libnl", "torch"]}}
    return [
        f"{warning.where}: {warning.message}" for warning in resolve_environment(accepted(over(given, images))).warnings
    ]


@pytest.mark.parametrize("case", CASES)
def test_refused_word_for_word(case: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load("test", {"environment": over(BASE, CASES[case]["given"])}, None)
    assert caught.value.lines == CASES[case]["refused"]


def test_no_case_was_lost() -> None:
    assert len(CASES) >= FEWEST_CASES


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_a_pool_of_each_machine_type_is_accepted_by_each_way_it_is_sold(machine: Machine) -> None:
    for kind in machine.series.sold:
        nodes: Any = {"min": 0, "max": 1} if kind == "flex-start" else 1
        capacity = {"kind": kind} | ({"reservation": "mine"} if kind == "reservation" else {})
        pool = {"machineType": machine.name, "nodes": nodes, "capacity": capacity}
        assert warnings({"pools": {"more": pool}}) == []


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_local_ssds_and_disks_of_each_machine_type_are_accepted(machine: Machine) -> None:
    capacity = machine.series.sold[-1]
    for disk in machine.series.boot_disks:
        for count in (machine.local_ssds, *machine.local_ssd_choices):
            pool = {"machineType": machine.name, "nodes": 1, "capacity": capacity, "diskType": disk}
            settings = accepted({"pools": {"more": pool | ({"localSsds": {"count": count}} if count else {})}})
            assert (settings.pools["more"].boot_disk, settings.pools["more"].local_ssd_count) == (disk, count)


ACCEPTED: dict[str, dict[str, Any]] = {
    "A4 by a block of a reservation, with RDMA networks": {
        "pools": {
            "train": RDMA_POOL | {"capacity": {"kind": "reservation", "reservation": "a4", "block": "a4-block-1"}},
        }
    },
    "A4 with managed DRANET in the newest 1.34": {
        "cluster": {"version": "1.34"},
        "pools": {"train": RDMA_POOL | {"rdma": "managed"}},
    },
    "A4 by flex-start, queued": {
        "cluster": {"version": "1.32.2-gke.1652000"},
        "pools": {
            "train": {
                "machineType": "a4-highgpu-8g",
                "nodes": {"min": 0, "max": 4},
                "capacity": {"kind": "flex-start", "queued": True, "maxRunDuration": "7d"},
                "autoRepair": False,
            }
        },
    },
    "A4 by flex-start, close together": {
        "pools": {
            "train": {
                "machineType": "a4-highgpu-8g",
                "nodes": {"min": 0, "max": 4},
                "capacity": "flex-start",
                "compactPlacement": True,
            }
        }
    },
    "a regional cluster": {
        "zone": None,
        "region": "us-central1",
        "zones": ["us-central1-a", "us-central1-b", "us-central1-f"],
        "pools": {"cpu": {"nodes": 3}, "train": RDMA_POOL | {"zones": ["us-central1-b"]}},
    },
    "a regional cluster whose pools name their zones": {
        "zone": None,
        "region": "us-central1",
        "pools": {"cpu": {"zones": ["us-central1-a", "us-central1-b"], "nodes": 2}},
    },
    "a zonal cluster with nodes in another zone": {"pools": {"cpu": {"zones": ["us-central1-a"]}}},
    "existing networks": {
        "network": {
            "existing": {
                "project": "host-project",
                "network": "shared",
                "subnetwork": "gpu",
                "gvnic": {"network": "gvnic", "subnetwork": "gvnic"},
                "rdma": {"network": "rdma", "subnetworks": [f"rdma-{number}" for number in range(8)]},
            }
        },
        "pools": {"train": RDMA_POOL},
    },
    "an existing cluster": {
        "project": None,
        "zone": None,
        "cluster": {"existing": {"kubeconfig": "~/.kube/config", "context": "gpu"}},
        "operators": {"kuberay": {"source": "present"}},
        "pools": {
            "cpu": {"taints": [{"key": "team"}]},
            "train": {
                "machineType": "a4-highgpu-8g",
                "nodes": 2,
                "rdma": "networks",
                "taints": [{"key": "cloud.google.com/gke-spot", "value": "true"}],
            },
        },
    },
    "the smallest range of everything": {"network": {"cidr": "192.168.0.0/20"}, "pools": {"cpu": {"nodes": 7}}},
    "the widest": {"network": {"cidr": "10.0.0.0/8"}},
    "rates with a currency": {"currency": "USD", "pools": {"cpu": {"hourlyRate": 0.8}}},
    "labels, taints and kernel settings": {
        "labels": {"owner": "ml-platform", "cost-center": "42"},
        "pools": {
            "more": {
                "machineType": "n2-standard-16",
                "nodes": 1,
                "labels": {"example.com/team": "ml", "tier": ""},
                "taints": [
                    {"key": "example.com/only", "value": "ray"},
                    {"key": "example.com/only", "effect": "NoExecute"},
                ],
                "sysctls": {"net.core.rmem_max": "16777216", "vm.max_map_count": "262144"},
            }
        },
    },
    "no logs": {"cluster": {"logging": []}},
    "CUDA of the B200's time": {
        "pools": {"train": RDMA_POOL},
        "engineers": {"alice": {"image": "registry.example/ray-a4:2.60.0-py311-cu128", "worker": {"gpus": 8}}},
    },
    "an older CUDA on an older GPU": {
        "pools": {"dev": {"machineType": "a2-highgpu-1g", "nodes": 1}},
        "engineers": {"alice": {"image": "rayproject/ray:2.60.0-py311-cu118"}},
    },
    "all GPUs and NICs of a node": {
        "pools": {"train": RDMA_POOL},
        "engineers": {"alice": {"worker": {"gpus": 8}}},
        "clusters": {"train": {"nccl": {"profile": "a4", "sharedMemory": "64Gi"}}},
    },
    "claimed GPUs, each with its NIC": {
        "pools": {"train": RDMA_POOL | {"gpuAllocation": "dra"}},
        "engineers": {"alice": {"worker": {"gpus": 2}}, "bob": {"worker": {"gpus": 2, "nics": 0}}},
        "clusters": {"train": {}},
    },
    "claimed GPUs without RDMA": {
        "pools": {"train": RDMA_POOL | {"gpuAllocation": "dra", "rdma": "none"}},
        "engineers": {"alice": {}},
    },
    "NICs without GPUs": {
        "policies": {"waived": {"rdma-whole": "a test"}},
        "pools": {"train": RDMA_POOL},
        "engineers": {"alice": {"worker": {"pool": "train", "gpus": 0, "nics": 3}}},
    },
    "more cores while others don't need them": {
        "engineers": {"alice": {"worker": {"pool": "cpu", "gpus": 0, "cpu": 4, "cpuLimit": 8}}}
    },
    "an older CUDA on no GPU": {
        "pools": {"train": RDMA_POOL},
        "engineers": {"alice": {"image": "rayproject/ray:2.60.0-py311-cu118", "worker": {"gpus": 0, "pool": "cpu"}}},
    },
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted_without_a_warning(case: str) -> None:
    assert warnings(ACCEPTED[case]) == []


def test_waiting_for_flex_start_nodes_is_warned_of() -> None:
    given = {"pools": {"dev": FLEX_START}, "engineers": {"alice": {}}}
    assert warnings(given) == [
        (
            "environment.engineers.alice.wait.until: waits up to 10m for workers on pool 'dev', "
            "whose flex-start nodes come when"
            " Google has them, maybe after hours, and the update would fail; write `wait: {until: submitted}`"
        )
    ]
    assert warnings(over(given, {"engineers": {"alice": {"wait": {"until": "submitted"}}}})) == []
    assert warnings(over(given, {"engineers": {"alice": {"workers": {"min": 0, "max": 2}}}})) == []


def test_a_pool_with_queued_provisioning_is_warned_of_where_nothing_asks_for_its_nodes() -> None:
    pool = FLEX_START | {"capacity": {"kind": "flex-start", "queued": True}}
    (warning,) = warnings({"pools": {"dev": pool}, "engineers": {"alice": {"wait": {"until": "submitted"}}}})
    assert warning == (
        "environment.engineers.alice.worker.pool: nodes of pool 'dev' come only for a "
        "ProvisioningRequest (queued: true), which"
        " berth does not make: the workers wait until one is made for them, by Kueue for example; "
        "take `queued` out for nodes"
        " that come one by one"
    )


def test_more_gpus_than_a_worker_has_are_warned_of() -> None:
    given = {"pools": {"dev": FLEX_START}, "engineers": {"alice": {"workers": {"max": 2}, "worker": {"rayGpus": 2}}}}
    assert warnings(given) == [
        (
            "environment.engineers.alice.worker.rayGpus: Ray hands out 2 GPUs of a worker that has 1 "
            "GPU: a task that is given one of"
            " the others finds none; take `rayGpus` out for as many as there are"
        )
    ]
    assert warnings(over(given, {"engineers": {"alice": {"worker": {"rayGpus": 0}}}})) == []


@pytest.mark.parametrize(("gpus", "nics"), [(1, 1), (4, 4), (8, 4), (4, 8)])
def test_counted_gpus_beside_a_part_of_the_nics_are_warned_of(gpus: int, nics: int) -> None:
    given = {
        "policies": {"waived": {"rdma-whole": "a test"}},
        "pools": {"train": RDMA_POOL},
        "engineers": {"alice": {"worker": {"gpus": gpus, "nics": nics}}},
    }
    counted = f"{gpus} GPU{'s' if gpus > 1 else ''} and {nics} NIC{'s' if nics > 1 else ''}"
    (warning,) = warnings(given)
    assert warning == (
        f"environment.engineers.alice.worker.nics: a worker has {counted} of a node's 8 and 8: its "
        "GPUs and NICs may sit on different"
        " PCIe roots, and Google documents only workers with all of a node's; `gpuAllocation: dra` "
        "on pool 'train' pairs them"
    )
    if gpus == nics:
        assert warnings(over(given, {"pools": {"train": {"gpuAllocation": "dra"}}})) == []


def test_a_machine_that_is_not_sold_on_demand_is_warned_of() -> None:
    assert warnings({"pools": {"train": {"machineType": "a4-highgpu-8g", "nodes": 1}}}) == [
        (
            "environment.pools.train.capacity: Google does not sell a4-highgpu-8g on demand: without "
            "a reservation that any machine may"
            " use, there will be no node; set `capacity` to reservation, flex-start or spot"
        )
    ]


def test_a_list_of_everyone_who_reaches_the_control_plane_is_warned_of() -> None:
    networks = {"office": "203.0.113.0/24", "all": "0.0.0.0/0"}
    assert warnings({"cluster": {"authorizedNetworks": networks}}) == [
        (
            "environment.cluster.authorizedNetworks.all: lets the whole internet reach the control "
            "plane, as a new cluster"
            " without a list does; name the networks of your office and your CI"
        )
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"zone": None, "region": "us"},
        {"pools": {"train": RDMA_POOL | {"capacity": {"kind": "reserved", "reservation": "a4"}}}},
        {"network": {"cidr": "10.0.0.0", "podRange": "10.4.0.0/14", "rdmaRange": "10.0.0.0/18"}},
        {"network": {"rdmaRange": "192.168.0.0/20"}, "pools": {"train": RDMA_POOL | {"rdma": "network"}}},
        {"currency": "USD", "pools": {"cpu": {"hourlyRate": "much"}}},
        {"project": None, "zone": None, "cluster": {"existing": {"kubeconfig": 5}}},
        {"cluster": {"managedPrometheus": False, "managedDcgm": "no thanks"}},
        {"pools": {"dev": {"machineType": "a3-highgpu-1g", "nodes": 1, "capacity": "spto"}}},
        {"pools": {"cpu": {"nodes": "one"}, "dev": FLEX_START}},
    ],
)
def test_nothing_is_concluded_from_what_is_wrong_by_itself(broken: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        load("test", {"environment": over(BASE, broken)}, None)
    assert len(caught.value.lines) == 1, caught.value.lines


def test_groups_are_a_warning_until_the_cluster_knows_them() -> None:
    groups = {
        "defaults": {"access": {"groups": ["ml-platform@example.com"]}},
        "pools": {"dev": {"machineType": "g2-standard-8", "nodes": 1}},
        "engineers": {"alice": {"access": {"users": ["alice@example.com"]}}},
    }
    assert [line for line in warnings(groups) if "groups" in line] == [
        (
            "environment.defaults.access.groups: gives nobody access: the cluster knows no Google groups; write"
            " `cluster: {securityGroup: gke-security-groups@example.com}`"
        )
    ]
    known = {"cluster": {"securityGroup": "gke-security-groups@example.com"}}
    assert [line for line in warnings(over(groups, known)) if "groups" in line] == []
