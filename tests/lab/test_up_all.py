"""`berth up --all`: engineers' own stacks, many at once, against the real engine and API server.
Long: tests/unit/cli/test_update_many.py has each decision.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from berth.components.core.owner import namespace_of
from chaos.fleet import ENV, Ended, Fleet, launched
from tests.lab.conftest import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

NAMES = ["own-0", "own-1"]
UP = ("berth", "up", "-s", ENV, "--all", "--yes", "--json")


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """An environment that is up, with files of own stacks that are not."""
    with launched(tmp_path_factory.mktemp("all"), lab) as fleet:
        for name in NAMES:
            fleet.project.write(name, engineer={"environment": ENV})
        yield fleet


def results(ended: Ended) -> dict[str, str]:
    document: dict[str, Any] = json.loads(ended.stdout)
    return {own["stack"]: own["result"] for own in document["ownStacks"]}


def up(fleet: Fleet) -> set[str]:
    """Own stacks whose RayCluster is ready."""
    found = fleet.lab.get("rayclusters", "-A")["items"]
    ready = {
        item["metadata"]["name"]
        for item in found
        if (item.get("status") or {}).get("state") == "ready"
    }
    return ready & {*NAMES, "alice"}


def test_a_second_run_changes_nothing(fleet: Fleet) -> None:
    first = fleet.run("first", *UP)
    assert first.code == 0, first.text
    assert up(fleet) == {*NAMES, "alice"}
    before = fleet.project.versions()
    again = fleet.run("again", *UP)
    assert again.code == 0, again.text
    assert set(results(again).values()) == {"unchanged"}
    assert fleet.project.versions() == before


def test_a_stack_that_fails_does_not_stop_the_others(fleet: Fleet) -> None:
    """A namespace of somebody else refuses one stack; another one changes, and one is as it was."""
    fleet.project.up(NAMES[1])
    labels = {"berth/stack": "other", "berth/environment": "other", "berth/engineer": "taken"}
    metadata = {"name": namespace_of("taken"), "labels": labels}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    fleet.lab.run(["kubectl", "apply", "--server-side", "-f", "-"], stdin=json.dumps(namespace))
    fleet.project.write("taken", engineer={"environment": ENV})
    fleet.project.write(NAMES[0], engineer={"environment": ENV, "worker": {"memory": "3Gi"}})
    try:
        ended = fleet.run("failing", *UP, "--allow-destroy")
        found = results(ended)
        assert (ended.code, found["taken"], found[NAMES[0]]) == (1, "failed", "up"), ended.text
        assert set(found.values()) == {"failed", "up", "unchanged"}
        assert "failed: taken" in ended.stderr
    finally:
        fleet.project.run(
            "pulumi", "destroy", "-s", "taken", "--yes", "--skip-preview", check=False
        )
        (fleet.project.folder / "stacks" / "Pulumi.taken.yaml").unlink()
        fleet.lab.run(["kubectl", "delete", "namespace", namespace_of("taken")])
