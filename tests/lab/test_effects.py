"""Effects of edits in the reference are what the preview says, by the plugin's own differences.

No lab is started: the plugin compares inputs without a cluster.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from berth.cli.verbs.explain.effects import known_effects
from berth.cli.verbs.explain.settings import setting_at
from berth.stacks.load.schema import schema
from docs.edits import ENVIRONMENTS, Fleet, effect_of, fleets, settings
from docs.plugin import Plugin, running


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    """Schema of all settings."""
    return schema()


@pytest.fixture(scope="module")
def plugin() -> Iterator[Plugin]:
    with running() as found:
        yield found


def test_the_plugin_replaces_what_kubernetes_cannot_change(plugin: Plugin) -> None:
    old = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "n"}}
    hard = {"spec": {"hard": {"cpu": "1"}}}
    kind = "kubernetes:core/v1:ResourceQuota"
    assert plugin.differences(kind, old | hard, old | {"spec": {"hard": {"cpu": "1000m"}}}) == {}
    (found,) = plugin.differences(kind, old | hard, old | {"spec": {"hard": {"cpu": "2"}}}).items()
    assert (found[0], found[1].replaces) == ("spec.hard.cpu", False)
    renamed = plugin.differences(
        kind, old | hard, old | hard | {"metadata": {"name": "r", "namespace": "n"}}
    )
    assert [kind.replaces for kind in renamed.values()] == [True]


@pytest.mark.parametrize(
    ("environment", "path", "effect"),
    [
        ("berths", "engineers.worker.memory", "restarts the RayCluster"),
        ("berths", "engineers.lifecycle.idle", "in place"),
        ("berths", "engineers.wait.timeout", "nothing that runs"),
        ("berths", "pools.diskSizeGb", "recreates the nodes of the pool"),
        ("berths", "labels", "in place"),
        ("berths", "network.nodeRange", "recreates the cluster"),
        ("berths", "pools.maxPodsPerNode", "recreates the node pool"),
        ("workloads", "services.serveConfig", "redeploys the applications"),
        ("elastic", "jobs.entrypoint", "runs the job again"),
    ],
)
def test_an_effect_is_what_the_preview_says(
    plugin: Plugin, environment: str, path: str, effect: str, known: dict[str, Any]
) -> None:
    setting = setting_at(known, path)
    assert setting.effect == effect
    values = yaml.safe_load(ENVIRONMENTS.read_text(encoding="utf-8"))[environment]
    assert effect_of(setting, {environment: Fleet.of(values)}, plugin) == effect


@pytest.mark.long
def test_all_effects_are_what_the_preview_says(plugin: Plugin) -> None:
    environments = fleets()
    found = {setting.path: effect_of(setting, environments, plugin) for setting in settings()}
    wrong = {
        path: effect
        for path, effect in found.items()
        if known_effects()["settings"].get(path) != effect
    }
    if wrong:
        pytest.fail(
            f"cli/verbs/explain/effects.json is out of date: run `make effects`: {wrong}",
            pytrace=False,
        )
