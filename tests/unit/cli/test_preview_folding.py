"""Folding of alike changes in the tree and the comment of a preview; losses are never folded."""

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO

from rich.console import Console

from berth.cli.pulumi.preview.document import report_document
from berth.cli.pulumi.preview.markdown import report_markdown
from berth.cli.pulumi.preview.tree import report_tree
from berth.components.plan.effect import Effect, Level
from berth.components.plan.plan import Operation, Property
from berth.stacks.preview.report import ComponentChanges, PreviewContext, Report, ResourceChange

NAMES = ["alice", "bob", "carol", "dana", "erin", "fay", "gus", "hal"]
KINDS = ["Namespace", "LimitRange", "NetworkPolicy", "NetworkPolicy", "RayCluster"]


def change(
    component: str,
    kind: str,
    name: str,
    operation: Operation = "create",
    effects: Sequence[Effect] = (),
    properties: Sequence[Property] = (),
) -> ResourceChange:
    level = max((effect.level for effect in effects), default=Level.HARMLESS)
    return ResourceChange(
        component=component,
        resource=kind,
        name=name,
        detail="",
        urn=f"{component}::{kind}::{name}",
        type=f"kubernetes:v1:{kind}",
        operation=operation,
        level=level,
        effects=effects,
        properties=properties,
    )


def new_berth(name: str) -> ComponentChanges:
    title = f"berth {name}"
    numbered = enumerate(KINDS)
    return ComponentChanges(
        title, [change(title, kind, f"{name}-{number}") for number, kind in numbered]
    )


def changed_berth(name: str, **fields: str) -> ComponentChanges:
    title = f"berth {name}"
    properties = [Property(path, "update", "a", value) for path, value in fields.items()]
    ray = change(title, "RayCluster", name, "update", properties=properties)
    return ComponentChanges(title, [ray])


def report(*parts: ComponentChanges) -> Report:
    return Report(
        PreviewContext("lab", "environment"),
        parts,
        drift=[],
        counts=dict.fromkeys(("create", "update", "replace", "delete", "same"), 0),
        hours=[],
        cost=None,
        warnings=[],
    )


def tree(shown: Report, *, fields: bool = False, whole: bool = False) -> list[str]:
    console = Console(file=StringIO(), width=200)
    console.print(report_tree(shown, fields=fields, whole=whole))
    assert isinstance(console.file, StringIO)
    return [line.strip(" │├└─") for line in console.file.getvalue().splitlines()]


def test_eight_berths_are_two_lines() -> None:
    shown = report(*map(new_berth, NAMES))
    title = "8 berths: alice, bob, carol, dana, erin and 3 more"
    objects = "+ create 5 objects each: Namespace, LimitRange, 2 NetworkPolicies, RayCluster"
    assert tree(shown)[1:4] == [title, objects, "Each by itself: berth preview -s lab --all"]
    comment = report_markdown(shown).splitlines()
    assert f"<details><summary>+ {title}</summary>" in comment
    assert [line for line in comment if line.startswith("- ")] == [f"- {objects}"]
    # Nobody who reads the document misses any.
    assert len(report_document(shown)["changes"]) == len(NAMES) * len(KINDS)


def test_each_berth_is_shown_where_that_is_asked_for_or_there_are_few() -> None:
    shown = report(*map(new_berth, NAMES))
    for lines in (tree(shown, whole=True), tree(shown, fields=True)):
        assert [line for line in lines if line.startswith("berth ")] == [
            f"berth {name}" for name in NAMES
        ]
        assert sum("+ create" in line for line in lines) == len(NAMES) * len(KINDS)
        assert not any("--all" in line for line in lines)
    assert report_markdown(shown, whole=True).count("<details>") == len(NAMES)
    assert "berth bob" in tree(report(*map(new_berth, NAMES[:2])))


def test_what_restarts_or_is_lost_is_never_folded() -> None:
    def restarted(name: str, level: Level) -> ComponentChanges:
        effect = Effect(level, f"berth {name} restarts")
        title = f"berth {name}"
        return ComponentChanges(title, [change(title, "RayCluster", name, "update", [effect])])

    for level in Level:
        shown = report(*(restarted(name, level) for name in NAMES))
        for text in ("\n".join(tree(shown)), report_markdown(shown)):
            assert all(f"berth {name} restarts" in text for name in NAMES)
    replaced = [changed_berth(name) for name in NAMES]
    shown = report(
        *(
            replace(part, changes=[replace(one, operation="replace") for one in part.changes])
            for part in replaced
        )
    )
    assert sum("± replace" in line for line in tree(shown)) == len(NAMES)


def test_one_that_differs_is_shown_beside_the_folded_ones_in_its_place() -> None:
    fay = new_berth("fay")
    lacks = replace(fay, changes=fay.changes[1:])
    parts = [lacks if name == "fay" else new_berth(name) for name in ["fay", *NAMES[:5]]]
    titles = [line for line in tree(report(*parts)) if line.startswith(("berth ", "5 berths"))]
    assert titles == ["berth fay", "5 berths: alice, bob, carol, dana and erin"]


def test_edits_are_alike_in_a_comment_only_with_the_same_values() -> None:
    same = report(*(changed_berth(name, image="b") for name in NAMES))
    assert "8 berths: " in report_markdown(same)
    assert "`image: a → b`" in report_markdown(same)
    other = report(*(changed_berth(name, image=name) for name in NAMES))
    comment = report_markdown(other)
    assert all(f"`image: a → {name}`" in comment for name in NAMES)
    # The tree has no fields of manifests.
    assert tree(other)[2] == "~ change 1 object each: RayCluster"


def test_many_objects_of_one_kind_are_one_line() -> None:
    title = "cluster-wide objects"
    policies = [change(title, "ValidatingAdmissionPolicy", name) for name in NAMES]
    others = [change(title, "StorageClass", name) for name in NAMES[:2]]
    shown = report(ComponentChanges(title, [*others, *policies]))
    line = f"+ create ValidatingAdmissionPolicy {', '.join(NAMES)}"
    assert tree(shown)[2:5] == ["+ create StorageClass alice", "+ create StorageClass bob", line]
    assert len(tree(shown, whole=True)) == len(tree(shown)) + len(NAMES) - 1
    gone = ["LimitRange", "ResourceQuota", "NetworkPolicy"]
    removed = ComponentChanges(
        "berth dana", [change("berth dana", kind, "dana", "delete") for kind in gone]
    )
    both = "− delete LimitRange {0}; ResourceQuota {0}; NetworkPolicy {0}"
    assert tree(report(removed))[2] == both.format("dana")
    assert f"- {both.format('`dana`')}" in report_markdown(report(removed))
    names = ", ".join(f"`{name}`" for name in NAMES)
    assert f"- + create ValidatingAdmissionPolicy {names}" in report_markdown(shown)
