"""Quotas and reservations, on answers in the shapes that Google's APIs have."""

from __future__ import annotations

from typing import Any

import pytest

from berth.cli.verbs.doctor import machines_in_use, quotas, reservations
from berth.cli.verbs.doctor.google import GoogleError
from berth.cli.verbs.doctor.machines_in_use import Running
from berth.components.hardware.quota_names import Quota, taken, usual
from tests.unit.cli.verbs.recorded_google import PROJECT, Recorded, environment, only_missing, pool, states

ZONE, REGION = "us-central1-b", "us-central1"
QUOTA_INFOS = "cloudquotas locations/global/services/compute.googleapis.com/quotaInfos/"


@pytest.mark.parametrize(
    ("machine_type", "capacity", "expected"),
    [
        ("n2-standard-16", "on-demand", {"N2-CPUS-per-project-region": 16, "CPUS-ALL-REGIONS-per-project": 16}),
        ("e2-standard-4", "on-demand", {"CPUS-per-project-region": 4, "CPUS-ALL-REGIONS-per-project": 4}),
        ("n2-standard-16", "spot", {"PREEMPTIBLE-CPUS-per-project-region": 16, "CPUS-ALL-REGIONS-per-project": 16}),
        # Accelerator-optimized machines take no CPU quota.
        ("g2-standard-48", "on-demand", {"NVIDIA-L4-GPUS-per-project-region": 4, "GPUS-ALL-REGIONS-per-project": 4}),
        (
            "a4-highgpu-8g",
            "on-demand",
            {"GPUS-PER-GPU-FAMILY-per-project-region": 8, "GPUS-ALL-REGIONS-per-project": 8},
        ),
        (
            "a4-highgpu-8g",
            "flex-start",
            {"PREEMPTIBLE-NVIDIA-B200-GPUS-per-project-region": 8, "GPUS-ALL-REGIONS-per-project": 8},
        ),
        ("a4-highgpu-8g", "reservation", {}),
    ],
)
def test_what_a_machine_takes(machine_type: str, capacity: str, expected: dict[str, int]) -> None:
    assert {quota.id: amount for quota, amount in taken(machine_type, capacity).items()} == expected


def test_without_preemptible_quota_the_usual_one_is_taken() -> None:
    assert usual(Quota("PREEMPTIBLE_NVIDIA_B200_GPUS")) == Quota("GPUS_PER_GPU_FAMILY", "NVIDIA_B200")
    assert usual(Quota("PREEMPTIBLE_NVIDIA_L4_GPUS")) == Quota("NVIDIA_L4_GPUS")
    assert usual(Quota("PREEMPTIBLE_LOCAL_SSD_GB")) == Quota("LOCAL_SSD_TOTAL_GB")


INFO = {
    "dimensionsInfos": [
        {"dimensions": {"region": REGION, "gpu_family": "NVIDIA_B200"}, "details": {"value": "8"}},
        {"dimensions": {"gpu_family": "NVIDIA_B200"}, "details": {"value": "64"}},
        {"dimensions": {"region": REGION}, "details": {}},
        {"details": {"value": "-1"}},
    ]
}


@pytest.mark.parametrize(
    ("dimensions", "limit"),
    [
        ({"region": REGION, "gpu_family": "NVIDIA_B200"}, 8),
        ({"region": "europe-west4", "gpu_family": "NVIDIA_B200"}, 64),
        ({"region": REGION, "gpu_family": "NVIDIA_H200"}, 0),
        ({"region": "europe-west4", "gpu_family": "NVIDIA_H200"}, None),
    ],
)
def test_the_limit_is_that_of_the_entry_which_names_most(dimensions: dict[str, str], limit: int | None) -> None:
    assert quotas.limit_in(INFO, dimensions) == limit


def listed(**limits: tuple[float, float]) -> list[dict[str, Any]]:
    return [{"metric": metric, "limit": limit, "usage": usage} for metric, (limit, usage) in limits.items()]


def quota_answers(
    region: list[dict[str, Any]], everywhere: list[dict[str, Any]] | None = None, **infos: Any
) -> Recorded:
    ids = {f"{QUOTA_INFOS}{name.replace('_', '-')}": info for name, info in infos.items()}
    all_regions = {"quotas": everywhere or listed(CPUS_ALL_REGIONS=(500, 0), GPUS_ALL_REGIONS=(500, 0))}
    return Recorded({f"compute regions/{REGION}": {"quotas": region}, "compute": all_regions, **ids})


