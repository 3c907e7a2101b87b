"""Reference of all settings, written from the schema."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

from berth.cli.verbs.explain.effects import known_effects
from berth.cli.verbs.explain.settings import Setting, root_settings, with_settings_inside
from berth.stacks.load.schema import schema

_HEAD = """\
# Settings

All settings of a stack's file, by path. `NAME`, `ENGINEER`, `PROFILE` and `GROUP` stand for keys
that you choose; `[]` stands for the entries of a list. `berth explain pools.capacity` shows the
same in a terminal, with examples; `berth schema` prints the JSON Schema, and `berth check` checks a
file against it.

In parentheses stands what an update does for another value; two phrases mean that it depends on the
value. `berth preview -s STACK` says it for your edit, and whose work it reaches.

| an edit | means |
|---|---|
"""
_RAY = ("environment.defaults", "environment.engineers", "environment.clusters", "environment.jobs")
_FAMILIES = ((*_RAY, "environment.services", "engineer"), ("environment.operators",))
"""Paths whose settings are alike: one that several of a family have is described at the first."""

Meaning = tuple[int, str, str, str]
"""Common part of settings that are described once: family, name, type and description."""


def page() -> str:
    """Return the page's text."""
    phrases = "".join(
        f"| {phrase} | {meaning} |\n" for phrase, meaning in known_effects()["effects"].items()
    )
    return "\n".join(
        [
            _HEAD + phrases,
            *_sections(
                [found for root in root_settings(schema()) for found in with_settings_inside(root)]
            ),
        ]
    )


def _sections(settings: list[Setting]) -> Iterator[str]:
    """Yield the sections of settings that have others inside; each setting is described once."""
    first = _first_of_each_meaning(settings)
    described: set[str] = set()
    elsewhere: set[str] = set()
    for setting in settings:
        children = list(setting.children())
        if _is_leaf(children) or _is_within(setting, elsewhere):
            continue
        own = [child for child in children if _first(child, first).path == child.path]
        borrowed = [child for child in children if child not in own]
        elsewhere |= {child.path for child in borrowed}
        parts = [f"## {setting.path}", ""]
        if setting.description and setting.description not in described:
            parts += [setting.description, ""]
        described |= {child.description for child in own}
        if own:
            parts += [*map(_entry, own), ""]
        if borrowed:
            parts += [_borrowed(borrowed, first), ""]
        yield "\n".join(parts)


def _first_of_each_meaning(settings: Iterable[Setting]) -> dict[Meaning, Setting]:
    first: dict[Meaning, Setting] = {}
    for setting in settings:
        if meaning := _meaning(setting):
            first.setdefault(meaning, setting)
    return first


def _is_leaf(children: Sequence[Setting]) -> bool:
    """Whether a setting has no other settings inside, or only those of any name."""
    return not children or (len(children) == 1 and children[0].name.isupper())


def _is_within(setting: Setting, paths: Iterable[str]) -> bool:
    return any(setting.path == path or setting.path.startswith(f"{path}.") for path in paths)


def _meaning(setting: Setting) -> Meaning | None:
    """Return what a setting has in common with others of its family; None without a family."""
    families = (index for index, paths in enumerate(_FAMILIES) if setting.path.startswith(paths))
    family = next(families, None)
    return None if family is None else (family, setting.name, setting.type, setting.description)


def _first(setting: Setting, first: dict[Meaning, Setting]) -> Setting:
    meaning = _meaning(setting)
    return first[meaning] if meaning else setting


def _borrowed(settings: list[Setting], first: dict[Meaning, Setting]) -> str:
    """Return the sentences that name settings which are described elsewhere."""
    by_place: dict[str, list[str]] = {}
    for setting in settings:
        place = _first(setting, first).path.rpartition(".")[0]
        by_place.setdefault(place, []).append(f"`{setting.name}`")
    return "\n".join(
        fill(f"As in `{place}`: {', '.join(names)}.", 100) for place, names in by_place.items()
    )


def _entry(setting: Setting) -> str:
    """Return a setting as an entry of a list: `- `nodes` (in place): Required. Number of nodes."""
    description = " ".join(part for part in (_value(setting), setting.description) if part)
    effect = f" ({setting.effect})" if setting.effect else ""
    return f"- `{setting.name}`{effect}: {description}"


def _value(setting: Setting) -> str:
    """Return a sentence on a setting's values: the few that it may have, and its default."""
    values = setting.type if any(isinstance(choice, str) for choice in setting.choices) else ""
    default = (
        "required"
        if setting.required
        else f"default `{setting.default}`"
        if setting.default
        else ""
    )
    text = "; ".join(part for part in (values, default) if part)
    return f"{text[0].upper()}{text[1:]}." if text else ""
