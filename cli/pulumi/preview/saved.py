"""Plan that `berth preview --save` writes for a review."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berth.cli.pulumi.preview.document import FORMAT, report_document
from berth.cli.pulumi.preview.plan import StackPlan
from berth.components.core import whole_file
from berth.components.core.distribution import installed_version
from berth.components.core.errors import BadInputError
from berth.components.plan.effect import Level
from berth.components.plan.plan import plan_of
from berth.stacks.program import digest_of


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
    """Digest of the stack's files."""
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
        "settings": planned.judged,
        "inputs": digests_of_inputs(planned),
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


def digests_of_inputs(planned: StackPlan) -> dict[str, str]:
    """Return digests of the inputs that new resources get, with secrets masked, by URN."""
    changes = plan_of(planned.events).changes
    return {
        step.urn: digest_of(step.new.inputs)
        for step in changes
        if step.new and step.operation in ("create", "replace")
    }
