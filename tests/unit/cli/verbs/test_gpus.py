"""`berth gpus`: what is free where, per share, from the nodes and pods of a cluster."""

import io
import json
from typing import Any

import pytest
from rich.console import Console

from berth.cli.reach.environment import LiveEnvironment
from berth.cli.verbs.gpus import free_gpus
from berth.cli.verbs.gpus.free_gpus import GpuOffer, gpu_offers, offers_table
from berth.components.core.errors import BadInputError
from berth.components.ray.live.fleet import Fleet
from berth.components.ray.live.nodes import Holder, Node
from berth.stacks.settings.contract import EnvironmentContract

CONTRACT = EnvironmentContract.model_validate(
    {
        "name": "env",
        "pools": {
            "cpu": {"machineType": "n2-standard-8", "nodes": 1},
            "dev": {
                "machineType": "g2-standard-24",
                "nodes": 1,
                "sharing": "quarter",
                "hourlyRate": "2.4",
            },
            "train": {
                "machineType": "a4-highgpu-8g",
                "nodes": {"min": 0, "max": 3},
                "capacity": "spot",
            },
        },
        "sharing": {
            "quarter": {"kind": "time-slicing", "replicas": 4, "failRequestsGreaterThanOne": True}
        },
        "defaults": {},
        "demands": [],
        "namespaces": {},
        "currency": "EUR",
    }
)
NODES = [
    Node("c", "cpu", ready=True, gpus=0, holders=[]),
    Node("d", "dev", ready=True, gpus=8, holders=[Holder("alice", 2), Holder("bob", 1)]),
    Node("t1", "train", ready=True, gpus=8, holders=[Holder("train", 6)]),
    Node("t2", "train", ready=False, gpus=8, holders=[]),
]


@pytest.fixture
def offers() -> list[GpuOffer]:
    return gpu_offers(CONTRACT, NODES)


@pytest.fixture
def up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        free_gpus, "brought_up", lambda _stack: LiveEnvironment("env", CONTRACT, "")
    )
    monkeypatch.setattr(
        free_gpus, "fleet_on", lambda *_: Fleet("env", "env", [], [], [], nodes=NODES)
    )


def shown(offers: list[GpuOffer]) -> list[str]:
    text = io.StringIO()
    Console(width=400, file=text).print(offers_table(offers, "EUR", "env"))
    return [" ".join(line.split()) for line in text.getvalue().splitlines()]


def test_people_see_what_is_free_and_how_to_request_it(offers: list[GpuOffer]) -> None:
    lines = shown(offers)
    assert "pool GPU a worker has free now on one node later capacity EUR an hour" in lines
    share = "1 share (1/4 of an L4, 24 GiB shared)"
    assert f"dev L4 {share} 5/8 shares 1 – on-demand 0.30" in lines
    # Nobody can use a node that is not ready; a third one may come.
    assert "train B200 1 to 8 × B200 2/8 2 +8 spot –" in lines
    assert lines[-2] == "In the settings of a berth: worker: {pool: dev, gpus: 1}"
    assert lines[-1] == "A new berth: berth engineer add NAME -s env --pool dev --gpus 1"


POOLS = {
    "bench": {"machineType": "a4-highgpu-8g", "nodes": 1, "rdma": "managed"},
    "dev": {"machineType": "a4-highgpu-8g", "nodes": 1, "sharing": "quarter"},
    "extra": {"machineType": "a3-highgpu-1g", "nodes": 1},
}
RECOMMENDED = {
    "the default pool, before one with whole GPUs": ("dev", {"bench": 8, "dev": 28, "extra": 1}),
    "another pool, where the default one is full": ("extra", {"bench": 8, "dev": 0, "extra": 1}),
    "a fabric, where only that is free": ("bench", {"bench": 8, "dev": 0, "extra": 0}),
    "the default pool, where nothing is free": ("dev", {"bench": 0, "dev": 0, "extra": 0}),
}


@pytest.mark.parametrize("case", RECOMMENDED)
def test_the_default_pool_is_recommended_first_and_a_fabric_last(case: str) -> None:
    pool, free = RECOMMENDED[case]
    contract = CONTRACT.model_validate(
        CONTRACT.model_dump(by_alias=True, exclude_unset=True)
        | {"pools": POOLS, "defaults": {"worker": {"pool": "dev"}}}
    )
    nodes = [
        Node(f"node-{name}", name, ready=True, gpus=gpus, holders=[]) for name, gpus in free.items()
    ]
    how = "\n".join(shown(gpu_offers(contract, nodes)))
    assert f"worker: {{pool: {pool}, gpus: 1}}" in how


@pytest.mark.usefixtures("up")
def test_programs_see_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert free_gpus.print_free_gpus("env", "nvidia-l4", as_json=True) == 0
    (found,) = json.loads(capsys.readouterr().out)
    expected: dict[str, Any] = {
        "unit": "share",
        "gpuUnit": {
            "product": "L4",
            "kind": "share",
            "profile": "",
            "perGpu": 4,
            "memoryGib": 24,
            "memoryIsShared": True,
        },
        "memoryGiB": 6.0,
        "free": 5,
        "freeByNode": {"d": 5},
        "mostPerWorker": 1,
        "hourlyRate": 0.3,
        "currency": "EUR",
        "request": {"worker": {"pool": "dev", "gpus": 1}},
    }
    assert found | expected == found


@pytest.mark.usefixtures("up")
@pytest.mark.parametrize("product", ["h100", "", "-"])
def test_a_gpu_that_no_pool_has_is_bad_input(product: str) -> None:
    with pytest.raises(BadInputError, match=f"no pool of env has GPU '{product}'"):
        free_gpus.print_free_gpus("env", product, as_json=False)
