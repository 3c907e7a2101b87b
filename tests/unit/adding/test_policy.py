"""A policy is the file that docs/contributing.md names."""

from __future__ import annotations

import json

from tests.unit.adding.copy import Copy, listed

POLICY = '''"""Policy `fake-policy`."""

from __future__ import annotations

from collections.abc import Iterator

from berth.stacks.policies.planned import object_name, ray_specs
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext


def _judge(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    for spec in ray_specs(resource):
        if spec.get("rayVersion") == "2.54.0":
            yield Finding(f"{object_name(resource)} has Ray 2.54.0")


POLICY = Policy(
    name="fake-policy",
    asks="No RayCluster has Ray 2.54.0.",
    why="It is the version of a test.",
    remedy="set `rayVersion` to another one",
    judge=_judge,
    applies_to="raycluster",
    setting=("rayVersion",),
)
'''

STACK = """\
config:
  berth:environment:
    project: berth-lab
    zone: us-central1-b
    policies: {waived: {WAIVED}}
    pools:
      cpu: {machineType: n2-standard-16, nodes: 1}
      dev: {machineType: a4-highgpu-8g, nodes: 1}
    engineers:
      alice: {rayVersion: 2.54.0, image: "rayproject/ray:2.54.0-gpu"}
"""

PREVIEW = """
from berth.components.plan.plan import Plan, State, Step
from berth.stacks.load.stack import load_stack
from berth.stacks.preview.report import Known, report_of
loaded = load_stack("waiving")
manifest = loaded.berths[0].manifests.main
step = Step("create", "urn::alice", "kubernetes:ray.io/v1:RayCluster", "alice", True, None, State(manifest, {}, ""))
report = report_of(Plan([step]), Known("waiving", "environment", policies=loaded.judgment.context))
print([(found.policy, found.waived) for found in report.violations])
"""


def test_a_policy_is_the_files_that_the_page_names(tree: Copy) -> None:
    tree.add("stacks/policies/rules/fake_policy.py", POLICY)
    assert tree.touched == listed("Add a policy")

    described = json.loads(tree.run("check", "--policies", "--json"))
    assert "fake-policy" in [policy["name"] for policy in described]

    tree.stack("env", STACK.replace("WAIVED", ""))
    refused = tree.run("check", "env", code=2)
    assert (
        "stacks/Pulumi.env.yaml:10: environment.engineers.alice.rayVersion: policy fake-policy: alice has Ray"
        in refused
    )
    assert "set `rayVersion` to another one, or waive it (policies.waived.fake-policy: REASON)" in refused

    tree.stack("waiving", STACK.replace("WAIVED", "fake-policy: a test"))
    assert "policy fake-policy is waived for alice: a test" in tree.run("check", "waiving")
    assert "('fake-policy', 'a test')" in tree.python("-c", PREVIEW)
