"""`berth diagnose`: gather, take the secrets out, write one file."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import yaml

from berth.cli.berths import Berth, Named, find, which
from berth.cli.connect import read_token
from berth.cli.console import err, out, print_json
from berth.cli.diagnose.gather import Part, of_berth, part, plan_of, settings_of, versions
from berth.cli.diagnose.secrets import scrubbed, secrets_of_environment, secrets_of_kubeconfig
from berth.cli.environment import NotUpError
from berth.cli.kubectl import write_private
from berth.components.core.errors import FAILED, BadInputError, BerthError
from berth.stacks import stack_file

_SUMMARY = "Secrets and kubeconfigs were not gathered, and what looks like a secret was removed."


def diagnose(name: str | None, stack: str | None, output: Path | None, *, plan: bool, as_json: bool) -> int:
    """Write the diagnosis of a berth; the exit code."""
    named = which(name, stack)
    now = datetime.now(tz=UTC)
    path = output or Path(f"berth-{named.name}-{now:%Y%m%d-%H%M%S}.md")
    parts, known, up = gather(named, plan=plan)
    text = scrubbed(rendered(named, parts, now), known)
    if str(path) == "-":
        sys.stdout.write(text)
        return 0 if up else FAILED
    path.unlink(missing_ok=True)
    write_private(path, text)
    missing = [each.title for each in parts if each.missing]
    if as_json:
        print_json({"name": named.name, "file": str(path), "parts": [each.title for each in parts], "missing": missing})
    else:
        out.print(
            f"{path} has {len(parts)} parts, {len(text.encode()) // 1024 + 1} KiB; look through it before you send it on"
        )
    for each in parts:
        if each.missing:
            err.print(f"could not be had: {each.title}: {each.text}", markup=False, style="yellow")
    return 0 if up else FAILED


def gather(named: Named, *, plan: bool) -> tuple[list[Part], list[str], bool]:
    """The parts, secrets that are known, and whether the berth could be asked at all."""
    known = secrets_of_environment(os.environ)
    parts = [_settings(named.stack)]
    berth: Berth | None = None
    try:
        berth = find(named.name, named.stack)
    except BerthError as error:
        if isinstance(error, BadInputError) and not isinstance(error, NotUpError):
            raise
    if berth is None:
        # Once more, for the reason.
        parts.append(part("The berth", lambda: find(named.name, named.stack) and ""))
        if plan:
            parts.append(part(f"Plan of stack {named.stack}", lambda: plan_of(named.stack)))
        return [*parts, part("Versions", lambda: versions(None))], known, False
    known += secrets_of_kubeconfig(yaml.safe_load(berth.environment.kubeconfig))
    with suppress(BerthError):
        known += filter(None, [read_token(berth)])
    others = {berth.stack, berth.environment.stack} - {named.stack}
    parts += [_settings(each) for each in sorted(others) if stack_file.stack_path(each).exists()]
    return [*parts, *of_berth(berth, plan=plan), part("Versions", lambda: versions(berth.api))], known, True


def _settings(stack: str) -> Part:
    return part(f"Settings of stack {stack}", lambda: settings_of(stack))


def rendered(named: Named, parts: list[Part], now: datetime) -> str:
    """The parts as one text."""
    lines = [f"# Berth {named.name}", "", f"{now:%Y-%m-%d %H:%M:%S} UTC, by way of stack {named.stack}. {_SUMMARY}", ""]
    if missing := [each for each in parts if each.missing]:
        lines += ["Could not be had:", "", *(f"- {each.title}: {each.text}" for each in missing), ""]
    for each in parts:
        if not each.missing:
            fence = "`" * 4
            lines += [f"## {each.title}", "", f"{fence}{each.language}", each.text.rstrip("\n"), fence, ""]
    return "\n".join(lines)
