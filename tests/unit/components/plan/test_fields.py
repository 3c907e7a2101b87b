"""Effects in the preview of an edit in place of every field of pools and clusters, and lines
about values that stay.
"""

import io
import json
import re
from typing import Any

import pytest
from rich.console import Console

from berth.cli.pulumi.preview import lines
from berth.cli.pulumi.preview.document import report_document
from berth.cli.pulumi.preview.markdown import report_markdown
from berth.cli.pulumi.preview.tree import report_tree
from berth.components.gke.effects import cluster as gke_cluster
from berth.components.gke.effects.node_pool import RECREATING_FIELDS, UNNOTICED_FIELDS
from berth.components.gke.effects.pool_size import SIZE_FIELDS
from berth.components.gke.effects.stays import ADVICE
from berth.components.gke.provider_fields import CLUSTER, NODE_POOL, resource_fields
from berth.components.plan.paths import below
from berth.lab.home import CLONE
from berth.stacks.preview.report import Report
from tests.unit.cases import table
from tests.unit.components.plan.plans import (
    RAY,
    Inputs,
    effects,
    event,
    pool,
    ray,
    report,
    same,
    texts_of,
)

POOL_FIELDS = {
    path: fact for path, fact in resource_fields()[NODE_POOL].fields.items() if not fact.replaces
}
CLUSTER_FIELDS = {
    path: fact
    for path, fact in resource_fields()[CLUSTER].fields.items()
    if not fact.replaces
    and not below(path, "nodeConfig")
    and path not in ("minMasterVersion", "deletionProtection")
}


def changed(token: str, path: str) -> list[tuple[str, str]]:
    """Levels and texts of the effects of an edit in place, with a RayCluster on the pool."""
    old = pool()
    new = pool(machineType="a4-highgpu-4g") if path == "nodeConfig.machineType" else pool()
    step = event("update", token, "train", old, new, detailedDiff={path: {"diffKind": "update"}})
    around = [same(NODE_POOL, "train", pool())] if token == CLUSTER else []
    return texts_of(effects(step, *around, same(RAY, "alice", ray("alice"))))


def test_edits_of_a_pool_recreate_nodes_where_the_provider_says_so() -> None:
    wrong = []
    for path, fact in POOL_FIELDS.items():
        found = changed(NODE_POOL, path)
        word = next(
            (word for prefix, word in RECREATING_FIELDS.items() if below(path, prefix)), path
        )
        guess = (
            " (berth does not know whether it does, and assumes the worst)"
            if fact.nodes == "unknown"
            else ""
        )
        pace = "1 at a time with 1 spare node, and evicts the pods on it"
        text = f"pool train: for a change of {word} GKE recreates every node{guess}, {pace}"
        unnoticed = fact.nodes == "no" or path in UNNOTICED_FIELDS
        if found != ([] if unnoticed else [("destroys", text)]):
            wrong.append((path, found))
    assert wrong == []


def test_edits_of_a_cluster_recreate_nodes_where_the_provider_says_so() -> None:
    wrong = []
    for path, fact in CLUSTER_FIELDS.items():
        found = changed(CLUSTER, path)
        quiet = any(below(path, prefix) for prefix in gke_cluster.UNNOTICED_FIELDS)
        known = any(below(path, prefix) for prefix in gke_cluster.DISTURBING_FIELDS)
        levels = [] if quiet else ["disturbs"] if known or fact.nodes == "no" else ["destroys"]
        # An endpoint has a second effect, on the networks that reach it.
        if list(dict.fromkeys(level for level, _ in found)) != levels:
            wrong.append((path, found))
        if levels == ["destroys"]:
            assert ("does not know whether" in found[0][1]) is (fact.nodes == "unknown"), path
    assert wrong == []


@pytest.mark.parametrize("token", [NODE_POOL, CLUSTER])
def test_the_worst_is_said_of_a_field_of_which_nothing_is_known(token: str) -> None:
    ((level, text),) = changed(token, "newThing")
    assert (level, "(berth does not know whether it does, and assumes the worst)" in text) == (
        "destroys",
        True,
    )


