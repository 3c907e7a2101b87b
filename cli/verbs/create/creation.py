"""Creation of a berth: its file, its stack in the backend, its update."""

import contextlib
import sys
from typing import Any

import yaml

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.pulumi.update.question import Options
from berth.cli.reach.environment import brought_up, environment_by_name, require_answer
from berth.cli.reach.selected_stack import one_of
from berth.cli.reach.update import bring_up
from berth.cli.repository.check import check_stack
from berth.cli.repository.entries import engineers_in, environment_file, write_checked
from berth.cli.repository.stack_edit import FileEdit, with_entry
from berth.cli.shell.console import err, out
from berth.components.core.errors import BadInputError
from berth.components.core.project import shown_path
from berth.components.core.words import counted
from berth.components.ray import RayClusterSettings
from berth.components.sharing import Pools
from berth.stacks.files import stack_file
from berth.stacks.load.stack import EngineerBerth, EngineerStack

_ENGINEER = ("config", f"{stack_file.NAMESPACE}:engineer")
_KEY = ("secretsprovider:", "encryptedkey:")
"""Lines of a file with the key of its secrets, which an engineer's stack takes over."""

Entry = dict[str, Any]
"""Settings that the command's options give."""


def environment_of(name: str) -> str:
    """Return the environment that is meant where none is named: that of the berth's file, if any.

    Raises:
        BadInputError: there is none, or several may be meant.
    """
    stacks = stack_file.all_settings()
    if written := _written(name).get("environment"):
        return str(written)
    environments = [stack for stack, settings in stacks.items() if "environment" in settings]
    meant = environments[0] if len(environments) == 1 else one_of(environments)
    if meant is None:
        raise BadInputError(
            "which environment is meant?",
            f"--environment NAME, one of: {', '.join(environments) or 'none'}",
        )
    return meant


def create_berth(name: str, environment: str, entry: Entry, options: Options) -> int:
    """Write the file unless it is there, and bring the berth up; return the exit code.

    Raises:
        BadInputError: the file has other settings, or the environment is not up.
        BerthError: the environment's cluster does not answer.
    """
    is_written = _is_written(name, environment, entry)
    if not is_written and "/" not in environment:
        environment_file(environment)
    # Before a file is written or a stack made, which would be in the way of the next attempt.
    require_answer(brought_up(name) if is_written else environment_by_name(environment))
    if not is_written:
        done = f"if the update fails, run the same again: berth create {name}"
        # A program reads one document: the update's.
        stdout = sys.stderr if options.as_json else sys.stdout
        with contextlib.redirect_stdout(stdout):
            code = _write(name, environment, entry, done)
        if code:
            return code
    if isinstance(loaded := check_stack(name).loaded, EngineerBerth):
        size = in_words(loaded.berth.settings, loaded.resolved.pools)
        err.print(f"{name} on {environment}: {size}")
    if name not in pulumi_stack.stacks_in_backend():
        pulumi_stack.create_stack(name)
    return bring_up(name, options)


def write_berth_file(
    name: str, environment: str, entry: Entry, *, dry_run: bool, as_json: bool
) -> int:
    """Write the file of a berth for a pull request; return the exit code."""
    shown = shown_path(stack_file.stack_path(name))
    if _is_written(name, environment, entry):
        out.print(f"{shown} is there already; nothing was changed")
        return 0
    done = (
        f"next: open a pull request with {shown}; after the merge, CI creates the berth, and you"
        f" need no right in the cluster but the berth's own. Without CI, run: berth create {name}"
    )
    return _write(name, environment, entry, done, dry_run=dry_run, as_json=as_json)


def _is_written(name: str, environment: str, entry: Entry) -> bool:
    """Return whether a berth has a file; refuse one that differs from what is asked for.

    What holds is compared: an option that says what the file leaves to a default is no difference.
    """
    path = stack_file.stack_path(name)
    if not path.exists():
        return False
    present = _written(name)
    expected = _laid_over(present, entry | {"environment": environment})
    if expected != present and _holding(name, expected) != _holding(name, present):
        there = _by_path(present)
        others = [
            f"{path} is {there.get(path, 'not set')} there, not {value}"
            for path, value in _by_path(expected).items()
            if value != there.get(path)
        ]
        raise BadInputError(
            f"{shown_path(path)} exists with other settings ({'; '.join(others)}); nothing was"
            " changed",
            f"edit it, then run: berth up -s {name}",
        )
    return True


def _written(name: str) -> Entry:
    """Return the settings of a berth's file; none without a file."""
    if not stack_file.stack_path(name).exists():
        return {}
    present = stack_file.file_of_stack(name).settings.get("engineer")
    return present if isinstance(present, dict) else {}


def _laid_over(present: Entry, entry: Entry) -> Entry:
    """Return settings with those of an entry over them."""
    settings = dict(present)
    for key, value in entry.items():
        below = settings.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        settings[key] = below | value if both else value
    return settings


def _by_path(settings: Entry, prefix: str = "") -> Entry:
    """Return values by dotted path: `{"worker.gpus": 2}`."""
    values: Entry = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            values |= _by_path(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values


def _holding(name: str, settings: Entry) -> Any:
    """Return the settings that hold, defaults included, of what a file would say.

    Settings with problems are returned as they are.
    """
    text = yaml.safe_dump({"config": {f"{stack_file.NAMESPACE}:engineer": settings}})
    loaded = check_stack(name, text).loaded
    if isinstance(loaded, EngineerBerth):
        return loaded.contract.name, loaded.berth.settings
    return loaded.settings if isinstance(loaded, EngineerStack) else settings


def _write(
    name: str,
    environment: str,
    entry: Entry,
    done: str,
    *,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    secrets_key = ""
    if "/" not in environment:
        file, text = environment_file(environment)
        lines = text.splitlines(keepends=True)
        secrets_key = "".join(line for line in lines if line.startswith(_KEY))
        if name in engineers_in(file.settings["environment"]):
            raise BadInputError(
                f"{name} has a berth in the file of {environment} itself; a berth has one stack",
                "edit the entry in the environment's file",
            )
    text = (
        "# yaml-language-server: $schema=schema.json\n"
        f"# An engineer's own stack: a berth on the environment `{environment}`.\n"
        "config:\n"
        f"  {stack_file.NAMESPACE}:engineer:\n"
        f"    environment: {environment}\n"
    )
    for key, value in entry.items():
        text = with_entry(text, _ENGINEER, key, value)
    change = FileEdit(stack_file.stack_path(name), "", text + secrets_key)
    return write_checked(name, name, change, done, dry_run=dry_run, as_json=as_json)


def in_words(settings: RayClusterSettings, pools: Pools) -> str:
    """Return the size of a berth: `2 workers with 1 × B200, 8 cores and 32Gi of pool dev; …`."""
    parts = []
    for group in settings.groups:
        workers = group.workers
        bounds = "" if isinstance(workers, int) else f" ({workers.min} to {workers.max})"
        gpus = pools[group.pool].gpu_unit.amount(group.gpus)
        size = f"{gpus}, {_cores(group.cpu)} and {group.memory}"
        parts.append(
            f"{counted(group.at_start, 'worker')}{bounds} with {size} of pool {group.pool}"
        )
    return "; ".join(
        [*parts, f"a head with {_cores(settings.head.cpu)} and {settings.head.memory}"]
    )


def _cores(cpu: str) -> str:
    return "1 core" if cpu == "1" else f"{cpu} cores"
