"""Released programs: the files that a project publishes for a version, their checksums, downloads.

A file whose checksum differs from the published one ends the run, and nothing of it stays. Any
other failure is a reason to build the tool from source.
"""

import hashlib
import http.client
import json
import os
import platform
import re
import shutil
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import IO

from berth.lab.errors import LabError

MIRROR = "BERTH_LAB_RELEASES"
"""Environment variable: address of a mirror; the mirror has the files under `HOST/PATH`."""

PROBE_SECONDS = 4.0
"""Time in which a release site has to answer, before anything is built."""

SILENCE_SECONDS = 15.0
"""Time without a byte after which a download is given up."""

FILE_SECONDS = 240.0
"""Time after which the download of one file is given up: a build takes no longer."""

_CHUNK = 1 << 18
_LARGEST_TEXT = 1 << 22
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_ALGORITHMS = {64: "sha256", 128: "sha512"}
"""Hash algorithm by the number of hexadecimal digits of its checksum."""


class UnavailableError(Exception):
    """Failure of a download that building from source gets around; its text is the reason."""


@dataclass(frozen=True)
class ReleasedFile:
    """File on a project's release site.

    In both addresses, `{version}` and `{arch}` are filled in; Pulumi writes `{x64}` for `amd64`.
    """

    address: str
    checksums: str
    """Place of the checksum: a checksum alone, lines of checksum and name, or GitHub's release."""
    members: Mapping[str, str]
    """Path in the archive by the program's name; empty where the file is the program."""

    @property
    def name(self) -> str:
        """Name of the file, as the checksums have it."""
        return self.address.rpartition("/")[2]


def filled(files: tuple[ReleasedFile, ...], version: str) -> tuple[ReleasedFile, ...]:
    """Return the files of a version for this machine; none where the projects publish none."""
    arch = _ARCHITECTURES.get(platform.machine()) if platform.system() == "Linux" else None
    if arch is None:
        return ()

    def fill(text: str) -> str:
        return text.format(version=version, arch=arch, x64={"amd64": "x64"}.get(arch, arch))

    result = []
    for file in files:
        members = {name: fill(path) for name, path in file.members.items()}
        result.append(ReleasedFile(fill(file.address), fill(file.checksums), members))
    return tuple(result)


def key(files: tuple[ReleasedFile, ...]) -> str:
    """Return a hash of everything that decides which files are taken."""
    recipe = [[file.address, file.checksums, sorted(file.members.items())] for file in files]
    return hashlib.sha256(json.dumps(["release", recipe]).encode()).hexdigest()


def published(text: str, name: str) -> str | None:
    """Return the checksum of a file in a text of published checksums, None if it has none."""
    stripped = text.strip()
    if stripped.startswith("{"):
        try:
            digests = {
                asset["name"]: asset.get("digest") or "" for asset in json.loads(stripped)["assets"]
            }
        except (ValueError, KeyError, TypeError):
            return None
        found = str(digests.get(name, "")).rpartition(":")[2]
    elif len(stripped.split()) == 1:
        found = stripped
    else:
        lines = re.findall(r"^\s*([0-9A-Fa-f]+)\s+[*]?(\S+)\s*$", stripped, re.MULTILINE)
        found = next((digits for digits, path in lines if path.rpartition("/")[2] == name), "")
    return (
        found.lower()
        if len(found) in _ALGORITHMS and re.fullmatch(r"[0-9A-Fa-f]+", found)
        else None
    )


def located(address: str) -> str:
    """Return where a file is fetched from: its own address, or the mirror's."""
    mirror = os.environ.get(MIRROR, "").rstrip("/")
    return f"{mirror}/{address.partition('://')[2]}" if mirror else address


class StaysEncrypted(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but not from https to anything else."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the request that follows a redirection."""
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise urllib.error.URLError(f"redirected to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(address: str, seconds: float) -> http.client.HTTPResponse:
    opener = urllib.request.build_opener(StaysEncrypted)
    request = urllib.request.Request(located(address), headers={"User-Agent": "berth"})  # noqa: S310 - tools.toml's
    response: http.client.HTTPResponse = opener.open(request, timeout=seconds)
    return response


def _reason(address: str, error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{located(address)} answers {error.code} {error.reason}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return f"{located(address)}: {reason or type(error).__name__}"


def texts(addresses: Iterable[str]) -> dict[str, str | UnavailableError]:
    """Return the texts at some addresses, asked for at the same time, or why there is none.

    A name server or site that does not answer takes no longer than `PROBE_SECONDS`.
    """

    def text(address: str) -> str | UnavailableError:
        try:
            with _open(address, PROBE_SECONDS) as response:
                return response.read(_LARGEST_TEXT).decode("utf-8", errors="replace")
        except (OSError, ValueError, http.client.HTTPException) as error:
            return UnavailableError(_reason(address, error))

    asked = sorted(set(addresses))
    pool = ThreadPoolExecutor(max(len(asked), 1))
    answers = {address: pool.submit(text, address) for address in asked}
    wait(answers.values(), PROBE_SECONDS)
    pool.shutdown(wait=False)
    silent = UnavailableError(f"no answer within {PROBE_SECONDS:g} s")
    return {
        address: answer.result() if answer.done() else silent for address, answer in answers.items()
    }


def fetch(address: str, checksum: str, target: Path) -> None:
    """Download a file, and compare it with its published checksum.

    Raises:
        UnavailableError: the file did not arrive, or not in time.
        LabError: the file is another one than the published one.
    """
    hashed = hashlib.new(_ALGORITHMS[len(checksum)])
    partial = target.with_name(f".{target.name}")
    try:
        with _open(address, SILENCE_SECONDS) as response, partial.open("wb") as file:
            end = time.monotonic() + FILE_SECONDS
            while chunk := response.read(_CHUNK):
                hashed.update(chunk)
                file.write(chunk)
                if time.monotonic() > end:
                    raise UnavailableError(
                        f"{located(address)} took longer than {FILE_SECONDS:g} s"
                    )
            length = response.headers.get("Content-Length")
            if length is not None and int(length) != file.tell():
                raise UnavailableError(
                    f"{located(address)} ended after {file.tell()} of {length} bytes"
                )
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(_reason(address, error)) from error
    if hashed.hexdigest() != checksum:
        raise LabError(
            f"wrong checksum of {located(address)}: nothing was installed\n"
            f"  published: {checksum}\n"
            f"  found:     {hashed.hexdigest()}",
            "the file may be damaged or replaced on its way: report it where you got it from; "
            "BERTH_LAB_TOOLS=source builds the tool from source instead",
        )
    partial.rename(target)


def unpack(file: Path, members: Mapping[str, str], folder: Path) -> None:
    """Put the programs of a downloaded file into a folder.

    Args:
        file: archive, or the program itself.
        members: path in the archive by the name in the folder; empty for a file that is a program.
        folder: where the programs go.

    Raises:
        UnavailableError: the archive has no such program.
    """
    try:
        for name, path in members.items():
            if not path:
                shutil.copyfile(file, folder / name)
            else:
                with tarfile.open(file) as archive, (folder / name).open("wb") as program:
                    source = archive.extractfile(path)
                    if source is None:
                        raise KeyError(path)  # noqa: TRY301 - what a missing path raises too
                    shutil.copyfileobj(source, program)
            (folder / name).chmod(0o755)
    except (KeyError, tarfile.TarError, EOFError) as error:
        raise UnavailableError(
            f"the release has no usable {', '.join(members)}: {error}"
        ) from error
