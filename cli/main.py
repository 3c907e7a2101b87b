"""The `berth` command: its verbs, and the one place where errors become text and exit codes."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any

import typer
from typer._completion_classes import completion_init

from berth.cli import completion, verbs
from berth.cli.__main__ import INTERRUPTED
from berth.cli.console import err, print_error
from berth.cli.help import Command, Group, Section
from berth.cli.signals import leave_to_the_system, raise_on_signals, unwrapped
from berth.cli.usage import NoArgsIsHelpError, UsageError, refused
from berth.components.core.errors import BAD_INPUT, FAILED, BerthError


class Verbs(Group):
    """The modules of the package `verbs`, each imported when it is needed."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all verbs."""
        return sorted(module.name.replace("_", "-") for module in iter_modules(verbs.__path__))

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """Return a verb's command; None for an unknown verb."""
        if cmd_name not in self.list_commands(_ctx):
            return None
        module = _module(cmd_name)
        group = getattr(module, "app", None)
        if group is None:
            group = typer.Typer(add_completion=False)
            group.command(cmd_name, cls=Command)(module.run)
        command = typer.main.get_command(group)
        command.name = cmd_name
        return command

    def sections(self, ctx: Any) -> Iterable[tuple[str, Sequence[str]]]:
        """Return the sections of the help page, each with its verbs' names."""
        section_of = {name: _module(name).SECTION for name in self.list_commands(ctx)}
        return [(section.value, [name for name, own in section_of.items() if own is section]) for section in Section]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - typer's signature
        windows_expand_args: bool = True,  # noqa: ARG002, FBT001, FBT002 - the same
        **extra: Any,
    ) -> int:
        """Run a verb; end with its exit code, or that of the error that ended it."""
        name, words = prog_name or "berth", list(sys.argv[1:] if args is None else args)
        if os.environ.get("_BERTH_COMPLETE"):
            completion_init()
            self._main_shell_completion(extra, name, complete_var)
        code = self._code(name, words)
        if standalone_mode:
            sys.exit(code)
        return code

    def _code(self, name: str, words: list[str]) -> int:
        """Return the exit code of a call."""
        try:
            with unwrapped(), self.make_context(name, words) as ctx:
                code = self.invoke(ctx)
            sys.stdout.flush()
        except typer.Exit as end:
            code = end.exit_code
        except NoArgsIsHelpError as error:
            typer.echo(error.format_message(), err=True)
            code = BAD_INPUT
        except UsageError as error:
            code = _failed(refused(error))
        except BerthError as error:
            code = _failed(error)
        except ModuleNotFoundError as error:
            from berth.cli.extras import missing  # noqa: PLC0415

            if (explained := missing(error.name or "")) is None:
                raise
            code = _failed(explained)
        except BrokenPipeError:
            _discard_stdout()  # the reader (`| head`) has enough
            code = 0
        except OSError as error:  # a full disk, a folder without write permission, a path through a file
            _discard_stdout()
            code = _failed(_of_system(error))
        except (KeyboardInterrupt, typer.Abort):
            err.print("interrupted")
            code = INTERRUPTED
        return int(code or 0)


def _discard_stdout() -> None:
    """Send the rest of stdout nowhere; Python would fail to write it at exit."""
    with contextlib.suppress(OSError):  # a stdout without a file has nothing to write at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(error: BerthError) -> int:
    """Print an error; return the exit code."""
    print_error(error)
    return error.code


def _of_system(error: OSError) -> BerthError:
    """Return an error of the operating system as one of berth's."""
    return BerthError(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _module(verb: str) -> Any:
    return import_module(f"{verbs.__name__}.{verb.replace('-', '_')}")


app = typer.Typer(
    name="berth",
    cls=Verbs,
    help="Every engineer gets a berth on shared GPUs. `pulumi up -s STACK` makes them; berth checks and shows them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer's signature
    if value:
        from importlib.metadata import version  # noqa: PLC0415 - takes a tenth of a second

        typer.echo(f"berth {version('berth')}")
        raise typer.Exit


def _install_completion(value: bool) -> None:  # noqa: FBT001 - typer's signature
    if value:
        typer.echo(completion.install())
        raise typer.Exit


def _show_completion(value: bool) -> None:  # noqa: FBT001 - typer's signature
    if value:
        typer.echo(completion.script())
        raise typer.Exit


def _early(name: str, help_text: str, callback: Callable[[bool], None]) -> Any:
    """Return an option that does its work before there is a verb."""
    return typer.Option(name, help=help_text, callback=callback, is_eager=True)


@app.callback()
def _berth(
    *,
    _version: Annotated[bool, _early("--version", "Print berth's version.", _print_version)] = False,
    _install: Annotated[
        bool, _early("--install-completion", "Install completion for the current shell.", _install_completion)
    ] = False,
    _show: Annotated[
        bool, _early("--show-completion", "Print the completion script for the current shell.", _show_completion)
    ] = False,
) -> None:
    """Stand for `berth` without a verb."""


def main() -> None:
    """Run the command, and end the process."""
    code = FAILED
    try:
        raise_on_signals()
        try:
            app(prog_name="berth")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else FAILED
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        code = 0
    except OSError as error:  # what Python still had to write, to a full disk
        _discard_stdout()
        code = _failed(_of_system(error))
    leave_to_the_system()
    # Python looks for garbage in all modules before it ends: a fourth of a short command's CPU.
    gc.freeze()
    sys.exit(code)
