"""Registry of the policies: the `POLICY` of every module in rules/, by the policy's name."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from berth.stacks.policies import rules
from berth.stacks.policies.planned import rdma_pools
from berth.stacks.policies.policy import Planned, Policy, PolicyContext, Violation

_MODULES = (import_module(module.name) for module in iter_modules(rules.__path__, f"{rules.__name__}."))

POLICIES: dict[str, Policy] = {policy.name: policy for policy in (module.POLICY for module in _MODULES)}
"""Every policy by name, in the order in which they are shown."""


def violations(planned: Iterable[Planned], context: PolicyContext) -> list[Violation]:
    """Return every breach of a policy, waived or not, among the resources that there would be."""
    resources = list(planned)
    context = context.beside(rdma_pools(resources))
    return [
        Violation(
            policy.name,
            resource.type,
            resource.name,
            f"{finding.problem}; {finding.remedy or policy.remedy}",
            context.waived.get(policy.name, ""),
        )
        for resource in resources
        for policy in POLICIES.values()
        if policy.holds(context)
        for finding in policy.judge(resource, context)
    ]
