"""Registry of the policies: every module of this folder that has a `POLICY`, by the policy's name."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from berth.stacks import policies
from berth.stacks.policies.planned import rdma_pools
from berth.stacks.policies.policy import Planned, Policy, PolicyContext, Violation


def _found() -> Iterable[Policy]:
    for module in iter_modules(policies.__path__, f"{policies.__name__}."):
        if module.name != __name__:
            policy = getattr(import_module(module.name), "POLICY", None)
            if isinstance(policy, Policy):
                yield policy


POLICIES: dict[str, Policy] = {policy.name: policy for policy in sorted(_found(), key=lambda policy: policy.name)}
"""Every policy by name, in the order in which they are shown."""


def violations(planned: Iterable[Planned], context: PolicyContext) -> list[Violation]:
    """Return every breach of a policy in a plan, waived or not.

    Args:
        planned: the resources that there would be, without those that are deleted.
        context: what else the policies need to know.
    """
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
