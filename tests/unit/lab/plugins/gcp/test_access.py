from __future__ import annotations

import pytest

from berth.lab.plugins.provider import ProviderError

from .conftest import NETWORK, PROJECT, Simulated


def projects(simulated: Simulated, text: str) -> None:
    simulated.store.folder.mkdir(exist_ok=True)
    (simulated.store.folder / "conditions.yaml").write_text(f"projects: {text}")


def test_an_api_that_is_not_enabled(simulated: Simulated) -> None:
    projects(simulated, '{"*": {services: [container.googleapis.com]}}')
    with pytest.raises(ProviderError) as refusal:
        simulated.network()
    assert str(refusal.value).startswith(
        "Error creating Network: googleapi: Error 403: Compute Engine API has not been used in "
        f"project {PROJECT} before "
        "or it is disabled. Enable it by visiting "
    )
    assert str(refusal.value).endswith(", accessNotConfigured")
    assert simulated.store.all() == []


def test_permissions_are_asked_for_each_verb(simulated: Simulated) -> None:
    services = "services: [compute.googleapis.com, container.googleapis.com]"
    projects(simulated, f'{{"*": {{{services}, permissions: [compute.networks.create]}}}}')
    network = simulated.network()
    with pytest.raises(ProviderError) as refusal:
        simulated.delete(NETWORK, network)
    assert str(refusal.value) == (
        f"Error deleting Network: googleapi: Error 403: Required 'compute.networks.delete' permission for '{network}', "
        "forbidden"
    )
    with pytest.raises(ProviderError, match=r"Required 'compute\.networks\.get' permission"):
        simulated.read(NETWORK, network)
