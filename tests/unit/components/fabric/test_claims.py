"""Claims of workers, in each version of resource.k8s.io."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from kubernetes import client

from berth.components.fabric import WorkerClaim, claim_of, claim_template
from berth.components.hardware.names import PCIE_ROOT, ResourceApi
from berth.components.sharing.modes.mig import Mig
from tests.unit.components.fabric import (
    A4,
    BY_NETWORKS,
    CLAIMED,
    MANAGED,
    PAIRED,
    PAIRED_MANAGED,
    complete,
)

APIS: tuple[ResourceApi, ...] = get_args(ResourceApi)


def claim(pool: dict[str, Any], **worker: Any) -> WorkerClaim | None:
    cluster, pools = complete(pool, "engineers", {"worker": worker})
    return claim_of(cluster.groups[0], pools["train"])


def mig_claim(instances: int) -> WorkerClaim | None:
    """Settings refuse MIG where GPUs are claimed, as GKE does; the driver has it."""
    cluster, pools = complete(CLAIMED, "engineers", {"worker": {"gpus": instances}})
    profile = Mig(kind="mig", strategy="mixed", profile="1g.23gb")
    pool = pools["train"]
    offer = profile.offer(pool.settings.machine, by_operator=False)
    return claim_of(cluster.groups[0], replace(pool, profile=profile, offer=offer))


SHAPES: dict[str, WorkerClaim | None] = {
    "all-nic": claim(BY_NETWORKS, gpus=8),
    "one-nic": claim(BY_NETWORKS, gpus=1, nics=1),
    "4-nic": claim(BY_NETWORKS, gpus=4, nics=4),
    "all-nic-managed": claim(MANAGED, gpus=8),
    "2-gpu": claim(CLAIMED, gpus=2),
    "2-gpu-nic": claim(PAIRED, gpus=2),
    "2-gpu-nic-managed": claim(PAIRED_MANAGED, gpus=2),
    "2-mig": mig_claim(2),
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("shape", SHAPES)
def test_template(golden: Callable[[str, Any], None], shape: str, api: ResourceApi) -> None:
    claimed = SHAPES[shape]
    assert claimed is not None
    golden(
        f"fabric/{shape}-{api}", claim_template(claimed, api, "berth-x", {"berth/engineer": "x"})
    )


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_field_is_one_of_its_version(shape: str, api: ResourceApi) -> None:
    """Parse with Kubernetes' own client, which is generated from the API's description."""
    claimed = SHAPES[shape]
    assert claimed is not None
    model = f"V{api.removeprefix('v')}"
    requested = f"{model}DeviceRequest" if api == "v1beta1" else f"{model}ExactDeviceRequest"
    for request in claimed.spec(api)["devices"]["requests"]:
        assert request.keys() <= fields(f"{model}DeviceRequest")
        exactly = request if api == "v1beta1" else request["exactly"]
        assert exactly.keys() <= fields(requested)
        for selector in exactly.get("selectors", []):
            assert selector.keys() <= fields(f"{model}DeviceSelector")
    for constraint in claimed.spec(api)["devices"].get("constraints", []):
        assert constraint.keys() <= fields(f"{model}DeviceConstraint")


def fields(model: str) -> set[str]:
    return set(getattr(client, model).attribute_map.values())


@pytest.mark.parametrize("shape", SHAPES)
def test_its_name_says_what_it_is_about_and_is_the_same_in_each_version(shape: str) -> None:
    claimed = SHAPES[shape]
    assert claimed is not None
    assert claimed.template_name.startswith(f"{shape.removesuffix('-managed')}-")
    named = {claim_template(claimed, api, "berth-x", {})["metadata"]["name"] for api in APIS}
    assert named == {claimed.template_name}


def test_other_content_is_another_name() -> None:
    names = [claimed.template_name for claimed in SHAPES.values() if claimed]
    assert len(set(names)) == len(SHAPES)


@pytest.mark.parametrize("pool", [PAIRED, PAIRED_MANAGED], ids=["networks", "managed"])
@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_each_claimed_gpu_is_paired_with_one_nic(pool: dict[str, Any], gpus: int) -> None:
    claimed = claim(pool, gpus=gpus)
    assert claimed is not None
    devices = claimed.spec("v1")["devices"]
    counts = {request["name"]: request["exactly"]["count"] for request in devices["requests"]}
    assert counts == {f"{kind}-{number}": 1 for number in range(gpus) for kind in ("gpu", "nic")}
    assert devices["constraints"] == [
        {"requests": [f"gpu-{number}", f"nic-{number}"], "matchAttribute": PCIE_ROOT}
        for number in range(gpus)
    ]
    assert claimed.gpus == gpus


def test_a_whole_node_of_pairs_fits_into_one_claim() -> None:
    claimed = claim(PAIRED, gpus=8)
    assert claimed is not None
    # Kubernetes takes 32 requests and 32 constraints a claim (k8s.io/api/resource/v1,
    # DeviceRequestsMaxSize).
    assert len(claimed.requests) == 16
    assert claimed.template_name.startswith("all-gpu-nic-")


@pytest.mark.parametrize(
    ("pool", "worker"),
    [
        (A4, {"gpus": 8}),
        (BY_NETWORKS, {"gpus": 8, "nics": 0}),
        (BY_NETWORKS, {"gpus": 1}),
        (PAIRED, {"gpus": 0, "pool": "train"}),
        (PAIRED, {"gpus": 0, "pool": "cpu"}),
    ],
)
def test_nothing_is_claimed(pool: dict[str, Any], worker: dict[str, Any]) -> None:
    cluster, pools = complete(pool, "engineers", {"worker": worker})
    assert claim_of(cluster.groups[0], pools[cluster.groups[0].pool]) is None


def test_nics_without_gpus_are_claimed_by_themselves() -> None:
    cluster, pools = complete(
        PAIRED, "engineers", {"worker": {"gpus": 0, "pool": "train", "nics": 3}}
    )
    claimed = claim_of(cluster.groups[0], pools["train"])
    assert claimed is not None
    assert (claimed.name, claimed.template_name.rpartition("-")[0], claimed.gpus) == (
        "nics",
        "3-nic",
        0,
    )
