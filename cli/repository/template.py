"""Files of the folder `template`, with a repository's own values filled in."""

import re
from collections.abc import Mapping
from pathlib import Path

TEMPLATE = Path(__file__).parent.with_name("template")

# A wheel has no hidden files, and no `__main__.py` that is no module of berth's.
_WRITTEN_AS = {"main.txt": "__main__.py"}


def template_files(values: Mapping[str, str]) -> dict[str, str]:
    """Return the text of every file, with values filled in, by its path in a repository."""
    texts = {}
    for source in sorted(TEMPLATE.rglob("*")):
        if source.is_file() and source.suffix != ".pyc":
            text = source.read_text(encoding="utf-8")
            texts[_written_as(source.relative_to(TEMPLATE))] = _filled(text, values)
    return texts


def is_settings(path: str) -> bool:
    """Return whether a file has settings of a stack, which belong to the user from the start."""
    return re.fullmatch(r"stacks/Pulumi\..+\.yaml", path) is not None


def _written_as(path: Path) -> str:
    parts = [_WRITTEN_AS.get(part, re.sub(r"^dot-", ".", part)) for part in path.parts]
    return "/".join(parts)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Replace placeholders; other words with a dollar sign are those of make and of shells."""
    return re.sub(r"\$(name|requirement|project|zone)\b(?!=)", lambda found: values[found[1]], text)
