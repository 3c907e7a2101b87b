"""Edits of an environment's engineers: checked whole before a byte is written."""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from berth.cli.berths import Berth, find
from berth.cli.check import check
from berth.cli.console import err, out, print_json
from berth.cli.stack_edit import EditError, with_entry, without_entry
from berth.components.core.bounds import Bounds
from berth.components.core.errors import BAD_INPUT, BadInputError, BerthError
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import namespace_of
from berth.components.plan.effect import counted
from berth.components.ray.condition import condition_of, gpus_of
from berth.components.ray.settings import RayClusterSettings
from berth.stacks import stack_file
from berth.stacks.load import EngineerStack, Environment, load_stack

_ENGINEERS = ("config", f"{stack_file.NAMESPACE}:environment", "engineers")
_RANGE = re.compile(r"^(\d+)(?:\.\.(\d+))?$")


@dataclass(frozen=True)
class Options:
    """How it is done.

    Attributes:
        dry_run: nothing is written.
        as_json: the result is for a program.
    """

    dry_run: bool = False
    as_json: bool = False


@dataclass(frozen=True)
class Shape:
    """What a berth is to have beyond the defaults.

    Attributes:
        workers: `2`, or `0..4` for Ray's autoscaler.
        gpus: GPUs of one worker.
        pool: node pool of the workers.
        image: container image.
        cpu: cores of one worker, as a Kubernetes quantity.
        memory: memory of one worker, as one.
        head_cpu: cores of the head.
        head_memory: memory of the head.
    """

    workers: str | None = None
    gpus: int | None = None
    pool: str | None = None
    image: str | None = None
    cpu: str | None = None
    memory: str | None = None
    head_cpu: str | None = None
    head_memory: str | None = None

    def entry(self) -> dict[str, Any]:
        """As it is written in a file.

        Raises:
            BadInputError: `workers` is neither a number nor a range.
        """
        worker = _given(pool=self.pool, gpus=self.gpus, cpu=_quantity(self.cpu), memory=_quantity(self.memory))
        head = _given(cpu=_quantity(self.head_cpu), memory=_quantity(self.head_memory))
        return _given(workers=self._workers(), worker=worker or None, head=head or None, image=self.image)

    def _workers(self) -> int | dict[str, int] | None:
        if self.workers is None:
            return None
        found = _RANGE.match(self.workers)
        if not found:
            raise BadInputError(f"--workers: {self.workers!r} is neither a number nor a range such as 0..4")
        if found[2] is None:
            return int(found[1])
        return {"min": int(found[1]), "max": int(found[2])}


def _given(**settings: Any) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}


def _quantity(text: str | None) -> int | str | None:
    """As people write it: `cpu: 8`, and not `cpu: '8'`. What is none is refused with the rest of the settings."""
    return int(text) if text and text.isascii() and text.isdecimal() else text


