"""`berth diagnose`: one file that explains a berth's state, without secrets."""

import os
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import yaml

from berth.cli.reach.berths import LiveBerth, live_berth
from berth.cli.reach.environment import NotUpError
from berth.cli.reach.kubectl import write_private
from berth.cli.reach.named_berth import berth_and_stack
from berth.cli.reach.ray_token import read_token
from berth.cli.shell.console import err, print_result
from berth.cli.verbs.diagnose.known_secrets import secrets_of_environment, secrets_of_kubeconfig
from berth.cli.verbs.diagnose.parts import (
    DiagnosisPart,
    berth_parts,
    plan_part,
    settings_part,
    versions_part,
)
from berth.cli.verbs.diagnose.secrets import scrubbed
from berth.components.core.errors import BadInputError, BerthError
from berth.stacks.files import stack_file

_SUMMARY = (
    "Secrets and kubeconfigs were not gathered. Values of environment variables, and what looks"
    " like a secret, were removed."
)
_FENCE = "````"


def write_diagnosis(
    name: str | None, stack: str | None, output: Path | None, *, plan: bool, as_json: bool
) -> int:
    """Write the diagnosis of a berth; return the exit code.

    Args:
        name: name of the berth; by default that of the stack.
        stack: stack of the berth; by default found by its name.
        output: the file to write, `-` for stdout; by default one with the berth's name and a time.
        plan: whether the diagnosis has what an update would do.
        as_json: whether the summary is printed as JSON.

    Raises:
        BadInputError: nobody has that name.
    """
    name, stack = berth_and_stack(name, stack)
    now = datetime.now(tz=UTC)
    path = output or Path(f"berth-{name}-{now:%Y%m%d-%H%M%S}.md")
    secrets = secrets_of_environment(os.environ)
    parts = [settings_part(stack)]
    code = 0
    try:
        berth = live_berth(name, stack)
    except BerthError as error:
        if isinstance(error, BadInputError) and not isinstance(error, NotUpError):
            raise
        code = error.code
        parts += _parts_without_berth(stack, error, plan=plan)
    else:
        secrets += _secrets_of_berth(berth)
        parts += _parts_of_berth(berth, stack, plan=plan)
    for part in parts:
        secrets += part.lost
    text = scrubbed(rendered_diagnosis(name, stack, parts, now), secrets)
    if str(path) == "-":
        sys.stdout.write(text)
        return code
    path.unlink(missing_ok=True)
    write_private(path, text)
    _print_summary(name, path, parts, text, as_json=as_json)
    return code


def _parts_without_berth(stack: str, error: BerthError, *, plan: bool) -> list[DiagnosisPart]:
    """Return what there is about a berth that cannot be asked."""
    parts = [DiagnosisPart("The berth", str(error), missing=True)]
    if plan:
        part = plan_part(stack)
        same_reason = part.text == str(error)
        parts.append(replace(part, text="not made, for the same reason") if same_reason else part)
    parts.append(versions_part(None))
    return parts


def _parts_of_berth(berth: LiveBerth, stack: str, *, plan: bool) -> list[DiagnosisPart]:
    others = {berth.stack, berth.environment.stack} - {stack}
    parts = [
        settings_part(other) for other in sorted(others) if stack_file.stack_path(other).exists()
    ]
    return [*parts, *berth_parts(berth, plan=plan), versions_part(berth.api)]


def _secrets_of_berth(berth: LiveBerth) -> list[str]:
    secrets = secrets_of_kubeconfig(yaml.safe_load(berth.environment.kubeconfig))
    with suppress(BerthError):
        token = read_token(berth)
        if token:
            secrets.append(token)
    return secrets


def _print_summary(
    name: str, path: Path, parts: list[DiagnosisPart], text: str, *, as_json: bool
) -> None:
    missing = [part for part in parts if part.missing]
    size = len(text.encode()) // 1024 + 1
    document = {
        "name": name,
        "file": str(path),
        "parts": [part.title for part in parts],
        "missing": [part.title for part in missing],
    }
    summary = f"{path} has {len(parts)} parts, {size} KiB; look through it before you send it on"
    print_result(document, summary, as_json=as_json)
    for part in missing:
        err.print(f"could not be gathered: {part.title}: {part.text}", style="yellow")


def rendered_diagnosis(name: str, stack: str, parts: list[DiagnosisPart], now: datetime) -> str:
    """Return the parts as one text in Markdown."""
    lines = [
        f"# Berth {name}",
        "",
        f"{now:%Y-%m-%d %H:%M:%S} UTC, by way of stack {stack}. {_SUMMARY}",
        "",
    ]
    missing = [part for part in parts if part.missing]
    if missing:
        lines += ["Could not be gathered:", ""]
        lines += [f"- {part.title}: {part.text}" for part in missing]
        lines.append("")
    for part in parts:
        if not part.missing:
            lines += [f"## {part.title}", "", f"{_FENCE}{part.language}"]
            lines += [part.text.rstrip("\n"), _FENCE, ""]
    return "\n".join(lines)
