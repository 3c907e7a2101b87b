"""The `berth` command: its verbs, and the one place where errors become text and exit codes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from importlib import import_module
from importlib.metadata import version
from pkgutil import iter_modules
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from berth.cli import verbs
from berth.cli.console import err, print_error
from berth.components.core.errors import FAILED, BerthError

INTERRUPTED, TERMINATED = 130, 143


class Verbs(TyperGroup):
    """The modules of the package `verbs`, each imported when it is needed."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all verbs."""
        return sorted(module.name for module in iter_modules(verbs.__path__))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb's command; None for an unknown verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"{verbs.__name__}.{cmd_name}")
        group = getattr(module, "app", None)
        if group is None:
            group = typer.Typer(add_completion=False)
            group.command(cmd_name)(module.run)
        command = typer.main.get_command(group)
        command.name = cmd_name
        return command

    def invoke(self, ctx: Any) -> NoReturn:
        """Run a verb; end with its exit code, or that of the error that ended it."""
        signal.signal(signal.SIGTERM, _terminate)
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BerthError as error:
            print_error(error)
            code = error.code
        except ModuleNotFoundError as error:
            from berth.cli.extras import missing  # noqa: PLC0415

            if (explained := missing(error.name or "")) is None:
                raise
            print_error(explained)
            code = explained.code
        except BrokenPipeError:
            _discard_stdout()  # the reader (`| head`) has enough
            code = 0
        except OSError as error:  # a full disk, a folder without write permission, a path through a file
            code = _failed(error)
        except KeyboardInterrupt:
            err.print("interrupted")
            code = INTERRUPTED
        raise typer.Exit(code or 0)


def _discard_stdout() -> None:
    """Send the rest of stdout nowhere; Python would fail to write it at exit."""
    with contextlib.suppress(OSError):  # a stdout without a file has nothing to write at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(error: OSError) -> int:
    """Print an error of the operating system; return the exit code."""
    _discard_stdout()
    print_error(BerthError(f"{error.filename}: {error.strerror}" if error.filename else str(error)))
    return FAILED


def _terminate(_signal: int, _frame: object) -> NoReturn:
    """End after SIGTERM as after Ctrl-C: what was begun is cleaned up."""
    raise SystemExit(TERMINATED)


app = typer.Typer(
    name="berth",
    cls=Verbs,
    help="Every engineer gets a berth on shared GPUs. `pulumi up -s STACK` makes them; berth checks and shows them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer's signature
    if value:
        typer.echo(f"berth {version('berth')}")
        raise typer.Exit


@app.callback()
def _berth(
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print berth's version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Stand for `berth` without a verb."""


def main() -> None:
    """Run the command."""
    try:
        try:
            app(prog_name="berth")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        raise SystemExit(0) from None
    except OSError as error:  # `--help` and `--version` print before there is a verb
        raise SystemExit(_failed(error)) from None
