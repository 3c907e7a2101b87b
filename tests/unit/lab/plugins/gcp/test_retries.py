"""HTTP 429 is a silence until the timeout, as with Google's own provider, and then an error."""

import pytest

from berth.lab.plugins.gcp.errors import GoogleApiError, ProviderError
from berth.lab.plugins.gcp.retries import until_accepted

from .conftest import POOL, Hurried, Simulated, pool_inputs
from .test_supply import conditions, reservation, reserved

FULL = {
    "reference": "a4",
    "pool": "train",
    "zone": "us-central1-b",
    "asked": 4,
    "short": 2,
    "machine_type": "a4-highgpu-8g",
}
PROVIDER_DEFAULT = 7200
# Seconds after the first request at which the real provider asks an API that answers 429, for a
# timeout of 240 s.
MEASURED = (0, 0.6, 1.6, 3.1, 5.6, 9.7, 16.2, 26.8, 43.9, 71.4, 116.0, 120.5, 121.1, 122.1, 123.6)
MEASURED_LATER = (126.1, 130.2, 136.9, 147.8, 165.0, 192.6, 237.2)


def test_requests_are_made_when_the_real_provider_makes_them() -> None:
    clock = Hurried()
    made: list[float] = []

    def request() -> None:
        made.append(clock.now())
        raise GoogleApiError("reservation-full", **FULL)

    with pytest.raises(GoogleApiError, match="Error 429: Reservation does not have enough"):
        until_accepted(request, 240, clock)
    assert made == pytest.approx([*MEASURED, *MEASURED_LATER], abs=2)


@pytest.mark.parametrize("name", ["quota", "exists", "no-project"])
def test_another_refusal_comes_at_once(name: str) -> None:
    clock = Hurried()
    values: dict[str, object] = dict.fromkeys(("path", "name", "metric", "project"), "x")
    values |= dict.fromkeys(("asked", "short", "limit", "available"), 1)

    def request() -> None:
        raise GoogleApiError(name, **values)

    with pytest.raises(GoogleApiError):
        until_accepted(request, 240, clock)
    assert clock.pauses == []


@pytest.mark.parametrize(("timeout", "longest"), [(0, PROVIDER_DEFAULT), (600, 600)])
def test_a_full_reservation_refuses_a_new_pool_after_the_timeout(
    simulated: Simulated, timeout: float, longest: float
) -> None:
    cluster = simulated.cluster()
    conditions(simulated, reservation(count=1))
    inputs = pool_inputs(cluster, reserved(), nodeCount=2)
    with pytest.raises(ProviderError, match="Error creating NodePool: googleapi: Error 429"):
        simulated.create(POOL, timeout, **inputs)
    assert longest - 60 < simulated.clock.now() <= longest
    assert simulated.store.list("nodePools") == []


def test_a_reservation_that_becomes_free_in_time_gives_its_machines(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, reservation(count=1))
    pool = simulated.create(POOL, **pool_inputs(cluster, reserved()))

    def freed(now: float) -> None:
        if now > 60:
            conditions(simulated, reservation(count=2))

    simulated.clock.meanwhile = freed
    simulated.update(POOL, pool, **pool_inputs(cluster, reserved(), nodeCount=2))
    assert len(simulated.fleet.there) == 2
    assert simulated.clock.now() > 60


def test_a_quota_is_refused_at_once(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, "projects: {'*': {quotas: {us-central1: {NVIDIA_B200_GPUS: 0}}}}")
    with pytest.raises(ProviderError, match="Error 403: Insufficient regional quota"):
        simulated.create(POOL, **pool_inputs(cluster))
    assert simulated.clock.pauses == []