def test_an_edit_of_which_much_is_known_is_no_guess() -> None:
    both = {"nodeConfig.diskSizeGb": {"diffKind": "update"}, "newThing": {"diffKind": "update"}}
    step = event("update", NODE_POOL, "train", pool(), pool(), detailedDiff=both)
    ((_, text),) = texts_of(effects(step))
    assert "the size of the boot disk and newThing GKE recreates every node, 1 at a time" in text


@pytest.mark.parametrize(
    "path", ["nodeDrainConfigs", "nodeDrainConfigs[0].pdbTimeoutDuration", "management"]
)
def test_rules_for_the_next_upgrade_touch_no_node(path: str) -> None:
    assert changed(NODE_POOL, path) == []


def test_the_size_of_a_pool_is_no_edit_of_its_nodes() -> None:
    assert {path: POOL_FIELDS[path].nodes for path in SIZE_FIELDS} == dict.fromkeys(
        SIZE_FIELDS, "no"
    )


# Values that stay


def staying(token: str, old: Inputs, new: Inputs, operation: str = "same") -> Report:
    return report(event(operation, token, "train", old, new))


PAGE = CLONE / "docs/preview.md"
LEFT_OUT: list[list[Any]] = table(__file__, "left_out.yaml")


def without(inputs: Inputs) -> Inputs:
    """The same inputs without their only value."""
    return {"nodeConfig": {}} if "nodeConfig" in inputs else {}


@pytest.mark.parametrize(("token", "old"), LEFT_OUT)
def test_a_value_that_is_left_out_is_said_to_stay(token: str, old: Inputs) -> None:
    for operation in ("same", "update"):
        found = staying(token, old, without(old), operation)
        (stay,) = found.stays
        assert stay.way == ADVICE[token][stay.path]
        (line,) = lines.report_notes(found)
        assert f" train keeps {stay.path} = " in line
        assert line.endswith(f"which the settings no longer ask for; {stay.way}.")


def test_the_document_for_programs_has_the_keys_that_its_page_names() -> None:
    token, old = LEFT_OUT[0]
    (stay,) = report_document(staying(token, old, without(old)))["stays"]
    (row,) = re.findall(
        r"^\| `stays\[\]` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert list(stay) == re.findall(r"`(\w+)`", row)


def test_every_way_out_is_shown() -> None:
    shown = {(token, staying(token, old, without(old)).stays[0].path) for token, old in LEFT_OUT}
    assert shown == {(token, path) for token, fields in ADVICE.items() for path in fields}


@pytest.mark.parametrize(("old", "new", "operation"), table(__file__, "replaced_fields.yaml"))
def test_what_goes_or_is_replaced_does_not_stay(old: Inputs, new: Inputs, operation: str) -> None:
    assert staying(NODE_POOL, old, new, operation).stays == []


def test_the_last_labels_for_bills_make_no_node_anew_since_nothing_is_sent() -> None:
    old = pool(resourceLabels={"owner": "ml"})
    new = pool()
    found = report(event("update", NODE_POOL, "train", old, new))
    assert [effect.text for change in found.changes for effect in change.effects] == []
    assert [stay.path for stay in found.stays] == ["nodeConfig.resourceLabels"]


def test_what_stays_is_in_every_rendering() -> None:
    found = staying(NODE_POOL, {"maxPodsPerNode": 32}, {})
    assert found.verdict == "nothing"
    (line,) = lines.report_notes(found)
    shown_there = io.StringIO()
    Console(width=400, file=shown_there).print(report_tree(found))
    assert line in shown_there.getvalue()
    assert line.replace("`", "\\`") in report_markdown(found)
    shown: dict[str, Any] = json.loads(json.dumps(report_document(found)))["stays"][0]
    assert (shown["path"], shown["value"], shown["name"]) == ("maxPodsPerNode", 32, "train")