@dataclass(frozen=True)
class _Change:
    """A file as it is and as it is to be."""

    path: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        name = stack_file.shown(self.path)
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True), self.after.splitlines(keepends=True), name, name
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> None:
        """At once or not at all, with the rights that the file has."""
        mode = self.path.stat().st_mode & 0o777 if self.path.exists() else 0o666 & ~_umask()
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=self.path.parent, prefix=f".{self.path.name}.", delete=False
        ) as file:
            try:
                file.write(self.after)
                file.close()
                Path(file.name).chmod(mode)
                Path(file.name).replace(self.path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def add(stack: str, name: str, shape: Shape, options: Options) -> int:
    """Write a berth into an environment's file; the exit code.

    Raises:
        BadInputError: the file can't be edited, or has another berth of that name.
    """
    path, text, settings = _environment(stack)
    entry, there = shape.entry(), _engineers(settings)
    if name in there:
        if there[name] == entry or not entry:
            return _tell(options, stack, name, None, f"{name} has a berth on {stack} already; nothing is changed")
        where = _line(path, text, name)
        raise BadInputError(
            f"{where}: {name} has a berth with other settings already; edit it there, or remove it first"
        )
    if other := _own_stack_of(name, stack):
        raise BadInputError(f"{name} has a berth on {stack} by a stack of their own, {other}; a berth has one stack")
    change = _Change(path, text, _edited(lambda: with_entry(text, _ENGINEERS, name, entry)))
    _must_have_become(change, {**there, name: entry})
    if _refused(stack, change, options):
        return BAD_INPUT
    return _done(options, stack, name, change, f"{name} gets a berth on {stack} by: berth up -s {stack}")


def remove(stack: str, name: str, options: Options) -> int:
    """Take a berth out of an environment's file; the exit code.

    Raises:
        BadInputError: there is none, or the file can't be edited.
    """
    path, text, settings = _environment(stack)
    there = _engineers(settings)
    if name not in there:
        if other := _own_stack_of(name, stack):
            raise BadInputError(
                f"{name}'s berth is of a stack of their own; take it away with: berth destroy -s {other}"
            )
        raise BadInputError(f"environment {stack} has no engineer {name!r}{did_you_mean(name, there)}")
    change = _Change(path, text, _edited(lambda: without_entry(text, _ENGINEERS, name)))
    _must_have_become(change, {key: value for key, value in there.items() if key != name})
    if _refused(stack, change, options):
        return BAD_INPUT
    return _done(options, stack, name, change, _takes_away(stack, name))


def init(environment: str, name: str, shape: Shape, options: Options) -> int:
    """Write an engineer's own stack's file; the exit code.

    Raises:
        BadInputError: there is one already, or the environment has a berth of that name.
    """
    if "/" not in environment:
        _, _, settings = _environment(environment)
        if name in _engineers(settings):
            raise BadInputError(f"{name} has a berth in the file of {environment} itself; a berth has one stack")
    path = stack_file.stack_path(name)
    if path.exists():
        raise BadInputError(f"{stack_file.shown(path)} is there already")
    text = (
        "# yaml-language-server: $schema=schema.json\n"
        f"# An engineer's own stack: a berth on the environment `{environment}`.\n"
        "config:\n"
        f"  {stack_file.NAMESPACE}:engineer:\n"
        f"    environment: {environment}\n"
    )
    for key, value in shape.entry().items():
        text = with_entry_of(text, key, value)
    change = _Change(path, "", text)
    if _refused(name, change, options):
        return BAD_INPUT
    return _done(options, name, name, change, f"next: pulumi stack init {name} && berth up -s {name}")


def with_entry_of(text: str, key: str, value: Any) -> str:
    """An engineer's file with one more setting."""
    return with_entry(text, ("config", f"{stack_file.NAMESPACE}:engineer"), key, value)


def show(stack: str, *, as_json: bool) -> int:
    """Print who has a berth; the exit code.

    Raises:
        BadInputError: it is not an environment, or its settings are wrong.
    """
    try:
        loaded = load_stack(stack)
    except BadInputError as error:
        raise BadInputError(str(error)) from None
    if not isinstance(loaded, Environment):
        raise BadInputError(f"stack {stack} is not an environment")
    own = {name: of for of in stack_file.stack_names() if (name := _name_on(of, stack))}
    rows = [_row(berth, stack) for berth in loaded.resolved.berths]
    rows += [{"name": name, "stack": of, "workers": None, "gpus": None, "pool": None} for name, of in own.items()]
    if as_json:
        print_json(rows)
        return 0
    table = Table("engineer", "stack", "workers", "GPUs a worker", "pool", box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*("–" if value is None else str(value) for value in row.values()))
    out.print(table if rows else f"nobody has a berth on {stack}")
    return 0


def _row(berth: RayClusterSettings, stack: str) -> dict[str, Any]:
    workers = berth.workers
    count = f"{workers.min}..{workers.max}" if isinstance(workers, Bounds) else workers
    return {
        "name": berth.name,
        "stack": stack,
        "workers": count,
        "gpus": berth.worker.gpus,
        "pool": berth.worker.pool,
    }


def _environment(stack: str) -> tuple[Path, str, dict[str, Any]]:
    """An environment's file: its path, its text, its settings.

    Raises:
        BadInputError: there is none, or it can't be read.
    """
    path = stack_file.stack_path(stack)
    if not path.exists():
        known = did_you_mean(stack, stack_file.stack_names())
        raise BadInputError(f"there is no stack {stack!r}: {stack_file.shown(path)} does not exist{known}")
    try:
        text = path.read_text(encoding="utf-8")
        file = stack_file.parse(path, text)
    except (stack_file.StackFileError, UnicodeDecodeError) as error:
        raise BadInputError(str(error)) from None
    settings = file.settings.get("environment")
    if not isinstance(settings, dict):
        raise BadInputError(f"{file.shown_path}: stack {stack} is not an environment")
    return path, text, settings


def _engineers(settings: Mapping[str, Any]) -> dict[str, Any]:
    engineers = settings.get("engineers")
    found = engineers if isinstance(engineers, dict) else {}
    return {name: {} if entry is None else entry for name, entry in found.items()}


def _edited(edit: Any) -> str:
    try:
        return str(edit())
    except EditError as error:
        raise BadInputError(f"{error}; edit the file by hand") from None


def _must_have_become(change: _Change, engineers: Mapping[str, Any]) -> None:
    """An edit of text must say what was meant, whatever the file looks like.

    Raises:
        BadInputError: it doesn't.
    """
    try:
        before = stack_file.parse(change.path, change.before).settings
        after = stack_file.parse(change.path, change.after).settings
    except stack_file.StackFileError:
        before, after = {}, {"": None}
    wanted = {**before, "environment": {**before.get("environment", {}), "engineers": dict(engineers)}}
    if after.get("environment"):
        after = {**after, "environment": {**after["environment"], "engineers": _engineers(after["environment"])}}
    if after != wanted:
        name = stack_file.shown(change.path)
        raise BadInputError(f"{name} is written in a way that this can't edit (anchors?); edit it by hand")


def _refused(stack: str, change: _Change, options: Options) -> bool:
    """Whether the result would be wrong; then every problem is said, and nothing is written."""
    checked = check(stack, change.after)
    if not checked.lines:
        for warning in checked.warnings:
            err.print(f"warning: {warning}", markup=False, style="yellow")
        return False
    if options.as_json:
        print_json({"stack": stack, "changed": False, "problems": checked.lines})
    err.print(f"[bold red]✗[/] {stack} would be wrong with that; nothing is written")
    for line in checked.lines:
        err.print(f"  {line}", markup=False)
    return True


def _done(options: Options, stack: str, name: str, change: _Change, text: str) -> int:
    if not options.dry_run:
        change.write()
    return _tell(options, stack, name, change, text)


def _tell(options: Options, stack: str, name: str, change: _Change | None, text: str) -> int:
    if options.as_json:
        print_json(
            {
                "stack": stack,
                "name": name,
                "changed": change is not None and not options.dry_run,
                "diff": change.diff if change else "",
            }
        )
        return 0
    if change and options.dry_run:
        out.print(change.diff, markup=False, end="")
        err.print("nothing is written", markup=False)
    elif change:
        out.print(f"{stack_file.shown(change.path)} is {'changed' if change.before else 'written'}", markup=False)
    (err if change and options.dry_run else out).print(text, markup=False)
    return 0


def _takes_away(stack: str, name: str) -> str:
    """What the next update takes away, by the cluster where that can be asked."""
    text = f"the next `berth up -s {stack}` removes namespace {namespace_of(name)} with all that is in it"
    try:
        berth = find(name, stack)
        pods = berth.pods()
    except BadInputError:
        return f"{text}; it is not up"
    except BerthError as error:
        return f"{text}; whether it is up could not be asked: {error}"
    return f"{text}: {_standing(berth, len(pods))}"


def _standing(berth: Berth, pods: int) -> str:
    if not pods:
        return f"RayCluster {berth.key[1]}, {condition_of(berth.cluster).state}, without pods"
    has = f"{counted(pods, 'pod')} and {counted(gpus_of(berth.cluster), 'GPU')}"
    return f"RayCluster {berth.key[1]} is up now, with {has}, and what runs there is lost"


def _name_on(stack: str, environment: str) -> str | None:
    """Whose berth a stack is, if it is an engineer's own on an environment."""
    with suppress(BadInputError):
        loaded = load_stack(stack)
        if isinstance(loaded, EngineerStack) and loaded.settings.environment == environment:
            return loaded.settings.name or stack
    return None


def _own_stack_of(name: str, environment: str) -> str | None:
    """An engineer's own stack on an environment."""
    return next((stack for stack in stack_file.stack_names() if _name_on(stack, environment) == name), None)


def _line(path: Path, text: str, name: str) -> str:
    file = stack_file.parse(path, text)
    return f"{file.shown_path}:{file.line(('environment', 'engineers', name))}"
