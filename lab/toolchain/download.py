"""Downloads of released files: a quick question whether their sites answer, then the files.

A file whose checksum differs from the published one ends the run, and nothing of it stays. Any
other failure is a reason to build the tool from source.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import queue
import shutil
import tarfile
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from berth.lab.errors import LabError
from berth.lab.toolchain.releases import algorithm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from http.client import HTTPMessage
    from pathlib import Path
    from typing import IO

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


class UnavailableError(Exception):
    """Failure of a download that building from source gets around; its text is the reason."""


class StaysEncrypted(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but not from https to anything else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request that follows a redirection."""
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise urllib.error.URLError(f"redirected to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def located(address: str) -> str:
    """Return where a file is fetched from: its own address, or the mirror's."""
    mirror = os.environ.get(MIRROR, "").rstrip("/")
    return f"{mirror}/{address.partition('://')[2]}" if mirror else address


def texts(addresses: Iterable[str]) -> dict[str, str | UnavailableError]:
    """Return the texts at some addresses, asked for at the same time, or why there is none.

    A name server or site that does not answer takes no longer than `PROBE_SECONDS`.
    """
    seconds = PROBE_SECONDS
    asked = sorted(set(addresses))
    answers: queue.SimpleQueue[tuple[str, str | UnavailableError]] = queue.SimpleQueue()
    for address in asked:
        threading.Thread(target=lambda a: answers.put((a, _text(a, seconds))), args=(address,), daemon=True).start()
    found: dict[str, str | UnavailableError] = {}
    end = time.monotonic() + seconds
    while len(found) < len(asked):
        try:
            address, answer = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        found[address] = answer
    silent = UnavailableError(f"no answer within {seconds:g} s")
    return {address: found.get(address, silent) for address in asked}


def fetch(address: str, checksum: str, target: Path) -> None:
    """Download a file, and compare it with its published checksum.

    Raises:
        UnavailableError: the file did not arrive, or not in time.
        LabError: the file is another one than the published one.
    """
    hashed = hashlib.new(algorithm(checksum))
    try:
        with _open(address, SILENCE_SECONDS) as response, target.open("wb") as file:
            end = time.monotonic() + FILE_SECONDS
            while chunk := response.read(_CHUNK):
                hashed.update(chunk)
                file.write(chunk)
                if time.monotonic() > end:
                    raise UnavailableError(f"{located(address)} took longer than {FILE_SECONDS:g} s")  # noqa: TRY301
            length = response.headers.get("Content-Length")
            if length is not None and int(length) != file.tell():
                raise UnavailableError(  # noqa: TRY301 - the clean-up below is for this error too
                    f"{located(address)} ended after {file.tell()} of {length} bytes"
                )
        if hashed.hexdigest() != checksum:
            raise LabError(  # noqa: TRY301 - as above
                f"wrong checksum of {located(address)}: nothing was installed\n"
                f"  published: {checksum}\n"
                f"  found:     {hashed.hexdigest()}",
                "the file may be damaged or replaced on its way: report it where you got it from; "
                "BERTH_LAB_TOOLS=source builds the tool from source instead",
            )
    except (OSError, http.client.HTTPException) as error:
        target.unlink(missing_ok=True)
        raise UnavailableError(_reason(located(address), error)) from error
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def unpack(file: Path, members: Mapping[str, str], folder: Path) -> None:
    """Put the programs of a downloaded file into a folder.

    Args:
        file: archive, or the program itself.
        members: path in the archive by the name in the folder; empty for a file that is a program.
        folder: where the programs go.

    Raises:
        UnavailableError: the archive has no such program.
    """
    if not any(members.values()):
        for name in members:
            shutil.copyfile(file, folder / name)
            (folder / name).chmod(0o755)
        return
    try:
        with tarfile.open(file) as archive:
            for name, path in members.items():
                source = archive.extractfile(path)
                if source is None:
                    raise KeyError(path)  # noqa: TRY301 - what a missing path raises too
                with (folder / name).open("wb") as program:
                    shutil.copyfileobj(source, program)
                (folder / name).chmod(0o755)
    except (KeyError, tarfile.TarError, EOFError) as error:
        raise UnavailableError(f"the release has no usable {', '.join(members)}: {error}") from error


def _open(address: str, seconds: float) -> http.client.HTTPResponse:
    opener = urllib.request.build_opener(StaysEncrypted)
    request = urllib.request.Request(located(address), headers={"User-Agent": "berth"})  # noqa: S310 - tools.py's
    response: http.client.HTTPResponse = opener.open(request, timeout=seconds)
    return response


def _text(address: str, seconds: float) -> str | UnavailableError:
    try:
        with _open(address, seconds) as response:
            return response.read(_LARGEST_TEXT).decode("utf-8", errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return UnavailableError(_reason(located(address), error))


def _reason(address: str, error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{address} answers {error.code} {error.reason}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return f"{address}: {reason or type(error).__name__}"
