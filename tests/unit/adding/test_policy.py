"""A policy is the files that CONTRIBUTING.md names."""

import json

from tests.unit.adding.copy import Copy, file, listed

POLICY = file("policy_policy.py.txt")

STACK = file("policy_stack.yaml.txt")

PREVIEW = file("policy_preview.py.txt")


def test_a_policy_is_the_files_that_the_page_names(tree: Copy) -> None:
    tree.add("stacks/policies/rules/fake_policy.py", POLICY)
    assert tree.touched == listed("Add a policy")

    described = json.loads(tree.run("check", "--policies", "--json"))
    assert "fake-policy" in [policy["name"] for policy in described]

    tree.stack("env", STACK.replace("WAIVED", ""))
    tree.stack("waiving", STACK.replace("WAIVED", "fake-policy: a test"))
    checked = tree.run("check", "env", "waiving", code=2)
    assert (
        "stacks/Pulumi.env.yaml:10: environment.engineers.alice.rayVersion: policy fake-policy:"
        " alice has Ray" in checked
    )
    assert (
        "set `rayVersion` to another one, or waive it (policies.waived.fake-policy: REASON)"
        in checked
    )
    assert "✓ waiving (environment" in checked
    assert "policy fake-policy is waived for alice: a test" in checked
    assert "('fake-policy', 'a test')" in tree.python("-c", PREVIEW)
