"""Effects of edits in the reference: every setting has one, and it is what the preview says."""

from __future__ import annotations

import pytest
import yaml

from berth.cli.repository.check import schema
from berth.cli.verbs.explain.settings import effects, find
from docs.edits import ENVIRONMENTS, PHRASES, Fleet, effect_of, fleets, settings

SCHEMA = schema()


def test_every_setting_has_an_effect_of_an_edit() -> None:
    known = effects()
    assert known["effects"] == PHRASES
    phrases = {path: (known["settings"].get(path) or "").split(" or ") for path in (found.path for found in settings())}
    unknown = {path: found for path, found in phrases.items() if not set(found) <= set(PHRASES)}
    if unknown:
        pytest.fail(f"run `make effects`: {unknown}", pytrace=False)


def test_no_effect_is_of_a_setting_that_is_gone() -> None:
    for path in effects()["settings"]:
        assert find(SCHEMA, path.replace("[]", "")).path == path


@pytest.mark.parametrize(
    ("environment", "path", "effect"),
    [
        ("berths", "engineers.worker.memory", "restarts the RayCluster"),
        ("berths", "engineers.lifecycle.idle", "in place"),
        ("berths", "engineers.wait.timeout", "nothing that runs"),
        ("berths", "pools.diskSizeGb", "recreates the nodes of the pool"),
        ("berths", "pools.maxPodsPerNode", "recreates the node pool"),
        ("workloads", "services.serveConfig", "redeploys the applications"),
        ("elastic", "jobs.entrypoint", "runs the job again"),
    ],
)
def test_an_effect_is_what_the_preview_says(environment: str, path: str, effect: str) -> None:
    setting = find(SCHEMA, path)
    assert setting.effect == effect
    values = yaml.safe_load(ENVIRONMENTS.read_text(encoding="utf-8"))[environment]
    assert effect_of(setting, {environment: Fleet.of(values)}) == effect


@pytest.mark.long
def test_all_effects_are_what_the_preview_says() -> None:
    environments = fleets()
    found = {setting.path: effect_of(setting, environments) for setting in settings()}
    wrong = {path: effect for path, effect in found.items() if effects()["settings"].get(path) != effect}
    if wrong:
        pytest.fail(f"cli/verbs/explain/effects.json is out of date: run `make effects`: {wrong}", pytrace=False)
