"""Files that are replaced in one step: a reader finds the old text or the new one, complete."""

import os
from pathlib import Path


def replace_file(
    path: Path, text: str, *, newline: str | None = None, mode: int | None = None
) -> None:
    """Replace a file; a failure leaves the older one as it is.

    By default, line breaks are the system's, and the rights stay.
    """
    if mode is None:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(
            os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode),
            "w",
            encoding="utf-8",
            newline=newline,
        ) as file:
            file.write(text)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
