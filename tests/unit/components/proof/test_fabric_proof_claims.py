import dataclasses
from typing import Any

import pytest

from berth.components.cluster.inventory import inventory_of_objects
from berth.components.proof.checks import Check
from berth.components.proof.fabric.claims import Expected, WorkerPod, judge_claims, judge_scheduling

Object = dict[str, Any]

EXPECTED = Expected("train", 2, 2, 2, claimed_gpus=True, device_class="dranet")
ROOT = "resource.kubernetes.io/pcieRoot"


def published(
    node: str, *, v1beta1: bool = False, generation: int = 1, shift: int = 0
) -> list[Object]:
    """Two GPUs and two NICs of a node, each pair on one root; `shift` puts NICs on other roots."""

    def slice_of(driver: str, kind: str, offset: int) -> Object:
        devices: list[Object] = []
        for number in range(2):
            attributes = {ROOT: {"string": f"pci000{number + offset}:00"}}
            body = {"basic": {"attributes": attributes}} if v1beta1 else {"attributes": attributes}
            devices.append({"name": f"{kind}-{number}", **body})
        return {
            "spec": {
                "driver": driver,
                "pool": {"name": node, "generation": generation},
                "devices": devices,
            }
        }

    return [slice_of("gpu.nvidia.com", "gpu", 0), slice_of("dra.net", "nic", shift)]


def claim(
    node: str, given: dict[str, str], *, v1beta1: bool = False, nic_class: str = "dranet"
) -> Object:
    """A claim that was given devices, by request."""
    classes = {
        name: "gpu.nvidia.com" if device.startswith("gpu") else nic_class
        for name, device in given.items()
    }
    requests = [
        {
            "name": name,
            **({"deviceClassName": kind} if v1beta1 else {"exactly": {"deviceClassName": kind}}),
        }
        for name, kind in classes.items()
    ]
    results = [
        {
            "request": name,
            "driver": "gpu.nvidia.com" if device.startswith("gpu") else "dra.net",
            "pool": node,
            "device": device,
        }
        for name, device in given.items()
    ]
    return {
        "metadata": {"name": f"claim-{node}", "namespace": "berth-train"},
        "spec": {"devices": {"requests": requests}},
        "status": {"allocation": {"devices": {"results": results}}} if given else {},
    }


PAIRS = {"gpu-0": "gpu-0", "nic-0": "nic-0", "gpu-1": "gpu-1", "nic-1": "nic-1"}


def worker(name: str, *claims: Object, ready: bool = True) -> WorkerPod:
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    pod = {
        "metadata": {"name": name},
        "spec": {},
        "status": {"phase": "Running", "conditions": conditions},
    }
    return WorkerPod(
        pod,
        {"metadata": {"name": f"node-of-{name}"}},
        tuple(inventory_of_objects((), claims, (), ()).claims),
    )


SLICES = [*published("n1"), *published("n2")]
GOOD = [worker("a", claim("n1", PAIRS)), worker("b", claim("n2", PAIRS))]


def judged(
    workers: list[WorkerPod], slices: list[Object] | None = None, **expected: Any
) -> dict[str, tuple[str, str]]:
    devices = inventory_of_objects(SLICES if slices is None else slices, (), (), ()).devices
    checks = judge_claims(workers, devices, dataclasses.replace(EXPECTED, **expected))
    return {check.name: (check.verdict, check.evidence) for check in checks}


def test_each_worker_has_its_nics_beside_its_gpus() -> None:
    assert judged(GOOD) == {
        "claims": ("pass", "2 NICs of class dranet in each of 2 workers"),
        "pairs": ("pass", "each of 4 GPUs has the NIC of its PCIe root"),
    }


def test_objects_of_an_older_api_are_read_too() -> None:
    workers = [worker("a", claim("n1", PAIRS, v1beta1=True))]
    slices = published("n1", v1beta1=True)
    assert {verdict for verdict, _ in judged(workers, slices).values()} == {"pass"}


def test_a_slice_that_was_replaced_counts_no_more() -> None:
    slices = [*published("n1", generation=2), *published("n1", generation=1, shift=5)]
    assert judged([worker("a", claim("n1", PAIRS))], slices)["pairs"][0] == "pass"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (worker("b"), "b has no claim; 2 NICs expected"),
        (worker("b", claim("n2", {})), "b waits: nothing is allocated to its claim claim-n2"),
        (worker("b", claim("n2", {"nic-0": "nic-0"})), "b has 1 NIC; 2 were expected"),
        (
            worker("b", claim("n2", PAIRS, nic_class="netdev")),
            "b has NICs of class netdev, not dranet",
        ),
    ],
)
def test_a_worker_without_its_nics(wrong: WorkerPod, reason: str) -> None:
    assert judged([GOOD[0], wrong])["claims"] == ("fail", reason)


def test_nics_beside_other_gpus() -> None:
    found = judged([worker("a", claim("n1", PAIRS))], published("n1", shift=1))["pairs"]
    assert found == ("fail", "a: 1 GPU without a NIC on pci0000:00")


def test_roots_that_nobody_publishes() -> None:
    assert judged(GOOD, [])["pairs"] == (
        "fail",
        "a: a device's PCIe root is not published; b: a device's PCIe root is not published",
    )


def test_a_cluster_without_claims_does_not_use_the_fabric() -> None:
    found = judged([worker("a")], nics=0, why_no_nics="worker.nics is 0")
    assert found == {
        "claims": (
            "fail",
            "not using the fabric: its workers claim no NICs, since worker.nics is 0",
        ),
        "pairs": ("skipped", "there are no claimed NICs"),
    }


def test_whole_nodes_need_no_pairs() -> None:
    assert judged(GOOD, claimed_gpus=False)["pairs"] == ("skipped", "its GPUs are not claimed")


def test_where_the_workers_run() -> None:
    assert judge_scheduling(GOOD, EXPECTED) == Check(
        "scheduling", "pass", "2 workers on 2 nodes: node-of-a, node-of-b"
    )
    together = [dataclasses.replace(item, node=GOOD[0].node) for item in GOOD]
    assert judge_scheduling(together, EXPECTED).evidence == (
        "all 2 workers on node-of-a: what they exchange need not leave that node"
    )


def test_workers_that_are_missing_or_not_ready() -> None:
    found = judge_scheduling(
        [GOOD[0], worker("b", ready=False)], dataclasses.replace(EXPECTED, workers=3)
    )
    assert found.verdict == "fail"
    assert (
        found.evidence
        == "1 of 3 workers are ready; b: pod is not ready yet (phase Running); 1 have no pod"
    )
