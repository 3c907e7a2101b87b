"""What `pulumi up` runs: load this stack's settings, build the stack. Which kind it is, the settings say."""

from __future__ import annotations

import json
import os
import signal
from typing import Any, NoReturn

import pulumi

from berth.stacks import stack_file
from berth.stacks.load import SettingsError, load
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.stack_file import NAMESPACE, StackFile, StackFileError
from berth.stacks.waiting import NotReadyError

# The language host's agreement: the user has been told what is wrong, so add nothing.
_SAID_ALREADY = 32


def run() -> None:
    """Build the stack that Pulumi runs this program for."""
    signal.signal(signal.SIGINT, _leave_quietly)
    pulumi.run(_build)


async def _build() -> None:
    stack = pulumi.get_stack()
    try:
        file = _file_of(stack)
        settings = load(stack, _values(), file)
        # Each kind is imported only when it is built: an environment's takes seconds.
        if isinstance(settings, EnvironmentSettings):
            from berth.stacks.environment import environment  # noqa: PLC0415

            await environment(stack, settings, file)
        else:
            from berth.stacks.engineer import engineer  # noqa: PLC0415

            await engineer(stack, settings, file)
    except (SettingsError, StackFileError) as error:
        pulumi.log.error(str(error))
        raise SystemExit(_SAID_ALREADY) from None
    except NotReadyError:
        raise SystemExit(_SAID_ALREADY) from None


def _file_of(stack: str) -> StackFile | None:
    """The stack's config file where it is at its usual place; with `--config-file` errors come without lines."""
    path = stack_file.stack_path(stack)
    return stack_file.read(path) if path.exists() else None


def _values() -> dict[str, Any]:
    """Settings as Pulumi has them, secrets decrypted and `--config` applied, by key in berth's namespace."""
    prefix = f"{NAMESPACE}:"
    known = pulumi.runtime.get_config_env()
    return {key[len(prefix) :]: _parse(value) for key, value in known.items() if key.startswith(prefix)}


def _parse(value: str) -> Any:
    """Pulumi hands structured values over as JSON."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def _leave_quietly(_signal: int, _frame: object) -> NoReturn:
    """The engine interrupts the program when an update fails or is cancelled: it says why, Python need not."""
    os._exit(_SAID_ALREADY)
