"""Shipped stacks on Google's own provider: they come up, stay without drift, and go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from berth.components.gke.errors.already_there import import_remedy
from tests.provider.edits import Environment, bring_up, shipped
from tests.provider.engine import preview, verdict_on
from tests.provider.plugin import Provider, There, urn

pytestmark = pytest.mark.provider
GRANT = "gcp:projects/iAMMember:IAMMember"
"""Type of grants of roles: no API refuses one that is there already."""


@pytest.fixture(scope="module", params=sorted(shipped()))
def environment(request: pytest.FixtureRequest, provider: Provider) -> Environment:
    made = bring_up(provider, request.param, shipped()[request.param])
    made.enter(provider)
    return made


def test_a_stack_that_is_up_has_no_changes(environment: Environment, provider: Provider) -> None:
    verdicts = preview(provider, environment.resources, environment.stack, environment.settings)

    assert verdicts == {}
    for resource in environment.resources.values():
        verdict = verdict_on(provider, resource.there, resource.there.inputs)
        assert verdict.difference, verdict
        assert verdict.difference.kinds == {}, resource.there.id
    assert provider.apis.unanswered == []


def test_a_refresh_finds_no_drift(environment: Environment, provider: Provider) -> None:
    for resource in environment.resources.values():
        there = provider.read(resource.there)

        assert there is not None, resource.there.id
        verdict = verdict_on(provider, there, resource.there.inputs)
        assert verdict.difference, verdict
        assert verdict.difference.kinds == {}, resource.there.id


def test_an_import_by_the_id_of_the_advice_replaces_nothing(
    environment: Environment, provider: Provider
) -> None:
    for resource in environment.resources.values():
        there = resource.there
        if there.type == GRANT:
            continue
        imported = provider.read(There(there.type, there.name, _id_of_advice(there), {}, {}))

        assert imported is not None, resource.there.id
        imported = replace(imported, ignored=resource.there.ignored)
        verdict = verdict_on(provider, imported, resource.there.inputs)
        assert verdict.difference, verdict
        assert not verdict.difference.replaces, (resource.there.id, verdict.difference)


def test_a_stack_goes_without_a_rest(environment: Environment, provider: Provider) -> None:
    for resource in reversed([*environment.resources.values()]):
        provider.delete(_unprotected(provider, resource.there))

    rest = [path for path in provider.apis.objects if not path.endswith("/iamPolicy")]
    assert [path for path in rest if "operation" not in path and "instanceGroup" not in path] == []


def _id_of_advice(there: There) -> str:
    """Return the id that berth's advice gives for a resource that is there already."""
    error = f"Error: The resource '{there.id}' already exists, alreadyExists"
    words = import_remedy(error, urn(there.type, there.name), urn("berth:gke:Network", "it"))
    return words.split(" -s ")[0].rpartition(" ")[2] if words else there.id


def _unprotected(provider: Provider, there: There) -> There:
    """Return a resource after its protection is off."""
    if not there.inputs.get("deletionProtection"):
        return there
    inputs = there.inputs | {"deletionProtection": False}
    return replace(there, inputs=inputs, outputs=provider.update(there, inputs))
