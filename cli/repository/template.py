"""Files of the folder `template`, with a repository's own values filled in."""

import re
from collections.abc import Mapping
from pathlib import Path

from berth.cli.repository.wheels import wheel_name
from berth.components.core.types import region_of

TEMPLATE = Path(__file__).parent.with_name("template")

# A wheel has no hidden files, and no `__main__.py` that is no module of berth's.
_WRITTEN_AS = {"main.txt": "__main__.py"}


VALUES = ("name", "start", "project", "zone")
"""Values of a repository: its name; name, project and zone of the environment it starts with."""


def template_files(values: Mapping[str, str], requirement: str) -> dict[str, str]:
    """Return the text of every file, with values filled in, by its path in a repository.

    Args:
        values: values by their names, which are VALUES.
        requirement: line of requirements.txt that installs berth.

    Raises:
        KeyError: a value is missing.
    """
    filled = {
        **{name: values[name] for name in VALUES},
        "region": region_of(values["zone"]),
        "requirement": requirement,
        "wheel": wheel_name("VERSION"),
    }
    texts = {}
    for source in sorted(TEMPLATE.rglob("*")):
        if source.is_file() and source.suffix != ".pyc":
            text = source.read_text(encoding="utf-8")
            texts[_written_as(source.relative_to(TEMPLATE))] = _filled(text, filled)
    return texts


def is_settings(path: str) -> bool:
    """Return whether a file has settings of a stack, which belong to the user from the start."""
    return re.fullmatch(r"stacks/Pulumi\..+\.yaml", path) is not None


def _written_as(path: Path) -> str:
    parts = [_WRITTEN_AS.get(part, re.sub(r"^dot-", ".", part)) for part in path.parts]
    return "/".join(parts)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Replace placeholders; other words with a dollar sign are those of make and of shells."""
    names = "|".join(values)
    return re.sub(rf"\$({names})\b(?!=)", lambda found: values[found[1]], text)
