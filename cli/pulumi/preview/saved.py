"""Plan that was saved and reviewed, and what an update would do beyond it.

Pulumi's own update plans (`pulumi preview --save-plan`, `pulumi up --plan`) do not suffice: the
engine holds each step to them as it comes (pulumi 3.250, pkg/resource/deploy/step_generator.go), so
a step too many is refused after others have been done, and a deletion after all of them. They have
inputs in clear text, and nothing of who loses work. So `berth up` compares two previews first.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berth.cli.pulumi.preview.document import FORMAT, plain_data, report_document
from berth.cli.pulumi.preview.lines import VERBS, property_text
from berth.cli.pulumi.preview.plan import StackPlan, settings_as_json
from berth.components.core import whole_file
from berth.components.core.distribution import installed_version
from berth.components.core.errors import BadInputError
from berth.components.plan.effect import Level
from berth.components.plan.plan import plan_of
from berth.stacks.files import stack_file
from berth.stacks.preview.report import ResourceChange
from berth.stacks.program import digest_of

_WITHIN = {"replace": {"replace", "create", "delete"}}
"""Operations that a plan of one operation covers, beside that one: a killed replacement ends in
parts."""


@dataclass(frozen=True)
class SavedChange:
    """Change of one resource in a saved plan."""

    operation: str
    level: Level
    properties: Sequence[Mapping[str, Any]]
    inputs: str | None
    """Digest of a new resource's inputs."""


@dataclass(frozen=True)
class SavedPlan:
    """Plan that a file has."""

    path: Path
    settings: str
    """Digest of the stack's settings."""
    changes: Mapping[str, SavedChange]
    """Changes by URN."""
    lost: frozenset[tuple[str, str]]
    """RayClusters that lose work, by namespace and name."""


def save_plan(planned: StackPlan, path: Path) -> None:
    """Write a plan's file: the document of `berth preview --json`, with three more fields.

    Raises:
        BadInputError: the file cannot be written.
    """
    more = {
        "berth": installed_version(),
        "settings": digest_of(settings_as_json(planned.report.context.stack)),
        "inputs": _inputs(planned),
    }
    document = report_document(planned.report) | more
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        whole_file.replace_file(path, f"{text}\n")
    except OSError as error:
        raise BadInputError(
            f"{path} cannot be written: {error.strerror}", "name a folder that you may write to"
        ) from None


def read_plan(path: Path, stack: str) -> SavedPlan:
    """Return the plan of a stack that this version of berth saved in a file.

    Raises:
        BadInputError: the file cannot be read, or has another plan.
    """
    expected = {"format": FORMAT, "stack": stack, "berth": installed_version()}
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        wrong = [
            f"{key} {plan[key]}, not {value}"
            for key, value in expected.items()
            if plan[key] != value
        ]
        problem = f"is a plan for {'; '.join(wrong)}" if wrong else ""
        if not problem:
            return _saved(path, plan)
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except (ValueError, LookupError, TypeError, AttributeError):
        problem = "is not what `berth preview --save` writes"
    raise BadInputError(
        f"{path} {problem}; nothing was done",
        f"save a plan: berth preview -s {stack} --save {path}",
    )


def _saved(path: Path, plan: Mapping[str, Any]) -> SavedPlan:
    changes = {
        change["urn"]: SavedChange(
            change["operation"],
            Level[change["level"].upper()],
            change["properties"],
            plan["inputs"].get(change["urn"]),
        )
        for change in plan["changes"]
    }
    lost: set[tuple[str, str]] = set()
    for change in plan["changes"]:
        for effect in change["effects"]:
            if effect["level"] == Level.DESTROYS.word:
                sittings = effect["sitting"]
                lost.update((sitting["namespace"], sitting["rayCluster"]) for sitting in sittings)
    return SavedPlan(path, plan["settings"], changes, frozenset(lost))


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
    inputs = _inputs(planned)
    if plan.settings != digest_of(settings_as_json(report.context.stack)):
        yield f"{stack_file.file_of_stack(report.context.stack).shown_path} is not as it was"
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


def _inputs(planned: StackPlan) -> dict[str, str]:
    """Return digests of the inputs that new resources get, with secrets masked, by URN."""
    changes = plan_of(planned.events).changes
    return {
        step.urn: digest_of(step.new.inputs)
        for step in changes
        if step.new and step.operation in ("create", "replace")
    }
