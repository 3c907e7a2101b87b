"""Reference of all settings, written from the schema."""

from __future__ import annotations

from berth.cli.repository.check import schema
from berth.cli.verbs.explain.settings import Setting, effects, everything, roots

_COLUMNS = "| setting | type | default | example | an edit | description |"
_HEAD = """\
# Settings

All settings of a stack's file, by path. `NAME`, `ENGINEER` and `PROFILE` stand for keys that you
choose; `[]` stands for the entries of a list. `berth explain pools.capacity` shows the same in a
terminal, `berth schema` prints the JSON Schema, and `berth check` checks a file against it.
`make pages` writes this page.

The column *an edit* says what an update does for another value of the setting, in these phrases.
Two phrases mean that it depends on the value. `berth preview -s STACK` says it for your edit, and
whose work it reaches. `make effects` finds the phrases out: it edits each setting in a sample
environment (`docs/edits.yaml`) and judges the difference as the preview does.

| an edit | means |
|---|---|
"""


def page() -> str:
    """Return the page's text."""
    phrases = "".join(f"| {phrase} | {meaning} |\n" for phrase, meaning in effects()["effects"].items())
    return "\n".join([_HEAD + phrases, *(section for root in roots(schema()) for section in _sections(root))])


def _sections(root: Setting) -> list[str]:
    sections, shown, repeated = list[str](), dict[int, str](), list[str]()
    for setting in everything(root):
        children = list(setting.children())
        if (
            not children
            or (len(children) == 1 and children[0].name.isupper())
            or (root.path == "engineer" and setting is not root)
        ):
            continue  # an engineer's stack has the settings of `environment.engineers.ENGINEER`
        title = [f"## {setting.path}", ""]
        if setting.description:
            title += [setting.description, ""]
        first = shown.setdefault(id(setting.resolved), setting.path)
        if first == setting.path:
            table = [
                _COLUMNS,
                "|---|---|---|---|---|---|",
                *map(_row, children),
                "",
            ]
            sections.append("\n".join([*title, *table]))
        elif not setting.path.startswith(tuple(repeated)):
            repeated.append(f"{setting.path}.")
            sections.append("\n".join([*title, f"The settings are those of `{first}`.", ""]))
    return sections


def _row(setting: Setting) -> str:
    default = "required" if setting.required else f"`{setting.default}`" if setting.default else ""
    examples = ", ".join(f"`{example}`" for example in setting.examples)
    cells = (f"`{setting.name}`", setting.type, default, examples, setting.effect, setting.description)
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
