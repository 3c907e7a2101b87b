"""Policies on the engine's plan, as `berth preview` shows them in each of its renderings."""

from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from berth.cli.pulumi.preview.document import report_document
from berth.cli.pulumi.preview.markdown import report_markdown
from berth.cli.pulumi.preview.tree import report_tree
from berth.cli.verbs.preview import exit_code_of_plan
from berth.components.core.errors import BAD_INPUT
from berth.components.plan.plan import Plan, ResourceState, Step
from berth.stacks.policies.policy import PolicyContext
from berth.stacks.preview.report import PreviewContext, Report, report_of

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "ui", "namespace": "berth-bob"},
    "spec": {"type": "LoadBalancer"},
}


def created(resource_type: str, name: str, inputs: Mapping[str, Any]) -> Step:
    urn = f"urn:pulumi:env::berth::{resource_type}::{name}"
    return Step(
        "create", urn, resource_type, name, custom=True, old=None, new=ResourceState(inputs, {}, "")
    )


def report(context: PolicyContext | None, *steps: Step) -> Report:
    return report_of(Plan(steps), PreviewContext("env", "environment", policies=context))


def in_a_terminal(shown: Report) -> str:
    console = Console(width=1000)
    with console.capture() as captured:
        console.print(report_tree(shown))
    return captured.get()


PUBLIC = created("kubernetes:core/v1:Service", "ui", SERVICE)
WORDS = "policy private-dashboard: Service ui is a load balancer with a public address"


def test_what_is_against_a_policy_is_in_every_rendering_and_in_the_exit_code() -> None:
    shown = report(PolicyContext(), PUBLIC)
    assert WORDS in in_a_terminal(shown)
    assert "policies.waived.private-dashboard: REASON" in in_a_terminal(shown)
    assert "## 🛑 berth preview" in report_markdown(shown)
    assert f"- 🛑 {WORDS}" in report_markdown(shown)
    content = report_document(shown)
    assert [
        (breach["policy"], breach["resource"], breach["type"]) for breach in content["policies"]
    ] == [("private-dashboard", "ui", "kubernetes:core/v1:Service")]
    assert content["waived"] == []
    # Nothing else that a plan can be makes up for it.
    for destroy, nothing in ((False, False), (True, False), (False, True)):
        assert (
            exit_code_of_plan(shown, allow_destroy=destroy, expect_no_changes=nothing) == BAD_INPUT
        )


def test_a_waived_policy_is_told_with_its_reason() -> None:
    shown = report(PolicyContext(waived={"private-dashboard": "a demo for a day"}), PUBLIC)
    words = "policy private-dashboard is waived for ui: a demo for a day"
    assert words in in_a_terminal(shown)
    assert f"- {words}" in report_markdown(shown)
    content = report_document(shown)
    assert content["policies"] == []
    assert content["waived"] == [
        {"policy": "private-dashboard", "reason": "a demo for a day", "resources": ["ui"]}
    ]
    assert exit_code_of_plan(shown, allow_destroy=False, expect_no_changes=False) == 0


@pytest.mark.parametrize("context", [PolicyContext(), None])
def test_a_plan_that_keeps_the_policies_says_nothing_of_them(context: PolicyContext | None) -> None:
    shown = report(
        context, created("kubernetes:core/v1:Namespace", "bob", {"metadata": {"name": "berth-bob"}})
    )
    assert "polic" not in in_a_terminal(shown)
    assert "olic" not in report_markdown(shown)
    assert exit_code_of_plan(shown, allow_destroy=False, expect_no_changes=False) == 0


def test_what_goes_is_not_judged() -> None:
    gone = Step(
        "delete",
        PUBLIC.urn,
        PUBLIC.type,
        "ui",
        custom=True,
        old=ResourceState(SERVICE, {}, ""),
        new=None,
    )
    assert report(PolicyContext(), gone).violations == []
