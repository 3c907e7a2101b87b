"""Program that `pulumi up` runs: load the stack's settings, then build the stack."""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import signal
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pulumi
from pulumi.runtime import resource
from pulumi.runtime.config import CONFIG, get_config_env
from pulumi.runtime.proto.source_pb2 import StackTrace
from pulumi.runtime.stack import Stack

from berth.components.core.errors import BerthError
from berth.stacks.files import passphrase, stack_file
from berth.stacks.files.stack_file import NAMESPACE, StackFile
from berth.stacks.load.stack import EngineerStack, Environment, load
from berth.stacks.program.waiting import NotReadyError

# Exit code that the language host knows: the error is reported already, so it adds nothing.
_REPORTED = 32


def run() -> None:
    """Build the stack that Pulumi runs this program for."""
    signal.signal(signal.SIGINT, _leave_quietly)
    _record_no_source_positions()
    # Python looks for garbage in all modules before it ends, which takes as long as a small stack.
    atexit.register(gc.freeze)
    pulumi.run(_build)


async def _build() -> None:
    try:
        await _load_and_build()
    except NotReadyError:
        raise SystemExit(_REPORTED) from None
    except BerthError as error:
        pulumi.log.error(str(error))
        raise SystemExit(_REPORTED) from None


@dataclass
class Inline:
    """Program of a stack in a process that drives the engine, and waits for everything itself.

    Attributes:
        unchanged: names of an environment's berths that the engine is told to leave as they are.
        exported: the outputs of the last run; None for one that only an update knows.
        secret: names of the outputs that are secret.
    """

    unchanged: Collection[str] = ()
    exported: dict[str, Any] = field(default_factory=dict, init=False)
    secret: set[str] = field(default_factory=set, init=False)

    async def __call__(self) -> None:
        """Build the stack."""
        _record_no_source_positions()
        try:
            await _load_and_build(wait=False, unchanged=self.unchanged)
        except BerthError as error:
            raise pulumi.RunError(str(error)) from None
        root = pulumi.runtime.get_root_resource()
        # The engine reports a resource that fails, and with it the outputs that need it.
        with contextlib.suppress(Exception):
            for name, value in (root.outputs if isinstance(root, Stack) else {}).items():
                output = value if isinstance(value, pulumi.Output) else pulumi.Output.from_input(value)
                self.exported[name] = await output.future()
                if await output.is_secret():
                    self.secret.add(name)


async def _load_and_build(*, wait: bool = True, unchanged: Collection[str] = ()) -> None:
    stack = pulumi.get_stack()
    file = _file_of(stack)
    passphrase.refuse_public(stack, file.path.read_text(encoding="utf-8") if file else "", os.environ)
    await build(load(stack, _values(), file), wait=wait, unchanged=unchanged)


async def build(loaded: Environment | EngineerStack, *, wait: bool = True, unchanged: Collection[str] = ()) -> None:
    """Build a loaded stack.

    A program is imported only when it is built: an environment's takes seconds.

    Args:
        loaded: the stack.
        wait: wait until everything is ready.
        unchanged: names of an environment's berths that are left out.

    Raises:
        BerthError: the stack cannot be built, or is not ready in time.
    """
    if isinstance(loaded, Environment):
        from berth.stacks.program.environment import environment  # noqa: PLC0415

        await environment(loaded, wait=wait, unchanged=unchanged)
    else:
        from berth.stacks.program.engineer import engineer  # noqa: PLC0415

        await engineer(loaded, wait=wait)


def _record_no_source_positions() -> None:
    """Keep the program's call stack out of the state of each resource.

    It is 1.6 kB a resource, a third of a berth's state, and consists of paths of the machine that
    ran the update. The SDK has no setting for this (pulumi 3.272, `runtime/resource.py`).
    """
    resource._get_stack_trace = StackTrace  # noqa: SLF001 - see above


def _file_of(stack: str) -> StackFile | None:
    """Return the stack's config file; with `--config-file` errors have no lines."""
    path = stack_file.stack_path(stack)
    return stack_file.read(path) if path.exists() else None


def _values() -> dict[str, Any]:
    """Return the settings by key in berth's namespace, decrypted, with `--config` applied."""
    prefix = f"{NAMESPACE}:"
    # The language host passes them in a variable of the environment, the engine itself to `inline`.
    known = CONFIG.get() or get_config_env()
    return {key[len(prefix) :]: _parse(value) for key, value in known.items() if key.startswith(prefix)}


def _parse(value: str) -> Any:
    """Parse a value: Pulumi passes structured values as JSON."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def _leave_quietly(_signal: int, _frame: object) -> NoReturn:
    """Exit without a traceback when the engine, which reports why, ends an update."""
    os._exit(_REPORTED)
