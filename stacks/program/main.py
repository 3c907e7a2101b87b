"""Program that `pulumi up` runs: load the stack's settings, then build the stack."""

import datetime as dt
import json
import os
import signal
from collections.abc import Iterator
from typing import Any, NoReturn

import pulumi
from pulumi.runtime import get_config_env

from berth.components.core.errors import BerthError
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.types import iso_time
from berth.components.plan.plan import BY_BERTH
from berth.stacks.files import passphrase, stack_file
from berth.stacks.files.stack_file import NAMESPACE, StackFile
from berth.stacks.load.stack import EngineerStack, Environment, SettingsError, load
from berth.stacks.program import DIGEST, SETTINGS_OUTPUT
from berth.stacks.program.debug_messages import send_no_debug_messages
from berth.stacks.program.deletions import names_of_last_update, warn_of_deletions
from berth.stacks.program.judged import digest_of_files, refuse_unjudged
from berth.stacks.program.waiting import NotReadyError, Registered, wait_until_ready

# Exit code that the language host knows: the error is reported already, so it adds nothing.
_REPORTED = 32


def run() -> None:
    """Build the stack that Pulumi runs this program for."""
    signal.signal(signal.SIGINT, _leave_quietly)
    if os.environ.get(BY_BERTH):
        send_no_debug_messages()
    pulumi.run(program)


async def program() -> None:
    """Load the stack that Pulumi runs this program for, and build it.

    Raises:
        SystemExit: it failed, and the error is reported.
    """
    stack = pulumi.get_stack()
    values = _values()
    # With `--config-file` there may be none, and errors have no lines.
    path = stack_file.stack_path(stack)
    try:
        file = stack_file.read_stack_file(path) if path.exists() else None
        passphrase.refuse_public(
            stack, path.read_text(encoding="utf-8") if file else "", os.environ
        )
        if file:
            _refuse_differences(file, values)
        loaded = load(stack, values, file)
        refuse_unjudged(loaded)
        await build(loaded)
    except NotReadyError:
        raise SystemExit(_REPORTED) from None
    except (BerthError, pulumi.RunError) as error:
        # Pulumi would report a RunError too, and then that the program ended with code 1.
        pulumi.log.error(str(error))
        raise SystemExit(_REPORTED) from None


async def build(loaded: Environment | EngineerStack, *, recorded: bool = False) -> None:
    """Build a loaded stack: register it, export its outputs, wait until it is ready.

    A program that is only recorded has no engine, and so no state of its own.
    """
    before = {} if recorded else await names_of_last_update()
    registered = await register(loaded, recorded=recorded)
    for name, value in registered.outputs.items():
        pulumi.export(name, value)
    if os.environ.get(DIGEST):
        pulumi.export(SETTINGS_OUTPUT, digest_of_files(loaded))
    await warn_of_deletions(before, registered)
    await wait_until_ready(loaded.stack, registered)


async def register(
    loaded: Environment | EngineerStack, *, recorded: bool = False, prefix: str = ""
) -> Registered:
    """Register a loaded stack; for `recorded` see `build`, for `prefix` an engineer's program.

    A program is imported only when it is built: an environment's takes seconds.
    """
    if isinstance(loaded, Environment):
        from berth.stacks.program.environment import register_environment  # noqa: PLC0415

        return await register_environment(loaded, recorded=recorded)
    from berth.stacks.program.engineer import register_engineer  # noqa: PLC0415

    return await register_engineer(loaded, prefix=prefix)


def _refuse_differences(file: StackFile, values: dict[str, Any]) -> None:
    """Refuse settings that Pulumi passes and the stack's file, which checks judge, does not have.

    Whatever makes two readers of one YAML text disagree, what is applied is what was judged.
    """
    paths = list(differences(file.settings, values))
    if paths:
        message = (
            "is another value for Pulumi than in this file, which `berth check` and previews judge;"
            " write it in plain YAML, and take out `--config-file` and `secure:`"
        )
        raise SettingsError(pulumi.get_stack(), [Problem(path, message) for path in paths], file)


def differences(judged: Any, given: Any, path: SettingPath = ()) -> Iterator[SettingPath]:
    """Yield the paths at which two values differ; an instant equals its text."""
    if isinstance(judged, dict) and isinstance(given, dict):
        for key in dict.fromkeys([*judged, *given]):
            if key not in judged or key not in given:
                yield (*path, key)
            else:
                yield from differences(judged[key], given[key], (*path, key))
    elif isinstance(judged, list) and isinstance(given, list) and len(judged) == len(given):
        for position, pair in enumerate(zip(judged, given, strict=True)):
            yield from differences(*pair, (*path, position))
    elif isinstance(judged, dt.date):
        if _instant(judged) != _instant(given):
            yield path
    elif isinstance(judged, bool) is not isinstance(given, bool) or judged != given:
        yield path


def _instant(value: Any) -> dt.datetime | None:
    """Return a date, a time, or Pulumi's text of one as an instant; without a zone it is UTC.

    YAML has more forms of a time in Python than in Go: Pulumi passes the others as they stand.
    """
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(iso_time(value))
        except ValueError:
            return None
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if not isinstance(value, dt.datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=dt.UTC)


def _values() -> dict[str, Any]:
    """Return the settings by key in berth's namespace, decrypted, with `--config` applied."""
    prefix = f"{NAMESPACE}:"
    return {
        key[len(prefix) :]: parsed(value)
        for key, value in get_config_env().items()
        if key.startswith(prefix)
    }


def parsed(value: str) -> Any:
    """Return a value of Pulumi's configuration: structured ones are passed as JSON."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def _leave_quietly(_signal: int, _frame: object) -> NoReturn:
    """Exit without a traceback when the engine, which reports why, ends an update.

    At once: an exception would wait for the thread that waits for RayClusters.
    """
    os._exit(_REPORTED)
