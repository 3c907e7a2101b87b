"""Refusals of Google's APIs, as its provider passes them on."""

from __future__ import annotations

import pytest

from tests.provider.edits import Environment, bring_up, shipped
from tests.provider.plugin import Provider, ProviderError

pytestmark = pytest.mark.provider
POOL = "gcp:container/nodePool:NodePool"


@pytest.fixture(scope="module")
def environment(provider: Provider) -> Environment:
    return bring_up(provider, "solo", shipped()["solo"])


def test_a_forbidden_resize_is_an_error_at_once(
    environment: Environment, provider: Provider
) -> None:
    pool = environment.resources[POOL, "cpu"].there

    with (
        provider.apis.refuse("POST", r":setSize$", 403, "Insufficient quota to satisfy"),
        pytest.raises(ProviderError, match="Insufficient quota to satisfy"),
    ):
        provider.update(pool, pool.inputs | {"nodeCount": 7})


def test_a_failed_operation_is_an_error_at_once(
    environment: Environment, provider: Provider
) -> None:
    pool = environment.resources[POOL, "cpu"].there

    with (
        provider.apis.fail("POST", r"/nodePools$", "Reservation has no machines left"),
        pytest.raises(ProviderError, match="Reservation has no machines left"),
    ):
        provider.create(pool.type, "other", pool.inputs | {"name": "other"})
