"""Berths as entries of stacks' files: written only if `berth check` accepts the result."""

import re
from collections.abc import Mapping
from typing import Any

from berth.cli.repository.check import check_stack
from berth.cli.repository.stack_edit import FileEdit
from berth.cli.shell.console import err, out, print_json, print_problems, print_warnings
from berth.components.core.errors import BAD_INPUT, BadInputError
from berth.components.core.project import shown_path
from berth.stacks.files import stack_file

_RANGE = re.compile(r"^(\d+)(?:\.\.(\d+))?$")


def entry_of(
    workers: str | None,
    image: str | None,
    worker: Mapping[str, str | int | None],
    head: Mapping[str, str | None],
) -> dict[str, Any]:
    """Return the settings of a berth that the command's options give, as a file has them."""
    found = {
        "workers": _workers(workers),
        "worker": _given(worker),
        "head": _given(head),
        "image": image,
    }
    return {key: value for key, value in found.items() if value not in (None, {})}


def _workers(text: str | None) -> int | dict[str, int] | None:
    if text is None:
        return None
    found = _RANGE.match(text)
    if not found:
        raise BadInputError(
            f"--workers: {text!r} is neither a number nor a range such as 0..4",
            "write a number such as 2, or a range",
        )
    return int(found[1]) if found[2] is None else {"min": int(found[1]), "max": int(found[2])}


def _given(settings: Mapping[str, str | int | None]) -> dict[str, str | int]:
    """Return the settings that are given, numbers as people write them: `cpu: 8`."""
    return {
        key: int(value)
        if isinstance(value, str) and value.isascii() and value.isdecimal()
        else value
        for key, value in settings.items()
        if value is not None
    }


def environment_file(stack: str) -> tuple[stack_file.StackFile, str]:
    """Return an environment's file and its text."""
    file = stack_file.file_of_stack(stack)
    if not isinstance(file.settings.get("environment"), dict):
        raise BadInputError(
            f"stack {stack} is not an environment",
            "name an environment's stack",
            place=file.shown_path,
        )
    return file, file.path.read_text(encoding="utf-8")


def engineers_in(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the engineers' entries of an environment's settings."""
    engineers = settings.get("engineers")
    found = engineers if isinstance(engineers, dict) else {}
    return {name: {} if entry is None else entry for name, entry in found.items()}


def write_checked(
    stack: str, name: str, change: FileEdit, done: str, *, dry_run: bool, as_json: bool
) -> int:
    """Write and report a change that `berth check` accepts; return the exit code."""
    checked = check_stack(stack, change.after)
    if checked.lines:
        if as_json:
            print_json({"stack": stack, "changed": False, "problems": checked.lines})
        print_problems(f"{stack} would have these problems; nothing was written", checked.lines)
        return BAD_INPUT
    print_warnings(checked.warnings)
    if not dry_run:
        change.write()
    if as_json:
        print_json({"stack": stack, "name": name, "changed": not dry_run, "diff": change.diff})
    elif dry_run:
        out.print(change.diff, end="")
        err.print(f"nothing was written\n{done}")
    else:
        state = "changed" if change.before else "written"
        out.print(f"{shown_path(change.path)} is {state}\n{done}")
    return 0
