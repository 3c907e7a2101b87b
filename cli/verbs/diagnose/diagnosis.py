"""`berth diagnose`: gather, take the secrets out, write one file."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import yaml

from berth.cli.reach.berths import Named, find, which
from berth.cli.reach.environment import NotUpError
from berth.cli.reach.head import read_token
from berth.cli.reach.kubectl import write_private
from berth.cli.shell.console import err, out, print_json
from berth.cli.verbs.diagnose.gather import Part, gathered, of_berth, plan_of, settings_of, versions
from berth.cli.verbs.diagnose.secrets import scrubbed, secrets_of_environment, secrets_of_kubeconfig
from berth.components.core.errors import BadInputError, BerthError
from berth.stacks.files import stack_file

_SUMMARY = (
    "Secrets and kubeconfigs were not gathered. Values of environment variables, and what looks like a secret, were"
    " removed."
)


def diagnose(name: str | None, stack: str | None, output: Path | None, *, plan: bool, as_json: bool) -> int:
    """Write the diagnosis of a berth; return the exit code."""
    named = which(name, stack)
    now = datetime.now(tz=UTC)
    path = output or Path(f"berth-{named.name}-{now:%Y%m%d-%H%M%S}.md")
    parts, known, code = gather(named, plan=plan)
    lost = {value for part in parts for value in part.lost}
    text = scrubbed(rendered(named, parts, now), {*known, *lost})
    if str(path) == "-":
        sys.stdout.write(text)
        return code
    path.unlink(missing_ok=True)
    write_private(path, text)
    missing = [part for part in parts if part.missing]
    if as_json:
        titles = {"parts": [part.title for part in parts], "missing": [part.title for part in missing]}
        print_json({"name": named.name, "file": str(path), **titles})
    else:
        size = len(text.encode()) // 1024 + 1
        out.print(f"{path} has {len(parts)} parts, {size} KiB; look through it before you send it on")
    for part in missing:
        err.print(f"could not be gathered: {part.title}: {part.text}", markup=False, style="yellow")
    return code


def gather(named: Named, *, plan: bool) -> tuple[list[Part], list[str], int]:
    """Return the parts, known secrets, and the exit code: 0 if the berth could be asked."""
    known = secrets_of_environment(os.environ)
    parts = [_settings(named.stack)]
    try:
        berth = find(named.name, named.stack)
    except BerthError as error:
        if isinstance(error, BadInputError) and not isinstance(error, NotUpError):
            raise
        parts.append(Part("The berth", str(error), missing=True))
        if plan:
            part = gathered(f"Plan of stack {named.stack}", lambda: plan_of(named.stack))
            parts.append(replace(part, text="not made, for the same reason") if part.text == str(error) else part)
        return [*parts, gathered("Versions", lambda: versions(None))], known, error.code
    known += secrets_of_kubeconfig(yaml.safe_load(berth.environment.kubeconfig))
    with suppress(BerthError):
        known += filter(None, [read_token(berth)])
    others = {berth.stack, berth.environment.stack} - {named.stack}
    parts += [_settings(stack) for stack in sorted(others) if stack_file.stack_path(stack).exists()]
    return [*parts, *of_berth(berth, plan=plan), gathered("Versions", lambda: versions(berth.api))], known, 0


def _settings(stack: str) -> Part:
    return gathered(f"Settings of stack {stack}", lambda: settings_of(stack))


def rendered(named: Named, parts: list[Part], now: datetime) -> str:
    """Return the parts as one text."""
    lines = [f"# Berth {named.name}", "", f"{now:%Y-%m-%d %H:%M:%S} UTC, by way of stack {named.stack}. {_SUMMARY}", ""]
    if missing := [part for part in parts if part.missing]:
        lines += ["Could not be gathered:", "", *(f"- {part.title}: {part.text}" for part in missing), ""]
    for part in parts:
        if not part.missing:
            fence = "`" * 4
            lines += [f"## {part.title}", "", f"{fence}{part.language}", part.text.rstrip("\n"), fence, ""]
    return "\n".join(lines)
