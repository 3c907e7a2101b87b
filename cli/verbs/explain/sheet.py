"""Sheet of a setting for a terminal, and outline of all settings inside one."""

from collections.abc import Sequence
from textwrap import wrap

from rich.markup import escape

from berth.cli.verbs.explain.settings import Setting, with_settings_inside


def sheet_lines(setting: Setting, width: int) -> list[str]:
    """Return a setting and those directly inside it, as marked-up lines.

    Args:
        setting: the setting.
        width: width of the terminal, in columns.
    """
    lines = [_heading(setting)]
    lines += [f"  {label}: {escape(text)}" for label, text in _properties(setting)]
    if setting.meaning:
        lines += _filled(setting.meaning, width, 4)
    if setting.description:
        lines += ["", *_filled(setting.description, width, 2)]
    children = list(setting.children())
    if children:
        lines += ["", "[bold]Settings inside:[/]"]
    for child in children:
        lines += _lines_of_child(child, setting, width)
    return lines


def _lines_of_child(child: Setting, setting: Setting, width: int) -> list[str]:
    required = " [bold]required[/]" if child.required else ""
    lines = ["", f"  [bold]{_path_inside(child, setting)}[/]  {escape(child.type)}{required}"]
    if child.description:
        lines += _filled(child.description, width, 6)
    properties = "; ".join(f"{label}: {text}" for label, text in _properties(child))
    if properties:
        lines += [f"[dim]{line}[/]" for line in _filled(properties, width, 6)]
    return lines


def list_lines(name: str, settings: Sequence[Setting], width: int) -> list[str]:
    """Return settings of one name as marked-up lines: paths, and what the settings are.

    Args:
        name: end of their paths.
        settings: the settings.
        width: width of the terminal, in columns.
    """
    lines = [f"{len(settings)} settings are named [bold]{escape(name)}[/]:"]
    paths_of: dict[tuple[str, str], list[str]] = {}
    for setting in settings:
        paths_of.setdefault((setting.type, setting.description), []).append(setting.path)
    for (kind, description), paths in paths_of.items():
        lines += ["", *(f"  [bold]{escape(path)}[/]  {escape(kind)}" for path in paths)]
        lines += _filled(description, width, 6)
    return [*lines, "", "One of them: berth explain PATH"]


def outline_lines(setting: Setting) -> list[str]:
    """Return a setting and all settings inside it, one a line, as marked-up lines."""
    lines = [_heading(setting)]
    for child in with_settings_inside(setting):
        if child is setting:
            continue
        path = _path_inside(child, setting)
        gap = "  " * (path.count(".") + 1)
        name = path.rpartition(".")[2]
        lines.append(f"{gap}[bold]{name}[/]  {escape(child.type)}{_marks(child)}")
    return lines


def _heading(setting: Setting) -> str:
    return f"[bold]{setting.path}[/]  {escape(setting.type)}"


def _marks(setting: Setting) -> str:
    if setting.required:
        return " [bold]required[/]"
    return f", default {setting.default}" if setting.default else ""


def _properties(setting: Setting) -> list[tuple[str, str]]:
    """Return what is known of a setting, each with its label."""
    labelled = [
        ("default", setting.default),
        ("for example", " or ".join(setting.examples)),
        ("an edit", setting.effect),
    ]
    return [(label, text) for label, text in labelled if text]


def _path_inside(child: Setting, setting: Setting) -> str:
    return child.path[len(setting.path) :].lstrip(".")


def _filled(text: str, width: int, indent: int) -> list[str]:
    """Return text in lines, with rich's markup escaped."""
    gap = " " * indent
    return [escape(line) for line in wrap(text, width, initial_indent=gap, subsequent_indent=gap)]
