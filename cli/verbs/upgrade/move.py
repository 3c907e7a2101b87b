"""Move of a repository to the installed berth: `berth upgrade`."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from berth.cli.repository import template, wheels
from berth.cli.repository.changelog import (
    CHANGELOG,
    Entry,
    changelog_entries,
    entries_between,
    version_numbers,
)
from berth.cli.repository.check import Checked
from berth.cli.repository.record import RepositoryRecord, fingerprint, read_record
from berth.components.core.distribution import WHEEL, installed_version
from berth.components.core.errors import BadInputError
from berth.components.core.project import project_folder

_REQUIREMENTS = "requirements.txt"

Action = Literal["add", "update", "remove", "merge"]


@dataclass(frozen=True)
class Change:
    """Change of one file."""

    path: str
    action: Action
    """`merge` leaves an edited file, and puts the new text beside it."""
    old: str = ""
    """The file's text; empty for a new file."""
    new: str = ""

    def diff(self) -> str:
        """Return the way from the user's text to the new one."""
        texts = self.old.splitlines(), self.new.splitlines()
        return "\n".join(difflib.unified_diff(*texts, self.path, f"{self.path}.new", lineterm=""))

    def apply(self, folder: Path) -> None:
        """Write the file, or remove it."""
        path = folder / (f"{self.path}.new" if self.action == "merge" else self.path)
        if self.action == "remove":
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.new, encoding="utf-8")


@dataclass(frozen=True)
class Upgrade:
    """Move of a repository to the installed berth."""

    folder: Path
    record: RepositoryRecord
    version: str
    texts: Mapping[str, str]
    """Files of the installed version's template, without settings of stacks."""
    line: str
    """Requirement of the installed version."""
    changes: list[Change]

    @property
    def needed(self) -> bool:
        """Whether the repository is not at the installed version yet."""
        return bool(self.changes) or self.record.version != self.version

    @property
    def requires_another(self) -> bool:
        """Whether the user's requirements.txt requires another berth."""
        text = next((change.new for change in self.changes if change.path == _REQUIREMENTS), None)
        return not wheels.is_pinned(text or _text(self.folder / _REQUIREMENTS) or "", self.line)

    def changelog(self) -> list[Entry]:
        """Return the changelog's entries from the old version to the new one."""
        return entries_between(
            changelog_entries(CHANGELOG.read_text(encoding="utf-8")),
            self.record.version,
            self.version,
        )

    def apply(self) -> None:
        """Change the files, and at last the record: an interrupted upgrade runs again."""
        wheels.berth_requirement(self.folder)
        for change in self.changes:
            change.apply(self.folder)
        written = {path: fingerprint(text) for path, text in self.texts.items()}
        RepositoryRecord(self.version, self.record.values, written).write(self.folder)

    def as_json(self, checked: list[Checked]) -> dict[str, Any]:
        """Return the move for programs."""
        return {
            "from": self.record.version,
            "to": self.version,
            "changelog": list(map(asdict, self.changelog())),
            "files": [{"path": change.path, "action": change.action} for change in self.changes],
            "stacks": [result.as_json() for result in checked],
        }


def prepare() -> Upgrade:
    """Return the move of the repository that this is run in; nothing is changed yet."""
    folder, installed = project_folder(), installed_version()
    record = read_record(folder)
    if version_numbers(installed) < version_numbers(record.version):
        raise BadInputError(
            f"{folder.name} is at berth {record.version}, and the older {installed} is installed;"
            " nothing was changed",
            "run: .venv/bin/pip install -r requirements.txt",
        )
    line = wheels.berth_requirement(folder, carry=False)
    try:
        found = template.template_files({**record.values, "requirement": line})
    except KeyError as error:
        raise BadInputError(
            f".berth.yaml lacks the value {error} of its template; nothing was changed"
        ) from None
    texts = {path: text for path, text in found.items() if not template.is_settings(path)}
    return Upgrade(
        folder, record, installed, texts, line, list(_changes(folder, record, texts, line))
    )


def _changes(
    folder: Path, record: RepositoryRecord, texts: Mapping[str, str], line: str
) -> Iterator[Change]:
    for path, new in texts.items():
        written, old = record.files.get(path), _text(folder / path)
        if old is not None:
            yield from _of_file(path, written, old, new, line)
        elif written is None:
            yield Change(path, "add", new=new)  # any other missing file was deleted by the user
    for path, written in record.files.items():
        if path not in texts and fingerprint(_text(folder / path) or "") == written:
            yield Change(path, "remove")
    for wheel in folder.glob(f"{wheels.FOLDER}/{WHEEL}-{record.version}-*.whl"):
        if wheel.name not in line:
            yield Change(wheel.relative_to(folder).as_posix(), "remove")


def _of_file(path: str, written: str | None, old: str, new: str, line: str) -> Iterator[Change]:
    """Yield the changes of a file: the old text and the new template's.

    `written` is the fingerprint of the text that berth wrote, `line` the installed version's
    requirement.
    """
    if fingerprint(old) in (written, fingerprint(new)):
        if old != new:
            yield Change(path, "update", old, new)
        return
    if wheels.with_requirement(old, line) != old:
        yield Change(path, "update", old, wheels.with_requirement(old, line))
    if written != fingerprint(new):
        yield Change(path, "merge", old, new)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
