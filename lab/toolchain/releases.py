"""Released programs: the files that a project publishes for a version, and their checksums."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.lab.errors import USAGE, LabError

if TYPE_CHECKING:
    from collections.abc import Mapping

CHOICE = "BERTH_LAB_TOOLS"
"""Environment variable: `release` or `source`. By default releases where their sites answer."""

RELEASE, SOURCE = "release", "source"

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_ALGORITHMS = {64: "sha256", 128: "sha512"}
"""Hash algorithm by the number of hexadecimal digits of its checksum."""


@dataclass(frozen=True)
class ReleasedFile:
    """File on a project's release site.

    In both addresses, `{version}` and `{arch}` are filled in; Pulumi writes `{x64}` for `amd64`.

    Attributes:
        address: where the file is.
        checksums: where its checksum is published: a checksum alone, lines of checksum and name, or
            a release of GitHub's API.
        members: path in the archive by the name beside the tool's programs; the path is empty where
            the file is the program itself.
    """

    address: str
    checksums: str
    members: Mapping[str, str]

    @property
    def name(self) -> str:
        """Name of the file, as the checksums have it."""
        return self.address.rpartition("/")[2]


def architecture() -> str | None:
    """Return this machine's architecture as releases name it, None if there are none for it."""
    return _ARCHITECTURES.get(platform.machine()) if platform.system() == "Linux" else None


def filled(files: tuple[ReleasedFile, ...], version: str) -> tuple[ReleasedFile, ...]:
    """Return the files of a version for this machine; none where the projects publish none."""
    arch = architecture()
    if arch is None:
        return ()

    def fill(text: str) -> str:
        return text.format(version=version, arch=arch, x64={"amd64": "x64"}.get(arch, arch))

    return tuple(
        ReleasedFile(
            fill(file.address), fill(file.checksums), {name: fill(path) for name, path in file.members.items()}
        )
        for file in files
    )


def key(files: tuple[ReleasedFile, ...]) -> str:
    """Return a hash of everything that decides which files are taken."""
    recipe = [[file.address, file.checksums, sorted(file.members.items())] for file in files]
    return hashlib.sha256(json.dumps(["release", recipe]).encode()).hexdigest()


def choice() -> str:
    """Return `release`, `source`, or an empty text where the lab decides.

    Raises:
        LabError: the environment variable has another value.
    """
    value = os.environ.get(CHOICE, "")
    if value not in ("", RELEASE, SOURCE):
        raise LabError(
            f"{CHOICE} is {value!r}: no tool is fetched or built",
            f"set {CHOICE} to `{RELEASE}` or `{SOURCE}`, or unset it",
            code=USAGE,
        )
    return value


def published(text: str, name: str) -> str | None:
    """Return the checksum of a file in a text of published checksums, None if it has none."""
    stripped = text.strip()
    if stripped.startswith("{"):
        return _github(stripped, name)
    if _is_checksum(stripped):
        return stripped.lower()
    for line in stripped.splitlines():
        found = re.fullmatch(r"([0-9A-Fa-f]+)\s+[*]?(\S+)", line.strip())
        if found and found[2].rpartition("/")[2] == name and _is_checksum(found[1]):
            return found[1].lower()
    return None


def algorithm(checksum: str) -> str:
    """Return the name of the hash algorithm of a checksum."""
    return _ALGORITHMS[len(checksum)]


def _is_checksum(text: str) -> bool:
    return len(text) in _ALGORITHMS and re.fullmatch(r"[0-9A-Fa-f]+", text) is not None


def _github(text: str, name: str) -> str | None:
    try:
        digests = {asset["name"]: asset.get("digest") or "" for asset in json.loads(text)["assets"]}
    except (ValueError, KeyError, TypeError):
        return None
    checksum = str(digests.get(name, "")).rpartition(":")[2]
    return checksum.lower() if _is_checksum(checksum) else None
