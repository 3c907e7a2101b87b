"""Record of a repository: the version and the files that berth wrote, in `.berth.yaml`."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from berth.cli.repository import wheels
from berth.cli.repository.changelog import version_numbers
from berth.components.core.errors import BadInputError

FILE = ".berth.yaml"

_HEAD = """\
# `berth new` and `berth upgrade` write this file; commit it. It has the version that wrote the
# files below, and their hashes, by which an upgrade knows the ones that you edited.
"""
_WIDTH = 1000
"""Columns of the file: every hash stands beside its path."""


@dataclass(frozen=True)
class RepositoryRecord:
    """Files that berth wrote, and its version then."""

    version: str
    values: dict[str, str]
    files: dict[str, str]
    """Fingerprints of the texts as they were written, by path."""

    def write(self, folder: Path) -> None:
        """Write the record into a repository."""
        yaml = YAML(typ="rt", pure=True)
        yaml.width = _WIDTH
        with (folder / FILE).open("w", encoding="utf-8") as file:
            file.write(_HEAD)
            yaml.dump({"version": self.version, "values": self.values, "files": self.files}, file)


def read_record(folder: Path) -> RepositoryRecord:
    """Return the record of a repository.

    Raises:
        BadInputError: `berth new` did not write the repository, or the record cannot be read.
    """
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
        document = YAML(typ="safe", pure=True).load(text)
        record = RepositoryRecord(
            str(document["version"]), dict(document["values"]), dict(document["files"])
        )
        version_numbers(record.version)
    except FileNotFoundError:
        raise BadInputError(
            f"{folder} has no {FILE}, so `berth new` did not write it; nothing was changed",
            "run it in a repository that `berth new` wrote",
        ) from None
    except (OSError, YAMLError, KeyError, TypeError, ValueError) as error:
        raise BadInputError(
            f"{FILE} cannot be read ({str(error) or type(error).__name__}); nothing was changed",
            f"take the committed one back: git checkout {FILE}",
        ) from None
    return record


def fingerprint(text: str) -> str:
    """Return a hash of a file's text, whatever version of berth it requires."""
    return hashlib.sha256(wheels.without_requirement(text).encode()).hexdigest()
