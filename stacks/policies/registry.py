"""Registry of the policies: `POLICY` of the modules of rules/, and of the project's `policies/`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules

from berth.components.core.errors import BadInputError
from berth.components.core.project import project_or_none, shown_path
from berth.stacks.policies import rules
from berth.stacks.policies.planned import rdma_pools
from berth.stacks.policies.policy import Planned, Policy, PolicyContext, Violation

_MODULES = [
    import_module(module.name) for module in iter_modules(rules.__path__, f"{rules.__name__}.")
]

POLICIES: dict[str, Policy] = {module.POLICY.name: module.POLICY for module in _MODULES}
"""berth's own policies by name, in the order in which they are shown."""


def policies() -> Mapping[str, Policy]:
    """Return every policy by name: berth's own, then those of the project, if there is one."""
    project = project_or_none()
    return _with_those_of(project / "policies") if project else POLICIES


@cache
def _with_those_of(folder: Path) -> Mapping[str, Policy]:
    by_name = dict(POLICIES)
    for file in sorted(folder.glob("[!_]*.py")):
        policy = _policy_of(file)
        if policy.name in by_name:
            raise BadInputError(
                f"there is a policy {policy.name!r} already; give it another name",
                place=shown_path(file),
            )
        by_name[policy.name] = policy
    return by_name


def _policy_of(file: Path) -> Policy:
    spec = spec_from_file_location(f"berth_policies_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise BadInputError(
            "cannot be loaded as a module; correct the Python file of the policy",
            place=shown_path(file),
        )
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 - the module is the user's
        raise BadInputError(
            f"cannot be loaded, so no stack is checked: {type(error).__name__}: {error}; correct"
            " the Python file of the policy",
            place=shown_path(file),
        ) from None
    policy = getattr(module, "POLICY", None)
    if not isinstance(policy, Policy):
        raise BadInputError(
            "has no POLICY of the class berth.stacks.policies.policy.Policy, so no stack is"
            " checked",
            "add one; a file whose name begins with '_' is left out",
            place=shown_path(file),
        )
    return policy


def violations(planned: Iterable[Planned], context: PolicyContext) -> list[Violation]:
    """Return every breach of a policy, waived or not, among the resources that there would be."""
    resources = list(planned)
    context = replace(context, rdma={**rdma_pools(resources), **context.rdma})
    held = [policy for policy in policies().values() if policy.holds(context)]
    broken: list[Violation] = []
    for resource in resources:
        for policy in held:
            broken += [
                Violation(
                    policy.name,
                    resource.type,
                    resource.name,
                    f"{finding.problem}; {finding.remedy or policy.remedy}",
                    context.waived.get(policy.name, ""),
                )
                for finding in policy.judge(resource, context)
            ]
    return broken
