"""Requirement by which a repository gets its berth: a wheel that it carries, or a version.

A wheel is never looked up by its name.
"""

import json
import re
import shutil
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import unquote, urlparse

from berth.components.core.distribution import NAME, WHEEL, installed_version

FOLDER = "wheels"

# Repositories from before the package had this name require `berth`.
_PINNED = re.compile(
    rf"^(?:{NAME}|berth|\./{FOLDER}/(?:{WHEEL}|berth)-[^\s\[]+)(\[[^\]]*\])?(?: *== *[^\s;#]+)?(?="
    r" *(?:#.*)?$)",
    flags=re.MULTILINE,
)


def wheel_name(version: str) -> str:
    """Return the name of the file of a version's wheel."""
    return f"{WHEEL}-{version}-py3-none-any.whl"


def berth_requirement(folder: Path, *, carry: bool = True) -> str:
    """Return the requirement of the installed berth, for a repository in a folder.

    With `carry`, the wheel that berth was installed from is copied into the repository.
    """
    version = installed_version()
    wheel = folder / FOLDER / wheel_name(version)
    source = _installed_from()
    if not wheel.exists():
        if source is None or source.name != wheel.name:
            return f"{NAME}[lab]=={version}"
        if carry:
            wheel.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, wheel)
    return f"./{FOLDER}/{wheel.name}[lab]"


def with_requirement(text: str, line: str) -> str:
    """Return a text whose requirement of berth is another one, with the extras that it had."""
    return _PINNED.sub(lambda found: line.replace("[lab]", found[1] or ""), text)


def is_pinned(text: str, line: str) -> bool:
    """Return whether a text has a requirement of berth, and it is this one."""
    return _PINNED.search(text) is not None and with_requirement(text, line) == text


def without_requirement(text: str) -> str:
    """Return a text without the version of its requirement of berth."""
    return _PINNED.sub(lambda found: f"{NAME}{found[1] or ''}", text)


def is_clone() -> bool:
    """Return whether berth runs from a clone, of which no other machine can install it."""
    return bool(_direct().get("dir_info"))


def _installed_from() -> Path | None:
    """Return the wheel that berth was installed from, as pip recorded it; None if there is none."""
    url = urlparse(_direct().get("url", ""))
    path = Path(unquote(url.path))
    return path if url.scheme == "file" and path.suffix == ".whl" and path.is_file() else None


def _direct() -> dict[str, str]:
    # https://packaging.python.org/en/latest/specifications/direct-url/
    text = distribution(NAME).read_text("direct_url.json")
    return dict(json.loads(text)) if text else {}
