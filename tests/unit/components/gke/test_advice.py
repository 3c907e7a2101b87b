from __future__ import annotations

from typing import Any

import pulumi
import pytest
from pulumi.runtime.settings import get_engine

from berth.components.gke import PoolSettings
from berth.components.gke.advice import Pooled, advice
from berth.components.gke.explained import explained
from tests.unit.recording import run

ZONE = "us-central1-b"
RESERVED = {"kind": "reservation", "reservation": "a4-prod", "block": "a4-prod-block-1"}


def pooled(capacity: Any = "on-demand", machine: str = "a4-highgpu-8g") -> Pooled:
    settings = PoolSettings.model_validate({"machineType": machine, "nodes": 2, "capacity": capacity})
    return Pooled("train", settings, "some-project", (ZONE,), "prod", ZONE)


# The texts are those of public bug reports; see components/gke/advice.py.
QUOTA = (
    "error creating NodePool: googleapi: Error 403: Insufficient regional quota to satisfy request: resource"
    " \"NVIDIA_B200_GPUS\": request requires '16.0' and is short '12.0'. project has a quota of "
    "'4.0' with '4.0' available."
    " View and manage quotas at "
    "https://console.cloud.google.com/iam-admin/quotas?usage=USED&project=some-project., forbidden"
)
TWO_QUOTAS = (
    "error creating NodePool: googleapi: Error 403: \n\t(1) insufficient regional quota to satisfy request: resource"
    " \"CPUS\": request requires '72.0' and is short '48.0'. project has a quota of '24.0' with "
    "'24.0' available.\n\t(2)"
    ' insufficient regional quota to satisfy request: resource "IN_USE_ADDRESSES": request '
    "requires '9.0' and is short"
    " '1.0'. project has a quota of '8.0' with '8.0' available., forbidden"
)
STOCK = (
    "Error waiting for creating GKE NodePool: Google Compute Engine: Not all instances running in "
    "IGM after 14.69s. Expected"
    " 1, running 0, transitioning 1. Current errors: [GCE_STOCKOUT]: Instance "
    "'gke-some-train-34b6625e-k7xw' creation failed:"
    " The zone 'projects/some-project/zones/us-central1-b' does not have enough resources available "
    "to fulfill the request."
)
ELSEWHERE = (
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: A n1-standard-4 VM instance with 1 nvidia-tesla-t4 accelerator(s) is"
    " currently unavailable in the us-central1-b zone. Consider trying your request in the us-central1-a, us-central1-f"
    " zone(s), which currently has capacity to accommodate your request."
)
MISSING = (
    'error creating NodePool: googleapi: Error 404: Google Compute Engine: reservation "a4-prod" not '
    "found for node pool"
    ' "train" at zone "us-central1-b".'
)
FULL = (
    "googleapi: Error 429: Reservation does not have enough resources for the request: specific "
    'reservation "a4-prod" is'
    ' insufficient for node pool "train" at zone "us-central1-b": required 4 and short of 2 VM count of machine type'
    " a4-highgpu-8g."
)
UNFIT = (
    'Google Compute Engine: reservation "a4-prod" at zone "us-central1-b" is of machine type '
    "a3-ultragpu-8g and incompatible"
    ' with node pool "train" of machine type a4-highgpu-8g.'
)
AUTOMATIC = (
    "Specified reservations [projects/some-project/reservations/a4-prod] can not be targeted as "
    "specificReservationRequired"
    " is not set"
)
LOOK = "gcloud compute reservations describe a4-prod --project some-project --zone us-central1-b"


@pytest.mark.parametrize(
    ("error", "capacity", "expected"),
    [
        (
            QUOTA,
            "on-demand",
            (
                "quota NVIDIA_B200_GPUS: 16 are asked for, 12 more than the project may have; ask for more at"
                " https://console.cloud.google.com/iam-admin/quotas?project=some-project (filter: "
                "NVIDIA_B200_GPUS), or set fewer"
                " pools.train.nodes; machines of a reservation take no quota"
            ),
        ),
        (
            "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.",
            "spot",
            (
                "quota GPUS_ALL_REGIONS: the project may have 0; ask for more at"
                " https://console.cloud.google.com/iam-admin/quotas?project=some-project (filter: "
                "GPUS_ALL_REGIONS), or set fewer"
                " pools.train.nodes"
            ),
        ),
        (
            STOCK,
            "on-demand",
            (
                "Google Cloud has no a4-highgpu-8g in us-central1-b at the moment, whatever the "
                "quota says; try again later,"
                " another zone (pools.train.zones), or a reservation or flex-start, which waits for machines"
                " (pools.train.capacity)"
            ),
        ),
        (
            ELSEWHERE,
            "spot",
            (
                "Google Cloud has no a4-highgpu-8g in us-central1-b at the moment, whatever the "
                "quota says; try again later,"
                " another zone (pools.train.zones; there are some now in us-central1-a, "
                "us-central1-f), or on-demand machines or"
                " flex-start, which waits for them (pools.train.capacity)"
            ),
        ),
        (
            STOCK,
            RESERVED,
            (
                "Google Cloud has no a4-highgpu-8g in us-central1-b at the moment, whatever the "
                "quota says; try again later,"
                " or ask Google's support, since these machines are reserved for you"
            ),
        ),
        (
            'NodePool train was created in the error state "RUNNING_WITH_ERROR"',
            "on-demand",
            (
                "the pool exists, but GKE got none or not all of its a4-highgpu-8g in "
                "us-central1-b; the reason is kept with"
                " the pool: gcloud container node-pools describe train --cluster prod --location "
                "us-central1-b --project"
                " some-project --format='value(status,conditions)'; when there are machines, `pulumi "
                "up` goes on from here"
            ),
        ),
        (
            MISSING,
            RESERVED,
            (
                "reservation 'a4-prod' of project some-project is not in us-central1-b, or has no "
                "block 'a4-prod-block-1', or is"
                f" not shared with project some-project; correct pools.train.capacity ({LOOK})"
            ),
        ),
        (
            FULL,
            RESERVED,
            (
                "reservation 'a4-prod' of project some-project has too few machines left: 4 are "
                "needed, and 2 of them are lacking; set fewer"
                f" pools.train.nodes, or free some (who uses it: {LOOK})"
            ),
        ),
        (
            UNFIT,
            RESERVED,
            (
                "reservation 'a4-prod' of project some-project is of other machines than "
                "a4-highgpu-8g with its GPUs and local"
                f" SSDs; make pools.train what it is of ({LOOK})"
            ),
        ),
        (
            AUTOMATIC,
            RESERVED,
            (
                "reservation 'a4-prod' of project some-project is taken by any matching machine and "
                "cannot be named: take"
                " pools.train.capacity out, or make it with --require-specific-reservation"
            ),
        ),
        (
            (
                "Instance creation failed: IP_SPACE_EXHAUSTED: IP space of "
                "'projects/p/regions/r/subnetworks/s' is exhausted"
            ),
            "on-demand",
            (
                "the subnetwork has no addresses left for more nodes: each takes twice as many for "
                "pods as it may have pods; give a"
                " larger network.podRange or network.nodeRange, or a smaller pools.train.maxPodsPerNode"
            ),
        ),
        (
            "Constraint constraints/compute.vmExternalIpAccess violated for project 42.",
            "on-demand",
            (
                "a policy of the organization forbids this: constraints/compute.vmExternalIpAccess; "
                "see gcloud org-policies"
                " describe constraints/compute.vmExternalIpAccess --project some-project --effective"
            ),
        ),
    ],
)
def test_what_a_pools_error_means(error: str, capacity: Any, expected: str) -> None:
    assert advice(error, "some-project", pooled(capacity)) == [expected]


