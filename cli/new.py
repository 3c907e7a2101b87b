"""A repository of a user's own, written from the template folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from berth.components.core.errors import BadInputError

TEMPLATE = Path(__file__).with_name("template")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""Name of a Pulumi project (pulumi, sdk/go/common/tokens/project.go)."""

# A wheel has no hidden files, and no `__main__.py` that is no module of berth's.
_WRITTEN_AS = {"main.txt": "__main__.py"}


def write(folder: Path, project: str, zone: str) -> list[Path]:
    """Write a repository, and return its files.

    Args:
        folder: where; it is created, or is empty.
        project: Google Cloud project of the environment `dev`.
        zone: zone of that environment.

    Raises:
        BadInputError: the folder has content, or its name is not one of a Pulumi project.
    """
    name = folder.absolute().name
    if not _NAME.fullmatch(name):
        raise BadInputError(
            f"{name!r} cannot be the name of a Pulumi project",
            "use letters, digits, '-', '_' and '.', and begin with a letter or digit, for example my-fleet",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInputError(
            f"{folder} exists and is not an empty folder; nothing is written", "name a folder that does not exist yet"
        )
    values = {"$name": name, "$version": version("berth"), "$project": project, "$zone": zone}
    written = []
    for source in sorted(path for path in TEMPLATE.rglob("*") if path.is_file()):
        target = folder / _written_as(source.relative_to(TEMPLATE))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_filled(source.read_text(encoding="utf-8"), values), encoding="utf-8")
        written.append(target)
    return written


def _written_as(path: Path) -> Path:
    names = [_WRITTEN_AS.get(part, re.sub(r"^dot-", ".", part)) for part in path.parts]
    return Path(*names)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Replace placeholders; other words with a dollar sign are those of make and of shells."""
    return re.sub(r"\$(name|version|project|zone)\b(?!=)", lambda found: values[found[0]], text)
