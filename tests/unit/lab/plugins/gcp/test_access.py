from __future__ import annotations

import pytest

from berth.lab.plugins.provider import ProviderError

from .conftest import CLUSTER, NETWORK, POOL, PROJECT, Simulated, pool_inputs


def projects(simulated: Simulated, text: str) -> None:
    simulated.store.folder.mkdir(exist_ok=True)
    (simulated.store.folder / "conditions.yaml").write_text(f"projects: {text}")


def test_an_api_that_is_not_enabled(simulated: Simulated) -> None:
    projects(simulated, '{"*": {services: [container.googleapis.com]}}')
    with pytest.raises(ProviderError) as refusal:
        simulated.network()
    assert str(refusal.value).startswith(
        f"Error creating Network: googleapi: Error 403: Compute Engine API has not been used in project {PROJECT} before "
        "or it is disabled. Enable it by visiting "
    )
    assert str(refusal.value).endswith(", accessNotConfigured")
    assert simulated.store.all() == []


def test_a_project_that_is_not_there(simulated: Simulated) -> None:
    projects(simulated, "{other: {services: [compute.googleapis.com]}}")
    with pytest.raises(ProviderError, match=rf"googleapi: Error 404: The resource 'projects/{PROJECT}' was not found"):
        simulated.network()


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


def test_a_pool_is_a_part_of_its_cluster(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    services = "services: [compute.googleapis.com, container.googleapis.com]"
    projects(simulated, f'{{"*": {{{services}, permissions: [container.clusters.update]}}}}')
    simulated.create(POOL, **pool_inputs(cluster))
    with pytest.raises(ProviderError, match=r'Required "container\.clusters\.delete" permission\(s\) for "projects/'):
        simulated.delete(CLUSTER, cluster)
