"""Program that `pulumi up` runs: load the stack's settings, then build the stack."""

from __future__ import annotations

import json
import os
import signal
from typing import Any, NoReturn

import pulumi
from pulumi.runtime import get_config_env

from berth.components.core.errors import BerthError
from berth.stacks.files import passphrase, stack_file
from berth.stacks.files.stack_file import NAMESPACE, StackFile
from berth.stacks.load.stack import EngineerStack, Environment, load
from berth.stacks.program import NO_WAIT
from berth.stacks.program.waiting import NotReadyError

# Exit code that the language host knows: the error is reported already, so it adds nothing.
_REPORTED = 32


def run() -> None:
    """Build the stack that Pulumi runs this program for."""
    signal.signal(signal.SIGINT, _leave_quietly)
    pulumi.run(_build)


async def _build() -> None:
    try:
        await _load_and_build()
    except NotReadyError:
        raise SystemExit(_REPORTED) from None
    except BerthError as error:
        pulumi.log.error(str(error))
        raise SystemExit(_REPORTED) from None


async def _load_and_build() -> None:
    stack = pulumi.get_stack()
    file = _file_of(stack)
    passphrase.refuse_public(stack, file.path.read_text(encoding="utf-8") if file else "", os.environ)
    await build(load(stack, _values(), file), wait=not os.environ.get(NO_WAIT))


async def build(loaded: Environment | EngineerStack, *, wait: bool = True) -> None:
    """Build a loaded stack.

    A program is imported only when it is built: an environment's takes seconds.

    Args:
        loaded: the stack.
        wait: wait until everything is ready.

    Raises:
        BerthError: the stack cannot be built, or is not ready in time.
    """
    if isinstance(loaded, Environment):
        from berth.stacks.program.environment import environment  # noqa: PLC0415

        await environment(loaded, wait=wait)
    else:
        from berth.stacks.program.engineer import engineer  # noqa: PLC0415

        await engineer(loaded, wait=wait)


def _file_of(stack: str) -> StackFile | None:
    """Return the stack's config file; with `--config-file` errors have no lines."""
    path = stack_file.stack_path(stack)
    return stack_file.read(path) if path.exists() else None


def _values() -> dict[str, Any]:
    """Return the settings by key in berth's namespace, decrypted, with `--config` applied."""
    prefix = f"{NAMESPACE}:"
    return {key[len(prefix) :]: _parse(value) for key, value in get_config_env().items() if key.startswith(prefix)}


def _parse(value: str) -> Any:
    """Parse a value: Pulumi passes structured values as JSON."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def _leave_quietly(_signal: int, _frame: object) -> NoReturn:
    """Exit without a traceback when the engine, which reports why, ends an update.

    At once: an exception would wait for the thread that waits for RayClusters.
    """
    os._exit(_REPORTED)
