"""Update beyond a saved plan, which is refused.

Pulumi's own update plans (`pulumi preview --save-plan`, `pulumi up --plan`) do not suffice: the
engine holds each step to them as it comes (pulumi 3.250, pkg/resource/deploy/step_generator.go), so
a step too many is refused after others have been done, and a deletion after all of them. They have
inputs in clear text, and nothing of who loses work. So `berth up` compares two previews first.
"""

from collections.abc import Iterator

from berth.cli.pulumi.preview.document import plain_data
from berth.cli.pulumi.preview.lines import VERBS, property_text
from berth.cli.pulumi.preview.plan import StackPlan
from berth.cli.pulumi.preview.saved import SavedChange, SavedPlan, digests_of_inputs
from berth.components.core.errors import BadInputError
from berth.components.plan.effect import Level
from berth.stacks.files import stack_file
from berth.stacks.preview.report import ResourceChange

_WITHIN = {"replace": {"replace", "create", "delete"}}
"""Operations that a plan of one operation covers, beside that one: a killed replacement ends in
parts."""


def refuse_beyond_plan(planned: StackPlan, plan: SavedPlan) -> None:
    """Refuse an update that does more than a saved plan, or something else.

    Raises:
        BadInputError: it does, with each difference.
    """
    stack = planned.report.context.stack
    if lines := list(_beyond(planned, plan)):
        listed = "\n".join(f"  {line}" for line in lines)
        raise BadInputError(
            f"the update goes beyond the plan in {plan.path}; nothing was done. Not in the"
            f" plan:\n{listed}",
            f"review the update as it is now: berth preview -s {stack} --save {plan.path}",
        )


def _beyond(planned: StackPlan, plan: SavedPlan) -> Iterator[str]:
    report = planned.report
    inputs = digests_of_inputs(planned)
    if plan.settings != planned.judged:
        path = stack_file.file_of_stack(report.context.stack).shown_path
        yield f"{path}, or a file that it names, is not as it was"
    for change in report.changes:
        yield from _more(change, plan.changes.get(change.urn), inputs.get(change.urn))
    for sitting in report.sitting(Level.DESTROYS):
        if sitting.key not in plan.lost:
            yield f"work that is lost: {sitting}"


def _more(change: ResourceChange, saved: SavedChange | None, inputs: str | None) -> Iterator[str]:
    """Yield what a change is beyond the saved change of the same resource, if there is one."""
    what = f"{change.component}: {VERBS[change.operation]} {change.resource} {change.name}"
    more = _fields_beyond(change, saved)
    if saved is None:
        yield f"{what}: {more}" if more else what
    elif change.operation == "update" and not change.properties:
        return  # what a failed update left open, such as an object that is not ready yet
    elif change.operation not in _WITHIN.get(saved.operation, {saved.operation}):
        yield f"{what}, not {saved.operation}"
    elif more:
        yield f"{what}: {more}"
    elif inputs != saved.inputs and change.operation in ("create", "replace"):
        yield f"{what} with other fields than in the plan"
    level = saved.level if saved else Level.HARMLESS
    yield from (f"{what}: {effect.text}" for effect in change.effects if effect.level > level)


def _fields_beyond(change: ResourceChange, saved: SavedChange | None) -> str:
    """Return the changed properties that the saved change does not have."""
    in_plan = saved.properties if saved else ()
    more = [changed for changed in change.properties if plain_data(changed) not in in_plan]
    return "; ".join(map(property_text, more))
