"""States of earlier versions (record_states.py): an update replaces nothing.

It restarts nothing but what the changelog names.
"""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.components.hardware.versions import CHART_MIRROR
from tests.lab.conftest import Lab
from tests.lab.record_states import STATES, project_of
from tests.unit.cases import table

pytestmark = pytest.mark.lab

RAY = ("kubernetes:ray.io/v1:RayCluster", "kubernetes:ray.io/v1:RayService")
CHANGED_IN_PLACE: dict[str, str] = table(__file__, "changed_in_place.yaml")
"""Types of resources that may change, with words of the changelog about it."""
RESTARTED: dict[str, dict[str, str]] = table(__file__, "restarted.yaml")
"""RayClusters and RayServices that restart, by version and stack, with words of the changelog."""
ALWAYS = {f"a0830ce/{stack}" for stack in ("lab", "alice")}
"""States of tests that are not long."""


def only_annotated(step: dict[str, Any]) -> bool:
    """Whether an object changes in its annotations alone."""
    paths = step.get("detailedDiff") or {"": ""}
    return step["op"] == "update" and all(path.startswith("metadata.annotations") for path in paths)


def recorded() -> Iterator[Any]:
    """Recorded states by version and stack, as parameters."""
    for path in sorted(STATES.glob("*/*.json.gz")):
        name = str(path.relative_to(STATES)).removesuffix(".json.gz")
        yield pytest.param(
            *name.split("/"), id=name, marks=[] if name in ALWAYS else [pytest.mark.long]
        )


@pytest.mark.parametrize(("version", "stack"), [*recorded()])
def test_an_update_of_a_state_that_exists_is_in_place(
    lab: Lab, tmp_path: Path, version: str, stack: str
) -> None:
    project = project_of(tmp_path / "project", lab)
    states = STATES / version
    for name in dict.fromkeys(["lab", stack]):  # the engineer's own stack stands on the lab's
        shutil.copy(states / f"{name}.yaml", project.folder / "stacks" / f"Pulumi.{name}.yaml")
        lab.run(["pulumi", "stack", "init", name, "--no-select"], cwd=project.folder)
        state = gzip.decompress((states / f"{name}.json.gz").read_bytes()).decode()
        state = state.replace(CHART_MIRROR, lab.env[CHART_MIRROR])
        lab.run(["pulumi", "stack", "import", "-s", name], cwd=project.folder, stdin=state)
    plan = json.loads(project.run("pulumi", "preview", "-s", stack, "--json").stdout)
    changes = [(step["urn"].split("::")[2].rpartition("$")[2], step) for step in plan["steps"]]
    changes = [(kind, step) for kind, step in changes if step["op"] not in {"same", "read"}]
    unnamed = {kind for kind, _ in changes} - CHANGED_IN_PLACE.keys()
    assert not unnamed, "the changelog names what changes (changed_in_place.yaml)"
    restarted = {
        step["urn"].rpartition("::")[2]
        for kind, step in changes
        if kind in RAY and not only_annotated(step)
    }
    assert restarted == RESTARTED.get(f"{version}/{stack}", {}).keys()
    resources = json.loads(state)["deployment"]["resources"]
    assert sum(plan["changeSummary"].values()) >= len(resources) - 5, (
        "the plan looks at all of them"
    )
    replaced = [
        step["urn"]
        for step in plan["steps"]
        if step["op"] not in {"same", "read", "update", "create"}
    ]
    # Pulumi replaces a ConfigMap whose data changes; a starting pod of the keeper waits for it.
    # What restarts has its programs in one that is named by them.
    fine = ("ConfigMap::keeper", *(f"ConfigMap::{name}-nested-containers-" for name in restarted))
    assert [urn for urn in replaced if not any(name in urn for name in fine)] == []
