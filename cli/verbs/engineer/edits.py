"""Edits of an environment's engineers, checked as a whole before a byte is written."""

from collections.abc import Mapping
from typing import Any, NoReturn

from berth.cli.reach.berths import live_berth
from berth.cli.reach.homes import delete_home_claims, disks_of
from berth.cli.reach.own_stacks import own_stacks
from berth.cli.repository.entries import engineers_in, environment_file, write_checked
from berth.cli.repository.stack_edit import FileEdit, with_entry, without_entry
from berth.cli.shell.console import print_result
from berth.cli.verbs.engineer.losses import losses_in_words, losses_with_home
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.project import shown_path
from berth.stacks.files import stack_file

_ENGINEERS = ("config", f"{stack_file.NAMESPACE}:environment", "engineers")


def add_engineer(
    stack: str, name: str, entry: dict[str, Any], *, dry_run: bool, as_json: bool
) -> int:
    """Write a berth into an environment's file; return the exit code.

    Raises:
        BadInputError: the engineer has another berth on the environment, or the file cannot be
            edited.
    """
    file, text = environment_file(stack)
    present = engineers_in(file.settings["environment"])
    if name in present:
        if present[name] == entry or not entry:
            document = {"stack": stack, "name": name, "changed": False, "diff": ""}
            done = f"{name} has a berth on {stack} already; nothing was changed"
            return print_result(document, done, as_json=as_json)
        raise BadInputError(
            f"{name} has a berth with other settings already; edit it there, or remove it first",
            place=f"{file.shown_path}:{file.line(('environment', 'engineers', name))}",
        )
    if other := own_stacks(stack, without="isolation").get(name):
        raise BadInputError(
            f"{name} has a berth on {stack} by a stack of their own, {other}; a berth has one"
            " stack",
            "edit that stack's file",
        )
    change = FileEdit(file.path, text, with_entry(text, _ENGINEERS, name, entry))
    _check_result(change, {**present, name: entry})
    done = f"to create the berth of {name}: berth up -s {stack}"
    return write_checked(stack, name, change, done, dry_run=dry_run, as_json=as_json)


def remove_engineer(
    stack: str, name: str, *, forget_home: bool, dry_run: bool, as_json: bool
) -> int:
    """Take a berth out of an environment's file; return the exit code.

    Raises:
        BadInputError: the environment has no such engineer, or the file cannot be edited.
        BerthError: a home is to be deleted, and the cluster cannot be asked.
    """
    file, text = environment_file(stack)
    present = engineers_in(file.settings["environment"])
    if name not in present:
        _refuse_unknown_engineer(stack, name, present)
    change = FileEdit(file.path, text, without_entry(text, _ENGINEERS, name))
    _check_result(change, {key: value for key, value in present.items() if key != name})
    if not forget_home:
        losses = losses_in_words(stack, name)
        return write_checked(stack, name, change, losses, dry_run=dry_run, as_json=as_json)
    berth = live_berth(name, stack)
    disks = disks_of(berth.api, name)
    if not disks:
        raise BadInputError(f"berth {name} has no home", "leave --forget-home out")
    losses = losses_with_home(stack, berth, disks)
    code = write_checked(stack, name, change, losses, dry_run=dry_run, as_json=as_json)
    if code == 0 and not dry_run:
        delete_home_claims(berth.api, name)
    return code


def _refuse_unknown_engineer(stack: str, name: str, present: Mapping[str, Any]) -> NoReturn:
    if other := own_stacks(stack, without="isolation").get(name):
        raise BadInputError(
            f"{name}'s berth is of a stack of their own; remove it with: berth destroy -s {other}"
        )
    raise BadInputError(
        f"environment {stack} has no engineer {name!r}{did_you_mean(name, present)}",
        f"list its engineers: berth engineer list -s {stack}",
    )


def _check_result(change: FileEdit, engineers: Mapping[str, Any]) -> None:
    """Check that an edit of the text means what was asked, however the file is written."""
    if not _means(change, engineers):
        name = shown_path(change.path)
        raise BadInputError(
            f"{name} is written in a way that this can't edit (anchors?); edit it by hand"
        )


def _means(change: FileEdit, engineers: Mapping[str, Any]) -> bool:
    """Return whether an edit changes nothing but the engineers."""
    try:
        before = stack_file.parse_stack_file(change.path, change.before).settings
        after = stack_file.parse_stack_file(change.path, change.after).settings
    except stack_file.StackFileError:
        return False
    return _with_engineers(before, engineers) == _with_engineers(
        after, engineers_in(after.get("environment") or {})
    )


def _with_engineers(settings: Mapping[str, Any], engineers: Mapping[str, Any]) -> dict[str, Any]:
    environment = settings.get("environment") or {}
    return {**settings, "environment": {**environment, "engineers": dict(engineers)}}
