"""Effects of planned steps on running workloads (effects.yaml)."""

from typing import Any

import pytest

from berth.components.operators import GibSettings, gib
from berth.components.plan.plan import Event
from tests.unit.cases import over, says, table
from tests.unit.components.plan.plans import (
    POOL,
    Inputs,
    edited,
    effects,
    event,
    pool,
    report,
    same,
    texts_of,
    who,
)

TABLE = table(__file__, "effects.yaml")
RESOURCES = TABLE["resources"]
CASES = TABLE["cases"]
OPERATIONS = ("update", "delete", "delete-replaced", "replace")
UPGRADE = {"upgradeSettings": {"maxSurge": 0, "maxUnavailable": 1}}


def with_groups(inputs: Inputs, groups: dict[str, int]) -> Inputs:
    """A RayCluster with these numbers of workers by group, each like its own."""
    (group,) = inputs["spec"]["workerGroupSpecs"]
    specs = [
        group | {"groupName": name, "replicas": count, "maxReplicas": count}
        for name, count in groups.items()
    ]
    return over(inputs, {"spec": {"workerGroupSpecs": specs}})  # type: ignore[no-any-return]


def steps_of(case: dict[str, Any]) -> list[Event]:
    """The step of a case, and the resources that stay as they are."""
    (name,) = {case[operation] for operation in OPERATIONS if operation in case}
    resource = RESOURCES[name]
    old = over(resource["inputs"], case.get("was", {}))
    before, after = (
        (with_groups(old, groups) for groups in case["groups"]) if "groups" in case else (old, old)
    )
    new = over(after, case.get("edit", {}))
    steps = []
    for operation in (operation for operation in OPERATIONS if operation in case):
        after = None if "delete" in operation else new
        said = {path: {"diffKind": "update", "inputDiff": False} for path in case.get("diff", [])}
        details: dict[str, Any] = {"detailedDiff": said} if said else {}
        step = event(
            operation, resource["type"], name, before, after, resource.get("outputs"), **details
        )
        step["resourcePreEvent"]["metadata"]["old"]["retainOnDelete"] = case.get("retained", False)
        steps.append(step)
    around = [other for other in case.get("around", ["train", "alice"]) if other != name]
    return steps + [
        same(RESOURCES[other]["type"], other, RESOURCES[other]["inputs"]) for other in around
    ]


def live_of(case: dict[str, Any]) -> list[Inputs]:
    """RayClusters of the cluster: names of resources, or edits by name."""
    edits = [{item: {}} if isinstance(item, str) else item for item in case.get("live", [])]
    return [over(RESOURCES[name]["inputs"], edit) for item in edits for name, edit in item.items()]


@pytest.mark.parametrize("name", CASES)
def test_effects(name: str) -> None:
    case = CASES[name]
    found = effects(*steps_of(case), live=live_of(case))
    assert [level for level, _ in texts_of(found)] == [level for level, _ in case["effects"]]
    for effect, (_, words) in zip(found, case["effects"], strict=True):
        assert says(effect.text, words), effect.text
    if "who" in case:
        assert who(found)[: len(case["who"])] == case["who"]
    if "all_go" in case:
        assert [effect.all_go for effect in found] == case["all_go"]
    if "gpus" in case:
        away = [gone for effect in found for gone in effect.gpus_away]
        assert [[*gone.gpus, gone.back] for gone in away] == case["gpus"]


@pytest.mark.parametrize(("edit", "words"), TABLE["recreated"])
def test_edits_that_recreate_every_node(edit: dict[str, Any], words: str) -> None:
    found = effects(*steps_of({"update": "train", "was": UPGRADE, "edit": edit}))
    text = (
        f"pool train: for a change of {words} GKE recreates every node, 1 at a time without spare"
        " ones, and evicts the pods on it"
    )
    assert texts_of(found) == [("destroys", text)]
    assert who(found) == [["berth alice (2 pods, 16 × B200)"]]
    assert [(away.gpus, away.back) for away in found[0].gpus_away] == [((8, 8), True)]


@pytest.mark.parametrize(("operation", "of_type", "level"), TABLE["types"])
def test_by_type(operation: str, of_type: str, level: str | None) -> None:
    old = None if operation == "create" else {"name": "x"}
    new = None if operation == "delete" else {"name": "y"}
    found = effects(event(operation, of_type, "x", old, new))
    assert [effect.level.word for effect in found] == ([level] if level else [])


def test_where_the_cluster_could_not_be_asked_somebody_may_be_there() -> None:
    before = pool() | UPGRADE
    step = event("update", POOL, "train", before, edited(before, nodeConfig__diskSizeGb=500))
    assert report(step).level.word == "disturbs"
    unasked = report(step, asked=False, not_asked="no answer")
    assert (unasked.level.word, unasked.partly_asked) == ("destroys", "no answer")


def test_registrations_of_providers_and_components_are_nothing() -> None:
    provider = event("replace", "pulumi:providers:kubernetes", "cluster", {}, {})
    component = event("delete", "berth:index:Berth", "alice", {}, None, custom=False)
    assert report(provider, component).verdict == "nothing"


def installer(script: str) -> Inputs:
    manifest: dict[str, Any] = gib.installer_manifest(GibSettings(), ["train"])
    manifest["spec"]["template"]["spec"]["initContainers"][0]["args"] = [script]
    return manifest


@pytest.mark.parametrize(
    ("before", "after", "leaves"),
    [("--install-nccl", "", True), ("", "cp", False), ("", "--install-nccl", False)],
)
def test_an_installer_of_gib_that_installs_no_nccl_any_more_leaves_the_old_one(
    before: str, after: str, *, leaves: bool
) -> None:
    step = event(
        "update",
        "kubernetes:apps/v1:DaemonSet",
        "nccl-rdma-installer",
        installer(before),
        installer(after),
    )
    (found,) = effects(step)
    assert ("the NCCL that the installer put there before stays" in found.text) is leaves
