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
from berth.cli.repository.checked_stack import CheckedStack
from berth.cli.repository.record import RepositoryRecord, fingerprint, read_record
from berth.components.core.distribution import WHEEL, installed_version
from berth.components.core.errors import BadInputError
from berth.components.core.project import project_folder

_REQUIREMENTS = "requirements.txt"

Action = Literal["add", "update", "remove", "merge"]


@dataclass(frozen=True)
class FileChange:
    """Change of one file.

    Attributes:
        path: path of the file in the repository.
        action: what is done; `merge` leaves an edited file, and puts the new text beside it.
        old: the file's text; empty for a new file.
        new: the template's text; empty for a file that is removed.
    """

    path: str
    action: Action
    old: str = ""
    new: str = ""

    def diff(self) -> str:
        """Return the way from the user's text to the new one."""
        lines = difflib.unified_diff(
            self.old.splitlines(),
            self.new.splitlines(),
            self.path,
            f"{self.path}.new",
            lineterm="",
        )
        return "\n".join(lines)

    def apply(self, folder: Path) -> None:
        """Write the file, or remove it."""
        path = folder / (f"{self.path}.new" if self.action == "merge" else self.path)
        if self.action == "remove":
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.new, encoding="utf-8")


@dataclass(frozen=True)
class RepositoryUpgrade:
    """Move of a repository to the installed berth.

    Attributes:
        folder: the repository.
        record: what berth wrote into the repository before.
        version: the installed version.
        texts: files of the installed version's template, without settings of stacks.
        line: requirement of the installed version.
        changes: changes of the files.
    """

    folder: Path
    record: RepositoryRecord
    version: str
    texts: Mapping[str, str]
    line: str
    changes: list[FileChange]

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

    def as_json(self, checked: list[CheckedStack]) -> dict[str, Any]:
        """Return the move for programs."""
        return {
            "from": self.record.version,
            "to": self.version,
            "changelog": list(map(asdict, self.changelog())),
            "files": [{"path": change.path, "action": change.action} for change in self.changes],
            "stacks": [result.as_json() for result in checked],
        }


def prepared_upgrade() -> RepositoryUpgrade:
    """Return the move of the repository that this is run in; nothing is changed yet.

    Raises:
        BadInputError: the repository is at a newer version, or `berth new` did not write it.
    """
    folder = project_folder()
    installed = installed_version()
    record = read_record(folder)
    if version_numbers(installed) < version_numbers(record.version):
        raise BadInputError(
            f"{folder.name} is at berth {record.version}, and the older {installed} is installed;"
            " nothing was changed",
            "run: .venv/bin/pip install -r requirements.txt",
        )
    line = wheels.berth_requirement(folder, carry=False)
    try:
        # Repositories from before there was a choice started with `dev`.
        files = template.template_files({"start": "dev", **record.values}, line)
    except KeyError as error:
        raise BadInputError(
            f".berth.yaml lacks the value {error} of its template; nothing was changed"
        ) from None
    texts = {path: text for path, text in files.items() if not template.is_settings(path)}
    changes = [
        *_changes_by_template(folder, record, texts, line),
        *_removals(folder, record, texts, line),
    ]
    return RepositoryUpgrade(folder, record, installed, texts, line, changes)


def _changes_by_template(
    folder: Path, record: RepositoryRecord, texts: Mapping[str, str], line: str
) -> Iterator[FileChange]:
    for path, new in texts.items():
        written = record.files.get(path)
        old = _text(folder / path)
        if old is not None:
            yield from _changes_of_file(path, written, old, new, line)
        elif written is None:
            yield FileChange(path, "add", new=new)
        # The user deleted any other file that is missing.


def _removals(
    folder: Path, record: RepositoryRecord, texts: Mapping[str, str], line: str
) -> Iterator[FileChange]:
    """Yield the files of the old version that the new one does not have, if nobody edited them."""
    for path, written in record.files.items():
        if path not in texts and fingerprint(_text(folder / path) or "") == written:
            yield FileChange(path, "remove")
    for wheel in folder.glob(f"{wheels.FOLDER}/{WHEEL}-{record.version}-*.whl"):
        if wheel.name not in line:
            yield FileChange(wheel.relative_to(folder).as_posix(), "remove")


def _changes_of_file(
    path: str, written: str | None, old: str, new: str, line: str
) -> Iterator[FileChange]:
    """Yield the changes of a file that is there.

    Args:
        path: path of the file in the repository.
        written: fingerprint of the text that berth wrote; None for a file of the user's own.
        old: the text now.
        new: the template's text.
        line: requirement of the installed version.
    """
    if fingerprint(old) in (written, fingerprint(new)):
        if old != new:
            yield FileChange(path, "update", old, new)
        return
    updated = wheels.with_requirement(old, line)
    if updated != old:
        yield FileChange(path, "update", old, updated)
    if written != fingerprint(new):
        yield FileChange(path, "merge", old, new)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
