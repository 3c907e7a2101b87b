"""Remedy for a pool or cluster that a killed update left in Google Cloud."""

import shlex
from typing import Any

import pulumi
import pytest
from pulumi.runtime.settings import get_engine

from berth.components.gke.errors.already_there import import_remedy
from berth.components.gke.errors.hook import error_hook
from tests.unit.components.gke.errors.test_advice import failed_pool
from tests.unit.recording import run

PARENT = "urn:pulumi:lab::berth::berth:gke:NodePool::extra"
URN = "urn:pulumi:lab::berth::berth:gke:NodePool$gcp:container/nodePool:NodePool::extra"
PROVIDER = "berth-provider=urn:pulumi:lab::berth::pulumi:providers:gcp::google"
POOL = "projects/berth-lab/locations/us-central1-b/clusters/lab/nodePools/extra"

# As the simulated cloud, the provider's own code and GKE's API word it.
ERRORS = [
    (
        f"Error creating node pool: googleapi: Error 409: The resource '{POOL}' already exists,"
        " alreadyExists"
    ),
    f"resource - {POOL} - already exists",
    f"googleapi: Error 409: Already exists: {POOL.replace('locations', 'zones')}., alreadyExists",
]


@pytest.mark.parametrize("error", ERRORS)
def test_a_pool_that_is_there_already_is_imported(error: str) -> None:
    text = import_remedy(error, URN, PARENT, "stacks/Pulumi.lab.yaml:14")
    assert "(stacks/Pulumi.lab.yaml:14) is in Google Cloud already" in text
    assert shlex.split(text.partition("run this again: ")[2]) == [
        *(
            "pulumi",
            "import",
            "gcp:container/nodePool:NodePool",
            "extra",
            "berth-lab/us-central1-b/lab/extra",
        ),
        *("-s", "lab", "--parent", f"berth-component={PARENT}", "--provider", PROVIDER),
        *("--protect=false", "--generate-code=false", "--yes"),
    ]


@pytest.mark.parametrize(
    ("path", "given"),
    [
        (
            "projects/p/zones/us-central1-b/clusters/lab",
            "projects/p/locations/us-central1-b/clusters/lab",
        ),
        (
            "projects/p/regions/us-central1/subnetworks/lab",
            "projects/p/regions/us-central1/subnetworks/lab",
        ),
    ],
)
def test_ids_are_those_that_the_provider_imports_by(path: str, given: str) -> None:
    assert f" {given} -s lab " in import_remedy(
        f"googleapi: Error 409: The resource '{path}' already exists", URN, PARENT
    )


@pytest.mark.parametrize(
    "error",
    [
        "",
        "Error 404: The resource 'projects/p/global/networks/x' was not found",
        "service account exists",
    ],
)
def test_another_error_has_no_such_remedy(error: str) -> None:
    assert import_remedy(error, URN, PARENT) == ""


def test_an_update_says_it_on_the_pools_component(monkeypatch: pytest.MonkeyPatch) -> None:
    output: list[Any] = []

    async def program() -> None:
        monkeypatch.setattr(get_engine(), "Log", lambda request: output.append(request.message))
        component = pulumi.ComponentResource("berth:gke:NodePool", "extra")
        parent = await component.urn.future()
        failure = pulumi.ErrorHookArgs(
            URN, "", "extra", "type", failed_operation="create", errors=[ERRORS[0]]
        )
        again = error_hook(component, "extra", "berth-lab", failed_pool())(failure)
        assert not isinstance(again, bool)
        assert await again is False
        assert output[-1] == import_remedy(ERRORS[0], URN, str(parent))

    run(program, "lab")
