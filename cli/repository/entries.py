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
    entry = {
        "workers": _workers(workers),
        "worker": _as_written(worker),
        "head": _as_written(head),
        "image": image,
    }
    return {key: value for key, value in entry.items() if value not in (None, {})}


def _workers(text: str | None) -> int | dict[str, int] | None:
    if text is None:
        return None
    bounds = _RANGE.match(text)
    if bounds is None:
        raise BadInputError(
            f"--workers: {text!r} is neither a number nor a range such as 0..4",
            "write a number such as 2, or a range",
        )
    if bounds[2] is None:
        return int(bounds[1])
    return {"min": int(bounds[1]), "max": int(bounds[2])}


def _as_written(settings: Mapping[str, str | int | None]) -> dict[str, str | int]:
    """Return the settings that options give, numbers as people write them: `cpu: 8`."""
    written: dict[str, str | int] = {}
    for key, value in settings.items():
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            written[key] = int(value)
        elif value is not None:
            written[key] = value
    return written


def environment_file(stack: str) -> tuple[stack_file.StackFile, str]:
    """Return an environment's file and its text.

    Raises:
        BadInputError: the stack is not an environment, or its file cannot be read.
    """
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
    if not isinstance(engineers, dict):
        return {}
    return {name: {} if entry is None else entry for name, entry in engineers.items()}


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
