"""The `berth` command: its verbs, and the one place where errors become text and exit codes."""

import contextlib
import os
import re
import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from berth.cli import verbs
from berth.cli.shell.console import err, print_error
from berth.cli.shell.help import SECTIONS, section_of
from berth.cli.shell.signals import INTERRUPTED, leave_to_the_system, raise_on_signals, unwrapped
from berth.components.core.distribution import NAME, installed_version
from berth.components.core.errors import BAD_INPUT, FAILED, BadInputError, BerthError
from berth.components.core.words import counted

_USAGE = typer.BadParameter.__base__
"""Class of the error for words that a command does not take."""


class Verbs(TyperGroup):
    """The modules of the package `verbs`, each imported when it is needed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Names alone, which typer compares with a misspelled one.
        names: Any = dict.fromkeys(
            module.name.replace("_", "-") for module in iter_modules(verbs.__path__)
        )
        self.commands = names

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all verbs in the order of the help's sections."""
        sections = list(SECTIONS)
        return sorted(self.commands, key=lambda name: (sections.index(section_of(name)), name))

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """Return a verb's command; None for an unknown verb."""
        if cmd_name not in self.commands:
            return None
        module = import_module(f"{verbs.__name__}.{cmd_name.replace('-', '_')}")
        group = getattr(module, "app", None)
        if group is None:
            group = typer.Typer(add_completion=False, rich_markup_mode="markdown")
            group.command(cmd_name)(module.run)
        command: Any = typer.main.get_command(group)
        command.name = cmd_name
        command.rich_help_panel = section_of(cmd_name)
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run a verb, which a closed pipe ends without an error."""
        try:
            with unwrapped():
                code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_stdout()  # the reader (`| head`) has enough
            return 0
        return code

    def main(self, args: Any = None, standalone_mode: bool = True, **settings: Any) -> int:  # type: ignore[override]  # noqa: FBT001, FBT002 - typer's
        """Run the command line; end with the exit code of a verb, or of the error that ended it."""
        try:
            code = super().main(args, standalone_mode=False, **settings)
        except typer.Abort:
            code = INTERRUPTED
        except (BerthError, typer.TyperException, ModuleNotFoundError, OSError) as error:
            code = _failed(error)
        if code == INTERRUPTED:
            err.print("interrupted")
        if standalone_mode:
            sys.exit(code or 0)
        return int(code or 0)


def _failed(error: Exception) -> int:
    """Print what an exception means; return the exit code. An exception that is a bug is raised."""
    if isinstance(error, typer.TyperException) and not error.format_message():
        return BAD_INPUT
    if isinstance(error, OSError):
        _discard_stdout()
    shown = _shown_error(error)
    if shown is None:
        raise error
    print_error(shown)
    return shown.code


def _shown_error(error: Exception) -> BerthError | None:
    """Return the error that people see for an exception; None for an exception that is a bug."""
    if isinstance(error, BerthError):
        return _with_the_backend(error)
    if isinstance(error, typer.TyperException):
        call = _right_call(error, getattr(error, "ctx", None))
        return BadInputError(error.format_message(), f"run: {call} --help")
    if isinstance(error, ModuleNotFoundError):
        return _missing_extra(error.name or "")
    if isinstance(error, OSError):
        # A full disk, a folder without write permission, a path through a file.
        if error.filename:
            return BerthError(str(error.strerror), place=str(error.filename))
        return BerthError(str(error))
    return None


def _with_the_backend(error: BerthError) -> BerthError:
    """Return an error; of a stack without a file, one that says whether Pulumi's backend has it."""
    # Only a command that has failed waits for these imports, and for Pulumi.
    from berth.stacks.files.stack_file import NoStackFileError, stack_path  # noqa: PLC0415

    if not isinstance(error, NoStackFileError):
        return error
    from berth.cli.pulumi.stack import stacks_in_backend  # noqa: PLC0415
    from berth.components.core.project import shown_path  # noqa: PLC0415

    try:
        resources = stacks_in_backend().get(error.stack)
    except BerthError:
        return error
    if resources is None:
        return error
    path = shown_path(stack_path(error.stack))
    return BadInputError(
        f"stack {error.stack} is in Pulumi's backend, with {counted(resources, 'resource')}, but"
        f" {path} does not exist here",
        f"bring the file back, such as by git; or delete all that the stack has: berth destroy -s"
        f" {error.stack}",
    )


def _right_call(error: typer.TyperException, context: typer.Context | None) -> str:
    """Return the command whose help tells the right call; before it that call, if it is clear."""
    command = context.command_path if context else "berth"
    options: set[str] = set()
    if context:
        for parameter in context.command.params:
            options.update(parameter.opts)
    if type(error) is _USAGE and "--stack" in options and "name" not in options:
        return f"{command} -s STACK, or {command}"
    if getattr(error, "option_name", "") in ("-s", "--stack") and "--environment" in options:
        return f"{command} -e STACK, or {command}"
    return command


def _missing_extra(module: str) -> BadInputError | None:
    """Return the error for a module of one of the package's extras; None for any other module."""
    from importlib.metadata import requires  # noqa: PLC0415 - seldom needed

    for line in requires(NAME) or ():
        required = re.fullmatch(r"""([\w.-]+).*extra == ["'](\w+)["'].*""", line)
        if required and required[1] == module:
            extra = required[2]
            return BadInputError(
                f"berth is installed without its extra {extra!r}, and this needs {module} of it;"
                " nothing was changed",
                f'run: pip install "{NAME}[{extra}]"',
            )
    return None


def _discard_stdout() -> None:
    """Send the rest of stdout nowhere; Python would fail to write it at exit."""
    with contextlib.suppress(OSError):  # a stdout without a file has nothing to write at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    name="berth",
    cls=Verbs,
    help=(
        "Every engineer gets a berth on shared GPUs. `pulumi up -s STACK` makes them; berth checks"
        " and shows them."
    ),
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer's signature
    if value:
        typer.echo(f"berth {installed_version()}")
        raise typer.Exit


@app.callback()
def _berth(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print berth's version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Stand for `berth` without a verb; every verb finds the lab of its folder."""
    # It reads YAML, which `--version` need not wait for.
    from berth.cli.shell import lab_here  # noqa: PLC0415

    lab_here.enter_lab()


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
        code = _failed(error)
    leave_to_the_system()
    sys.exit(code)
