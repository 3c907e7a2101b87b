"""Edits on Google's own provider: its verdicts are those recorded, and nothing crashes it.

`make test-provider RECORD=1` writes the verdicts again, and the requests of tests/google.
tests/provider/test_verdicts.py compares the verdicts with what berth and the lab say.
"""

from __future__ import annotations

import os

import pytest
from pulumi.runtime.rpc import UNKNOWN

from tests.google import requests
from tests.provider.edits import Environment, bring_up, environments_with_all_fields
from tests.provider.engine import verdict_on
from tests.provider.plugin import Provider
from tests.provider.recorder import Recording
from tests.provider.verdicts import line_of, read, write

pytestmark = pytest.mark.provider


@pytest.fixture(scope="module")
def environments(provider: Provider) -> list[Environment]:
    return [bring_up(provider, *environment) for environment in environments_with_all_fields()]


def test_outputs_that_are_not_known_yet_crash_nothing(
    environments: list[Environment], provider: Provider
) -> None:
    """The engine takes what comes from a resource that is deleted first as unknown."""
    panics = []
    for environment in environments:
        environment.enter(provider)
        for key, resource in environment.resources.items():
            needed = [name for name, needs in resource.needs.items() if needs]
            groups = [[name] for name in needed]
            groups.append(needed)
            for names in groups:
                inputs = resource.there.inputs | dict.fromkeys(names, UNKNOWN)
                if verdict_on(provider, resource.there, inputs).panic:
                    panics.append((environment.stack, *key, *names))

    assert panics == []


def test_the_verdicts_are_those_recorded(
    environments: list[Environment], provider: Provider
) -> None:
    recording = Recording(provider, environments)
    recording.record()

    assert recording.panics == []
    assert provider.apis.unanswered == []
    if os.environ.get("RECORD"):
        write(recording.bases, recording.edits)
    recorded = {edit.name: line_of(edit) for edit in read()[1]}
    now = {edit.name: line_of(edit) for edit in recording.edits}
    other = sorted(now.keys() ^ recorded.keys())
    assert other == [], "other edits than recorded: make test-provider RECORD=1"
    assert now == recorded


def test_the_fields_that_the_provider_sends_are_recorded(provider: Provider) -> None:
    if os.environ.get("RECORD"):
        requests.write(provider.apis.sent)
    assert list(requests.unrecorded(provider.apis.sent)) == []