def test_each_quota_is_said_once() -> None:
    lines = advice(TWO_QUOTAS + TWO_QUOTAS, "some-project", pooled(machine="n2-standard-16"))
    assert [line.split(":")[0] for line in lines] == ["quota CPUS", "quota IN_USE_ADDRESSES"]
    assert "reservation" not in lines[0], "a pool without GPUs has no use for one"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            (
                "googleapi: Error 403: Compute Engine API has not been used in project 42 before or "
                "it is disabled. Enable it by"
                " visiting https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project=42"
            ),
            (
                "the API compute.googleapis.com is off in the project: gcloud services enable "
                "compute.googleapis.com --project"
                " some-project"
            ),
        ),
        (
            (
                "googleapi: Error 404: The resource "
                "'projects/some-project/global/networkProfiles/us-west9-a-vpc-roce' was not"
                " found, notFound"
            ),
            (
                "zone us-west9-a has no RDMA networks; zones that have them: gcloud compute "
                "network-profiles list --project"
                " some-project"
            ),
        ),
        (
            (
                "googleapi: Error 400: The network resource "
                "'projects/some-project/global/networks/some' is already being used by"
                " 'projects/some-project/global/firewalls/k8s-fw-1', resourceInUseByAnotherResource"
            ),
            (
                "projects/some-project/global/networks/some cannot go while "
                "projects/some-project/global/firewalls/k8s-fw-1 is in"
                " it, which this stack did not make: a load balancer, a firewall rule or machines "
                "that GKE left or somebody else"
                " made; remove it in project some-project, then run this again"
            ),
        ),
        (
            (
                "googleapi: Error 403: Required 'compute.networks.create' permission for"
                " 'projects/some-project/global/networks/some', forbidden"
            ),
            (
                "whoever runs this may not do compute.networks.create in project some-project; the "
                "roles that berth needs are"
                " roles/container.admin, roles/compute.networkAdmin, roles/compute.securityAdmin "
                "and, on the nodes' service"
                " account, roles/iam.serviceAccountUser"
            ),
        ),
        (
            "The zone 'projects/some-project/zones/us-central1-b' does not have enough resources available",
            "Google Cloud has no machines of this kind there at the moment; try again later, or another zone",
        ),
    ],
)
def test_what_an_error_of_networks_or_cluster_means(error: str, expected: str) -> None:
    assert advice(error, "some-project") == [expected]


@pytest.mark.parametrize(
    "error", ["", 'googleapi: Error 400: Network "default" does not exist., badRequest', MISSING, "timeout"]
)
def test_an_unknown_error_is_left_as_it_is(error: str) -> None:
    assert advice(error, "some-project", pooled("spot")) == []


@pytest.mark.parametrize(("error", "lines"), [(QUOTA, 1), (TWO_QUOTAS, 2), ("timeout", 0)])
def test_an_error_is_followed_by_what_it_means_on_the_pools_component(
    monkeypatch: pytest.MonkeyPatch, error: str, lines: int
) -> None:
    output: list[tuple[str, str]] = []

    def log(request: Any) -> None:
        if request.urn:  # not Pulumi's own, for debugging
            output.append((request.message, request.urn))

    async def program() -> None:
        monkeypatch.setattr(get_engine(), "Log", log)
        component = pulumi.ComponentResource("berth:gke:NodePool", "train")
        urn = await component.urn.future()
        failure = pulumi.ErrorHookArgs("urn", "", "train", "type", failed_operation="create", errors=[error, "older"])
        again = explained(component, "train", "some-project", pooled())(failure)
        assert not isinstance(again, bool)
        assert await again is False, "the provider has tried long enough"
        assert [text for text, _ in output] == advice(error, "some-project", pooled())
        assert len(output) == lines
        assert all(where == urn for _, where in output)

    run(program, "some")
