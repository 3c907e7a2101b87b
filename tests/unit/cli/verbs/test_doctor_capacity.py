"""Quotas and reservations, on answers in the shapes that Google's APIs have."""

from typing import Any

import pytest

from berth.cli.reach.google_cloud import GoogleError
from berth.cli.verbs.doctor.google_cloud import quotas
from berth.cli.verbs.doctor.google_cloud.running_machines import RunningMachine, running_machines
from berth.components.hardware.machines import MACHINES, machine_of
from berth.components.hardware.quota_names import Quota, quotas_taken, usual_quota
from tests.unit.cases import table
from tests.unit.cli.verbs.recorded_google import PROJECT, Recorded, environment, pool, states

ZONE = "us-central1-b"
REGION = "us-central1"
QUOTA_INFOS = "cloudquotas locations/global/services/compute.googleapis.com/quotaInfos/"


@pytest.mark.parametrize(
    ("machine", "capacity", "expected"), table(__file__, "doctor_capacity.yaml")
)
def test_what_a_machine_takes(machine: Any, capacity: str, expected: dict[str, int]) -> None:
    given = machine_of(*([machine] if isinstance(machine, str) else machine))
    assert {quota.id: amount for quota, amount in quotas_taken(given, capacity).items()} == expected


def test_without_preemptible_quota_the_usual_one_is_taken() -> None:
    assert usual_quota(Quota("PREEMPTIBLE_NVIDIA_B200_GPUS")) == Quota(
        "GPUS_PER_GPU_FAMILY", "NVIDIA_B200"
    )
    assert usual_quota(Quota("PREEMPTIBLE_NVIDIA_L4_GPUS")) == Quota("NVIDIA_L4_GPUS")
    assert usual_quota(Quota("PREEMPTIBLE_LOCAL_SSD_GB")) == Quota("LOCAL_SSD_TOTAL_GB")


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
def test_the_limit_is_that_of_the_entry_which_names_most(
    dimensions: dict[str, str], limit: int | None
) -> None:
    assert quotas.limit_in(INFO, dimensions) == limit


def listed(**limits: tuple[float, float]) -> list[dict[str, Any]]:
    return [
        {"metric": metric, "limit": limit, "usage": usage}
        for metric, (limit, usage) in limits.items()
    ]


def quota_answers(
    region: list[dict[str, Any]], everywhere: list[dict[str, Any]] | None = None, **infos: Any
) -> Recorded:
    ids = {f"{QUOTA_INFOS}{name.replace('_', '-')}": info for name, info in infos.items()}
    all_regions = {
        "quotas": everywhere or listed(CPUS_ALL_REGIONS=(500, 0), GPUS_ALL_REGIONS=(500, 0))
    }
    return Recorded(
        {f"compute regions/{REGION}": {"quotas": region}, "compute": all_regions, **ids}
    )


def test_a_limit_that_may_not_be_read_is_not_checked() -> None:
    settings = environment(pools={"train": pool("a4-highgpu-8g", 2)})
    disabled = GoogleError(
        "disabled", "cloudquotas.googleapis.com is not enabled", "gcloud services enable …"
    )
    found = list(
        quotas.check_quotas(
            quota_answers([], GPUS_PER_GPU_FAMILY_per_project_region=disabled), settings, None
        )
    )
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

    assert running_machines(Recorded({"compute aggregated/instances": answer}), "prod") == [
        RunningMachine(MACHINES["g2-standard-4"], ZONE, "spot", "dev"),
        RunningMachine(MACHINES["a4-highgpu-8g"], ZONE, "flex-start", ""),
        RunningMachine(MACHINES["a4-highgpu-8g"], ZONE, "reservation", ""),
    ]
