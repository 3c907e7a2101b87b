import re
from typing import Any

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.lab.plugins.gcp.errors import ProviderError

from .conftest import (
    CLUSTER,
    POOL,
    ZONE,
    Simulated,
    cluster_inputs,
    pool_inputs,
)


@pytest.mark.parametrize(
    ("config", "more", "text"),
    [
        (
            {"machineType": "a5-large"},
            {},
            f'Machine type with name "a5-large" does not exist in zone "{ZONE}".',
        ),
        ({}, {"nodeLocations": ["us-central1-x"]}, 'Location "us-central1-x" does not exist.'),
    ],
)
def test_a_pool_of_machines_that_the_lab_lacks(
    simulated: Simulated, config: dict[str, Any], more: dict[str, Any], text: str
) -> None:
    with pytest.raises(ProviderError) as refusal:
        simulated.create(POOL, **pool_inputs(simulated.cluster(), config, **more))
    assert (
        str(refusal.value) == f"Error creating NodePool: googleapi: Error 400: {text}, badRequest"
    )
    assert not simulated.store.list("nodePools")


def test_a_protected_cluster_stays(simulated: Simulated) -> None:
    cluster = simulated.cluster(deletionProtection=True)
    with pytest.raises(ProviderError, match="deletion_protection is set to true"):
        simulated.delete(CLUSTER, cluster)
    assert simulated.store.get(cluster)


def test_the_ray_operator_add_on_brings_rays_kinds(simulated: Simulated) -> None:
    network = simulated.network()
    off = cluster_inputs(
        network,
        simulated.subnetwork(network),
        addonsConfig={"rayOperatorConfigs": [{"enabled": False}]},
    )
    cluster = simulated.create(CLUSTER, **off)
    assert simulated.fleet.defined == 0
    simulated.update(
        CLUSTER, cluster, **off | {"addonsConfig": {"rayOperatorConfigs": [{"enabled": True}]}}
    )
    assert simulated.fleet.defined == 1


def test_a_lab_has_one_control_plane(simulated: Simulated) -> None:
    first = simulated.cluster()
    network = simulated.network("second")
    subnetwork = simulated.subnetwork(network, "second")
    with pytest.raises(
        ProviderError, match=f"this lab has one control plane, and it is {first}"
    ) as refusal:
        simulated.create(CLUSTER, **cluster_inputs(network, subnetwork, name="other"))
    # The commands that it names are there.
    commands = re.findall(r"berth (lab \w+)((?: --[-\w]+)+)", str(refusal.value))
    assert [name for name, _ in commands] == ["lab up", "lab env"]
    for command in commands:
        shown = CliRunner().invoke(app, [*command[0].split(), "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0
        assert all(option in shown.output for option in command[1].split())
