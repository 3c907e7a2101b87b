from typing import Any

import pulumi
import pytest
from pulumi.runtime.settings import get_engine

from berth.components.gke import NodePlace, PoolSettings
from berth.components.gke.errors.advice import advice
from berth.components.gke.errors.failed_pool import FailedPool
from berth.components.gke.errors.hook import error_hook
from tests.unit.cases import table
from tests.unit.recording import run

ZONE = "us-central1-b"
CASES = table(__file__, "advice.yaml")
QUOTA, MISSING = (CASES[name]["error"] for name in ("a quota of GPUs", "a missing reservation"))
TWO_QUOTAS = (
    "error creating NodePool: googleapi: Error 403: \n\t(1) insufficient regional quota to satisfy"
    " request: resource \"CPUS\": request requires '72.0' and is short '48.0'. project has a quota"
    " of '24.0' with '24.0' available.\n\t(2) insufficient regional quota to satisfy request:"
    " resource \"IN_USE_ADDRESSES\": request requires '9.0' and is short '1.0'. project has a quota"
    " of '8.0' with '8.0' available., forbidden"
)


def failed_pool(capacity: Any = "on-demand", machine: str = "a4-highgpu-8g") -> FailedPool:
    settings = PoolSettings.model_validate(
        {"machineType": machine, "nodes": 2, "capacity": capacity}
    )
    return FailedPool("train", settings, NodePlace("some-project", "prod", ZONE, (ZONE,)))


@pytest.mark.parametrize("name", CASES)
def test_what_an_error_means(name: str) -> None:
    case = CASES[name]
    pool = failed_pool(case["capacity"]) if "capacity" in case else None
    assert advice(case["error"], "some-project", pool) == [case["advice"]]


def test_each_quota_is_said_once() -> None:
    lines = advice(TWO_QUOTAS + TWO_QUOTAS, "some-project", failed_pool(machine="n2-standard-16"))
    assert [line.split(":")[0] for line in lines] == ["quota CPUS", "quota IN_USE_ADDRESSES"]
    assert "reservation" not in lines[0], "a pool without GPUs has no use for one"


@pytest.mark.parametrize(
    "error",
    ["", 'googleapi: Error 400: Network "default" does not exist., badRequest', MISSING, "timeout"],
)
def test_an_unknown_error_is_left_as_it_is(error: str) -> None:
    assert advice(error, "some-project", failed_pool("spot")) == []


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
        failure = pulumi.ErrorHookArgs(
            "urn", "", "train", "type", failed_operation="create", errors=[error, "older"]
        )
        again = error_hook(component, "train", "some-project", failed_pool())(failure)
        assert not isinstance(again, bool)
        assert await again is False, "the provider has tried long enough"
        assert [text for text, _ in output] == advice(error, "some-project", failed_pool())
        assert len(output) == lines
        assert all(where == urn for _, where in output)

    run(program, "some")
