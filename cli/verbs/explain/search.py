"""Search for settings by the end of their path, such as `rdma` for `pools.NAME.rdma`."""

from collections.abc import Iterator

from berth.cli.verbs.explain.schema_nodes import Node
from berth.cli.verbs.explain.settings import (
    Setting,
    root_settings,
    setting_at,
    with_settings_inside,
)
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import similar_name


def settings_named(schema: Node, path: str) -> list[Setting]:
    """Return the setting at a path, or else all settings whose paths end so, the shortest first.

    Raises:
        BadInputError: there is no such setting.
    """
    roots = {root.path: root for root in root_settings(schema)}
    searched = list(roots.values())
    start = roots["environment"]
    rest = path
    first, _, below = path.partition(".")
    if first in roots:
        start = roots[first]
        searched = [start]
        rest = below
    parts = rest.split(".") if rest else []
    if not parts or parts[0] in {child.name for child in start.children()}:
        return [setting_at(schema, path)]
    found: list[Setting] = []
    known: set[str] = set()
    for setting in _all_settings(searched):
        names = _names_in(setting)
        known |= {names[-1], ".".join(names[1:])}
        if names[-len(parts) :] == parts:
            found.append(setting)
    if not found:
        similar = similar_name(rest, known)
        hint = f"; did you mean {similar!r}?" if similar else ""
        raise BadInputError(
            f"there is no setting {path!r}{hint}",
            "list the settings: berth explain environment, or berth explain engineer",
        )
    return sorted(found, key=lambda setting: len(_names_in(setting)))


def _all_settings(roots: list[Setting]) -> Iterator[Setting]:
    """Yield the settings inside some, without entries of mappings and lists."""
    for root in roots:
        for setting in with_settings_inside(root):
            if setting is not root and not setting.has_chosen_key:
                yield setting


def _names_in(setting: Setting) -> list[str]:
    """Return the names in a path, without keys that users choose: `pools`, `rdma`."""
    names = [name.removesuffix("[]") for name in setting.path.split(".")]
    return [name for name in names if not name.isupper()]
