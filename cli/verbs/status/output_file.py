"""Files that a command writes for people: the whole file, or nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from berth.components.core import whole_file
from berth.components.core.errors import BadInputError


def write(text: str, to: Path, option: str) -> None:
    """Write a file in one step, or stdout for `-`.

    A failure leaves the older file as it is.

    Args:
        text: content of the file.
        to: path of the file.
        option: option that names the path.

    Raises:
        BadInputError: the file cannot be written.
    """
    if str(to) == "-":
        sys.stdout.write(text)
        return
    try:
        whole_file.write(to, text)
    except OSError as error:
        raise BadInputError(
            f"{option}: {to} cannot be written: {error.strerror}; nothing is written. Name a file in a folder that"
            " exists and that you may write to"
        ) from None