def test_quota_is_asked_for_all_that_pools_can_have() -> None:
    settings = environment(pools={"dev": pool("g2-standard-48", {"min": 0, "max": 4})})
    google = quota_answers(listed(NVIDIA_L4_GPUS=(8, 0)))
    missing = only_missing(quotas.check(google, settings, []))
    assert missing.text == "NVIDIA_L4_GPUS in us-central1: pool dev takes up to 16, but the limit is 8"
    assert missing.remedy == (
        f"gcloud beta quotas preferences create --project={PROJECT} --service=compute.googleapis.com"
        " --quota-id=NVIDIA-L4-GPUS-per-project-region --dimensions=region=us-central1 --preferred-value=16"
        ' --email="$(gcloud config get account)"'
    )


def test_the_newer_gpus_are_asked_for_by_family() -> None:
    settings = environment(pools={"train": pool("a4-highgpu-8g", 2)})
    google = quota_answers([], GPUS_PER_GPU_FAMILY_per_project_region=INFO)
    missing = only_missing(quotas.check(google, settings, []))
    assert missing.text == "NVIDIA_B200_GPUS in us-central1: pool train takes up to 16, but the limit is 8"
    assert "--dimensions=region=us-central1,gpu_family=NVIDIA_B200 --preferred-value=16" in missing.remedy


def test_own_machines_are_not_counted_against_the_environment() -> None:
    settings = environment(pools={"cpu": pool("n2-standard-16", 2)})
    own = [Running("n2-standard-16", ZONE, "on-demand", "cpu")] * 2
    google = quota_answers(listed(N2_CPUS=(32, 32)), listed(CPUS_ALL_REGIONS=(32, 32)))
    assert states(quotas.check(google, settings, own)) == ["fine", "fine"]
    missing = [quota for quota in quotas.check(google, settings, []) if quota.state == "missing"]
    assert "pool cpu takes up to 32, others use 32, but the limit is 32" in missing[0].text
    assert "--preferred-value=64" in missing[0].remedy


def test_machines_of_others_count_where_google_tells_no_use() -> None:
    settings = environment(pools={"train": pool("a4-highgpu-8g", 1)})
    info = {"dimensionsInfos": [{"dimensions": {"region": REGION}, "details": {"value": "8"}}]}
    google = quota_answers([], GPUS_PER_GPU_FAMILY_per_project_region=info)
    others = [
        Running("a4-highgpu-8g", ZONE, "on-demand", ""),
        Running("a4-highgpu-8g", "europe-west4-b", "on-demand", ""),
    ]
    assert "others use 8, but the limit is 8" in only_missing(quotas.check(google, settings, others)).text


def test_spot_takes_the_usual_quota_where_there_is_no_preemptible_one() -> None:
    settings = environment(pools={"dev": pool("g2-standard-24", 2, capacity="spot")})
    google = quota_answers(listed(NVIDIA_L4_GPUS=(4, 0), PREEMPTIBLE_NVIDIA_L4_GPUS=(0, 0)))
    assert [quota.text for quota in quotas.check(google, settings, [])][-1].startswith("NVIDIA_L4_GPUS in us-central1")
    google = quota_answers(listed(NVIDIA_L4_GPUS=(0, 0), PREEMPTIBLE_NVIDIA_L4_GPUS=(4, 0)))
    assert states(quotas.check(google, settings, [])) == ["fine", "fine"]


def test_reservations_need_no_quota() -> None:
    capacity = {"kind": "reservation", "reservation": "r"}
    google = Recorded({})
    found = quotas.check(google, environment(pools={"train": pool("a4-highgpu-8g", 2, capacity=capacity)}), [])
    assert (states(found), google.asked) == (["fine"], [])


def test_a_limit_that_may_not_be_read_is_not_checked() -> None:
    settings = environment(pools={"train": pool("a4-highgpu-8g", 2)})
    disabled = GoogleError("disabled", "cloudquotas.googleapis.com is not enabled", "gcloud services enable …")
    found = quotas.check(quota_answers([], GPUS_PER_GPU_FAMILY_per_project_region=disabled), settings, None)
    assert sorted(states(found)) == ["fine", "unchecked"]
    assert (
        "NVIDIA_B200_GPUS in us-central1: not checked: cloudquotas.googleapis.com is not enabled"
        in found[-1].text + found[0].text
    )


def test_machines_are_read_page_by_page() -> None:
    def answer(query: dict[str, Any]) -> dict[str, Any]:
        at = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/zones/{ZONE}"
        labels = {"goog-k8s-cluster-name": "prod", "goog-k8s-node-pool-name": "dev"}
        first = {
            "zone": at,
            "machineType": f"{at}/machineTypes/g2-standard-4",
            "labels": labels,
            "scheduling": {"preemptible": True},
        }
        second = {
            "zone": at,
            "machineType": f"{at}/machineTypes/a4-highgpu-8g",
            "scheduling": {"provisioningModel": "FLEX_START"},
        }
        third = {
            "zone": at,
            "machineType": f"{at}/machineTypes/a4-highgpu-8g",
            "reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"},
        }
        if "pageToken" not in query:
            return {
                "items": {f"zones/{ZONE}": {"instances": [first]}, "zones/x": {"warning": {}}},
                "nextPageToken": "2",
            }
        return {"items": {f"zones/{ZONE}": {"instances": [second, third]}}}

    assert machines_in_use.running(Recorded({"compute aggregated/instances": answer}), "prod") == [
        Running("g2-standard-4", ZONE, "spot", "dev"),
        Running("a4-highgpu-8g", ZONE, "flex-start", ""),
        Running("a4-highgpu-8g", ZONE, "reservation", ""),
    ]


RESERVED = environment(
    pools={
        "train": pool(
            "a4-highgpu-8g",
            2,
            capacity={"kind": "reservation", "reservation": "a4", "block": "a4-block-1"},
            rdma="none",
        )
    }
)
AT = f"compute zones/{ZONE}/reservations/a4"


def reserved(
    count: int = 4, used: int = 0, machine_type: str = "a4-highgpu-8g", status: str = "READY"
) -> dict[str, Any]:
    specific = {"count": str(count), "inUseCount": str(used), "instanceProperties": {"machineType": machine_type}}
    return {"name": "a4", "status": status, "specificReservation": specific}


def block(count: int, used: int) -> dict[str, Any]:
    return {"resource": {"name": "a4-block-1", "count": count, "inUseCount": used}}


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({}, f"pool train: zone {ZONE} of project {PROJECT} has no reservation a4"),
        (
            {AT: reserved(machine_type="a3-ultragpu-8g")},
            "has machines of type a3-ultragpu-8g, but the pool's are a4-highgpu-8g",
        ),
        ({AT: reserved(status="CREATING")}, "reservation a4 is CREATING, not READY"),
        ({AT: reserved()}, "has no block a4-block-1"),
        (
            {AT: reserved(), f"{AT}/reservationBlocks/a4-block-1": block(2, 1)},
            "has 2 a4-highgpu-8g, others use 1, and the pool takes up to 2",
        ),
    ],
)
def test_a_reservation_that_does_not_do(answers: dict[str, Any], text: str) -> None:
    missing = only_missing(reservations.check(Recorded(answers), RESERVED, []))
    assert text in missing.text
    assert missing.remedy.startswith("gcloud compute reservations ")


def test_a_reservation_that_the_pool_itself_uses_is_enough() -> None:
    google = Recorded({AT: reserved(2, 2), f"{AT}/reservationBlocks/a4-block-1": block(2, 2)})
    own = [Running("a4-highgpu-8g", ZONE, "reservation", "train")] * 2
    assert states(reservations.check(google, RESERVED, own)) == ["fine"]


def test_a_shared_reservation_is_looked_for_where_it_belongs() -> None:
    capacity = {"kind": "reservation", "reservation": "a4", "project": "owner-project"}
    settings = environment(pools={"train": pool("a4-highgpu-8g", 2, capacity=capacity)})
    google = Recorded({f"compute projects/owner-project/zones/{ZONE}/reservations/a4": reserved()})
    assert states(reservations.check(google, settings, [])) == ["fine"]
